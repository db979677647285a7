// Images from the cache, else from compile worker processes. Each thread of the pool owns one worker: hands
// it one job at a time, kills it when the job takes too long, and starts another. Only callers' threads
// touch the cache, one at a time. Who wants images has a share of a pool: where several GPUs are tuned side
// by side all compilers work for whoever needs them, and no image is made twice. Shares may be used by a
// thread each. An image stays in memory until it has been had, or no problem needs it any more; after that as
// long as there is room.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/compile/compiler_process.h"
#include "runtime/system/file_descriptor.h"
#include "runtime/system/steady_condition.h"
#include "tuner/compile/image_source.h"

namespace hone::tuner {

struct CompilePoolOptions {
    Arch arch;
    std::string nvrtc;                             ///< version, part of an image's key
    int workers = 0;                               ///< 0: runtime::compiler_count()
    std::chrono::milliseconds time_limit{60'000};  ///< for one image
    bool with_references = false;  ///< prefetch the problems' references, too: for who measures on a GPU
    std::int64_t image_bytes = std::int64_t{256} << 20;  ///< held in memory, about
    /// Once this is set nobody waits for an image any more: it is compile_failed.
    const std::atomic<bool>* stop = nullptr;
};

class CompilePool final {
  public:
    /// What the pool's users ask.
    class Share;

    CompilePool(cache::Cache& cache, CompilePoolOptions options);
    CompilePool(const CompilePool&) = delete;
    CompilePool& operator=(const CompilePool&) = delete;
    /// Kills what is still compiling; stores what is finished.
    ~CompilePool();

  private:
    using Result = ImageSource::Result;
    using User = std::size_t;
    struct Used {
        std::int64_t compiled = 0;  ///< images that this user asked for first
        std::chrono::nanoseconds waited{};
    };
    enum class State : std::uint8_t { queued, running, done };
    struct Job {
        runtime::CompileRequest request;
        cache::ImageKey key;
        User user = 0;
        State state = State::queued;
        std::chrono::microseconds takes{};           ///< about: compile_time()
        runtime::Clock::time_point needed;           ///< about; who needs it first says when
        bool in_cache = false;                       ///< its image can be had again
        bool is_spare = false;                       ///< its image has been had, or nobody needs it any more
        std::unordered_set<std::string> needed_for;  ///< problems
        Result result;
        cache::PackedImage packed{};  ///< until it is in the cache
    };
    using JobPtr = std::shared_ptr<Job>;

    User add_user();
    /// Room for a job that has not ended is counted as `expected_bytes`.
    bool has_room() const;
    bool is_short_of_work() const;
    void prefetch(User user, const Problem& problem, const std::vector<Candidate>& candidates,
                  std::chrono::milliseconds until);
    bool is_ready(const Problem& problem) const;
    Result get(User user, const Problem& problem, const Candidate& candidate);
    void release(const Problem& problem);
    Result reference(User user, const Problem& problem);
    bool has_reference(const Problem& problem) const;
    void prefetch_harness(User user);
    Result harness(User user);
    std::int64_t compiled(User user) const;
    std::chrono::nanoseconds waited(User user) const;

    // With callers_ held:
    /// The job for this image: known already, answered by the cache, or queued.
    JobPtr enqueue(User user, const cache::ImageKey& key, runtime::CompileRequest request,
                   runtime::Clock::time_point needed);
    JobPtr enqueue_candidate(User user, const Problem& problem, const Candidate& candidate,
                             runtime::Clock::time_point needed);
    JobPtr enqueue_reference(User user, const Problem& problem, runtime::Clock::time_point needed);
    /// Nothing where this build has none.
    JobPtr enqueue_harness(User user, runtime::Clock::time_point needed);
    JobPtr need(const Problem& problem, const JobPtr& job);
    void store_finished();
    void make_spare(const JobPtr& job);
    bool withdraw(const JobPtr& job);
    void forget_oldest();
    void start_threads();

    Result wait(User user, const JobPtr& job, runtime::Clock::time_point since);
    bool wait_until_done(const Job& job);
    void hurry(Job& job, runtime::Clock::time_point needed);

    void serve(runtime::CompilerProcess& compiler);
    JobPtr next_job();
    std::vector<JobPtr>::iterator most_urgent();
    Result compile(runtime::CompilerProcess& compiler, const runtime::CompileRequest& request);
    Result compile_once(runtime::CompilerProcess& compiler, const runtime::CompileRequest& request);
    void finish(const JobPtr& job, Result result, cache::PackedImage packed);

    cache::Cache& cache_;
    CompilePoolOptions options_;
    runtime::UniqueFd stop_event_;

    mutable std::mutex callers_;                    ///< of what only callers touch; locked before mutex_
    std::unordered_map<std::string, JobPtr> jobs_;  ///< by image key
    std::unordered_map<std::string, std::vector<JobPtr>> needs_;  ///< by problem
    std::deque<std::string> spare_;                               ///< names of jobs that are spare, in order
    std::vector<Used> used_;                                      ///< by user

    mutable std::mutex mutex_;
    std::condition_variable work_;
    runtime::SteadyCondition finished_;
    bool stopping_ = false;
    std::vector<JobPtr> queue_;      ///< in the order in which they were asked for
    std::vector<JobPtr> unstored_;   ///< finished, not in the cache yet
    std::int64_t held_bytes_ = 0;    ///< of all images in `jobs_`
    std::int64_t needed_bytes_ = 0;  ///< of those that are not spare

    std::deque<runtime::CompilerProcess> compilers_;  ///< one a thread
    std::vector<std::thread> threads_;
};

/// Counts what this user asked for first, and waited for. Used by one thread; the pool outlives it.
class CompilePool::Share final : public ImageSource, public HarnessImages {
  public:
    explicit Share(CompilePool& pool) : pool_(pool), user_(pool.add_user()) {}

    [[nodiscard]] bool has_room() const override { return pool_.has_room(); }
    [[nodiscard]] bool is_short_of_work() const override { return pool_.is_short_of_work(); }
    void prefetch(const Problem& problem, const std::vector<Candidate>& candidates,
                  std::chrono::milliseconds until = {}) override {
        pool_.prefetch(user_, problem, candidates, until);
    }
    [[nodiscard]] bool is_ready(const Problem& problem) const override { return pool_.is_ready(problem); }
    [[nodiscard]] Result get(const Problem& problem, const Candidate& candidate) override {
        return pool_.get(user_, problem, candidate);
    }
    void release(const Problem& problem) override { pool_.release(problem); }
    [[nodiscard]] std::int64_t compiled() const override { return pool_.compiled(user_); }
    [[nodiscard]] std::chrono::nanoseconds waited() const override { return pool_.waited(user_); }

    [[nodiscard]] Result reference(const Problem& problem) override {
        return pool_.reference(user_, problem);
    }
    [[nodiscard]] bool has_reference(const Problem& problem) const override {
        return pool_.has_reference(problem);
    }
    void prefetch_harness() override { pool_.prefetch_harness(user_); }
    [[nodiscard]] Result harness() override { return pool_.harness(user_); }

  private:
    CompilePool& pool_;
    User user_;
};

}  // namespace hone::tuner

// Images from the cache, else from compile worker processes. Each thread of the pool owns one worker: hands
// it one job at a time, kills it when the job takes too long, and starts another. Only the caller's thread
// touches the cache. Used by one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/compile/compiler_process.h"
#include "runtime/system/file_descriptor.h"
#include "tuner/compile/compile_slots.h"
#include "tuner/compile/image_source.h"

namespace hone::tuner {

struct CompilePoolOptions {
    Arch arch;
    std::string nvrtc;                             ///< version, part of an image's key
    int workers = 0;                               ///< 0: runtime::compiler_count()
    std::chrono::milliseconds time_limit{60'000};  ///< for one image
    bool with_references = false;  ///< prefetch the problems' references, too: for who measures on a GPU
    std::int64_t image_bytes = std::int64_t{256} << 20;  ///< held in memory, about
    CompileSlots* slots = nullptr;  ///< not owned: one for each image that is compiled; null: one a worker
};

class CompilePool final : public ImageSource, public HarnessImages {
  public:
    CompilePool(cache::Cache& cache, CompilePoolOptions options);
    CompilePool(const CompilePool&) = delete;
    CompilePool& operator=(const CompilePool&) = delete;
    /// Kills what is still compiling; stores what is finished.
    ~CompilePool() override;

    /// Room for a job that has not ended is counted as `expected_bytes`.
    [[nodiscard]] bool has_room() const override;
    void prefetch(const Problem& problem, const std::vector<Candidate>& candidates) override;
    [[nodiscard]] Result get(const Problem& problem, const Candidate& candidate) override;
    [[nodiscard]] std::int64_t compiled() const override;
    [[nodiscard]] std::chrono::nanoseconds waited() const override { return waited_; }

    [[nodiscard]] Result reference(const Problem& problem) override;
    [[nodiscard]] Result harness() override;

  private:
    enum class State : std::uint8_t { queued, running, done };
    struct Job {
        runtime::CompileRequest request;
        cache::ImageKey key;
        State state = State::queued;
        bool in_cache = false;  ///< its image can be had again
        bool handed_out = false;
        Result result;
        cache::PackedImage packed{};  ///< until it is in the cache
    };
    using JobPtr = std::shared_ptr<Job>;

    /// The job for this image: known already, answered by the cache, or queued (in front when `urgent`).
    JobPtr enqueue(const cache::ImageKey& key, runtime::CompileRequest request, bool urgent);
    JobPtr enqueue_reference(const Problem& problem, bool urgent);
    Result wait(const JobPtr& job);
    void store_finished();
    void hand_out(const JobPtr& job);
    void forget_oldest();
    void hurry(const JobPtr& job);
    void start_threads();

    void serve(runtime::CompilerProcess& compiler);
    JobPtr next_job();
    JobPtr take_job();
    void give_slot_back();
    Result compile(runtime::CompilerProcess& compiler, const runtime::CompileRequest& request);
    void finish(const JobPtr& job, Result result, cache::PackedImage packed);

    cache::Cache& cache_;
    CompilePoolOptions options_;
    runtime::UniqueFd stop_event_;
    mutable std::mutex mutex_;
    std::condition_variable work_;
    std::condition_variable finished_;
    bool stopping_ = false;
    std::deque<JobPtr> queue_;
    std::unordered_map<std::string, JobPtr> jobs_;  ///< by image key
    std::vector<JobPtr> unstored_;                  ///< finished, not in the cache yet
    std::deque<std::string> handed_out_;            ///< names of jobs whose images were asked for, in order
    std::int64_t held_bytes_ = 0;                   ///< of all images in `jobs_`
    std::int64_t compiled_ = 0;
    std::chrono::nanoseconds waited_{};
    std::deque<runtime::CompilerProcess> compilers_;  ///< one a thread
    std::vector<std::thread> threads_;
};

}  // namespace hone::tuner

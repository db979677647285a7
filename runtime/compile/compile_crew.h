// The compilers of prepare() calls that are under way: one in this process, which is at hand at once, and as
// many in processes of their own as cores and memory allow. It lives as long as such a call needs it, and its
// processes with it. The longest compiles are begun first, so that no compiler is left with one at the end
// while the others have nothing to do. Who compiled an image, or received it, packs it for the cache as well:
// a caller that has many of them would otherwise do so one after the other. What goes wrong with a process
// costs time: the image is compiled in this one, and no further process is started. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/compile/compiler_process.h"
#include "runtime/system/file_descriptor.h"

namespace hone::runtime {

/// One image. What it became may be read once CompileCrew::finish() has returned for it.
struct CompileJob {
    enum class State : std::uint8_t { waiting, running, done };
    cache::ImageKey key;
    CompileRequest request;
    std::chrono::microseconds takes{};  ///< about: compile_time()
    State state = State::waiting;
    CompiledImage image;
    cache::PackedImage packed;  ///< the same, to be stored under `key`
    std::exception_ptr error;   ///< NvrtcError, std::bad_alloc; nullptr: there is an image
    bool stored = false;        ///< the ImageProvider's note, under its lock
};

class CompileCrew {
  public:
    using JobPtr = std::shared_ptr<CompileJob>;

    /// `processes.program` empty: all is compiled in this process. No more than `most` compilers, this
    /// process among them; 0: compiler_count().
    CompileCrew(std::shared_ptr<const Nvrtc> nvrtc, CompilerProcessOptions processes, int most = 0);
    CompileCrew(const CompileCrew&) = delete;
    CompileCrew& operator=(const CompileCrew&) = delete;
    /// Kills what is still compiling.
    ~CompileCrew();

    /// The job for the image of this key: one that is known, or a new one.
    [[nodiscard]] JobPtr add(const cache::ImageKey& key, CompileRequest request);
    /// Waits until this one of the caller's jobs is done. The calling thread compiles meanwhile those of its
    /// jobs that no process has begun, while no other thread does so: it may come back late, but idle it is
    /// only where all of them have been begun.
    void finish(const CompileJob& wanted, std::span<const JobPtr> jobs);
    /// Why processes are used no more; empty: nothing is wrong.
    [[nodiscard]] std::string trouble() const;

  private:
    using Lock = std::unique_lock<std::mutex>;

    void start_threads();
    void start_thread();
    void serve(CompilerProcess& compiler) noexcept;
    [[nodiscard]] JobPtr next_job(Lock& lock);
    /// false: the process is at fault.
    [[nodiscard]] bool compile_there(CompilerProcess& compiler, CompileJob& job) noexcept;
    void note_trouble(const char* what) noexcept;
    void compile_here(CompileJob& job, Lock& lock);

    std::shared_ptr<const Nvrtc> nvrtc_;
    const CompilerProcessOptions options_;
    UniqueFd stop_event_;
    mutable std::mutex mutex_;            ///< guards all below
    std::condition_variable work_;        ///< for threads: a job, or the end
    std::condition_variable changed_;     ///< for callers: a job is done, or theirs
    std::map<std::string, JobPtr> jobs_;  ///< by the text of their keys
    std::deque<JobPtr> queue_;            ///< for processes; some may have been begun here meanwhile
    bool compiling_here_ = false;
    bool stopping_ = false;
    bool broken_ = false;
    std::string trouble_;
    int most_;  ///< compilers; 0: not asked yet
    int busy_threads_ = 0;
    std::deque<CompilerProcess> compilers_;  ///< one a thread
    std::vector<std::thread> threads_;
};

}  // namespace hone::runtime

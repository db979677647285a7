#include "runtime/compile/compile_crew.h"

#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "runtime/compile/compile_time.h"
#include "runtime/compile/compiler_count.h"

namespace hone::runtime {
namespace {

/// While it lives, threads that are started get no signal: an engine's handlers run on an engine's threads.
/// sigprocmask() is that of the thread on Linux, and pthread_sigmask() too new where it is not in libpthread.
class WithoutSignals {
  public:
    WithoutSignals() noexcept {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &former_);
    }
    WithoutSignals(const WithoutSignals&) = delete;
    WithoutSignals& operator=(const WithoutSignals&) = delete;
    ~WithoutSignals() { sigprocmask(SIG_SETMASK, &former_, nullptr); }

  private:
    sigset_t former_{};
};

using State = CompileJob::State;

bool is_waiting(const CompileCrew::JobPtr& job) { return job->state == State::waiting; }

/// The longest that nobody has begun, the first of equals; nullptr: there is none.
template <class Jobs>
CompileCrew::JobPtr longest_waiting(const Jobs& jobs) {
    CompileCrew::JobPtr longest;
    for (const CompileCrew::JobPtr& job : jobs) {
        if (is_waiting(job) && (longest == nullptr || job->takes > longest->takes)) longest = job;
    }
    return longest;
}

/// Without memory for it the image is there all the same, and is not kept.
void pack_image(CompileJob& job) noexcept {
    try {
        job.packed = cache::pack(job.key, {job.image.cubin, job.image.resources});
    } catch (const std::exception&) {
        job.packed = {};
    }
}

}  // namespace

CompileCrew::CompileCrew(std::shared_ptr<const Nvrtc> nvrtc, CompilerProcessOptions processes, int most)
    : nvrtc_(std::move(nvrtc)),
      options_(std::move(processes)),
      stop_event_(options_.program.empty() ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      most_(most) {}

CompileCrew::~CompileCrew() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    if (stop_event_) static_cast<void>(eventfd_write(stop_event_.get(), 1));
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

CompileCrew::JobPtr CompileCrew::add(const cache::ImageKey& key, CompileRequest request) {
    const std::lock_guard lock(mutex_);
    JobPtr& job = jobs_[key_text(key)];
    if (job == nullptr) {
        const std::chrono::microseconds takes = compile_time(request.source);
        job = std::make_shared<CompileJob>(CompileJob{.key = key,
                                                      .request = std::move(request),
                                                      .takes = takes,
                                                      .image = {},
                                                      .packed = {},
                                                      .error = nullptr});
        queue_.push_back(job);
        work_.notify_one();
    }
    return job;
}

void CompileCrew::finish(const CompileJob& wanted, std::span<const JobPtr> jobs) {
    Lock lock(mutex_);
    start_threads();
    while (wanted.state != State::done) {
        const JobPtr waiting = compiling_here_ ? nullptr : longest_waiting(jobs);
        if (waiting != nullptr) {
            compile_here(*waiting, lock);
        } else {
            changed_.wait(lock);
        }
    }
}

std::string CompileCrew::trouble() const {
    const std::lock_guard lock(mutex_);
    return broken_ && trouble_.empty() ? "out of memory" : trouble_;
}

/// As many as have something to do: one job is for this process, unless that has one.
void CompileCrew::start_threads() {
    std::erase_if(queue_, [](const JobPtr& job) { return !is_waiting(job); });
    const int idle = static_cast<int>(threads_.size()) - busy_threads_;
    int wanted = static_cast<int>(queue_.size()) - (compiling_here_ ? 0 : 1) - idle;
    if (wanted <= 0 || broken_ || !stop_event_) return;
    if (most_ == 0) most_ = compiler_count();
    wanted = std::min(wanted, most_ - 1 - static_cast<int>(threads_.size()));
    try {
        for (; wanted > 0; --wanted) start_thread();
    } catch (const std::system_error&) {  // the compilers that there are do all of it
    } catch (const std::bad_alloc&) {     // the same
    }
}

void CompileCrew::start_thread() {
    threads_.reserve(threads_.size() + 1);
    CompilerProcess& compiler = compilers_.emplace_back(options_);
    const WithoutSignals without_signals;
    threads_.emplace_back([this, &compiler] { serve(compiler); });
}

void CompileCrew::serve(CompilerProcess& compiler) noexcept {
    Lock lock(mutex_);
    while (const JobPtr job = next_job(lock)) {
        lock.unlock();
        const bool compiled = compile_there(compiler, *job);
        lock.lock();
        --busy_threads_;
        job->state = compiled ? State::done : State::waiting;
        changed_.notify_all();
    }
    lock.unlock();
    compiler.stop();
}

CompileCrew::JobPtr CompileCrew::next_job(Lock& lock) {
    while (true) {
        std::erase_if(queue_, [](const JobPtr& job) { return !is_waiting(job); });
        if (stopping_ || broken_) return nullptr;
        if (!queue_.empty()) break;
        work_.wait(lock);
    }
    JobPtr job = longest_waiting(queue_);
    job->state = State::running;
    ++busy_threads_;
    return job;
}

bool CompileCrew::compile_there(CompilerProcess& compiler, CompileJob& job) noexcept {
    try {
        job.image = compiler.compile(job.request, stop_event_.get());
        pack_image(job);
        return true;
    } catch (const NvrtcError&) {
        job.error = std::current_exception();
        return true;
    } catch (const std::exception& error) {
        note_trouble(error.what());
    } catch (...) {
        note_trouble("an unknown exception");
    }
    return false;
}

void CompileCrew::note_trouble(const char* what) noexcept {
    const std::lock_guard lock(mutex_);
    if (std::exchange(broken_, true)) return;
    work_.notify_all();
    try {
        trouble_ = what;
    } catch (const std::bad_alloc&) {  // trouble() has words for it
    }
}

void CompileCrew::compile_here(CompileJob& job, Lock& lock) {
    compiling_here_ = true;
    job.state = State::running;
    lock.unlock();
    try {
        job.image = compile(*nvrtc_, job.request);
        pack_image(job);
    } catch (...) {
        job.error = std::current_exception();
    }
    lock.lock();
    compiling_here_ = false;
    job.state = State::done;
    changed_.notify_all();
}

}  // namespace hone::runtime

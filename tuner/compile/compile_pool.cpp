#include "tuner/compile/compile_pool.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "kernel_templates/catalog.h"
#include "runtime/compile/compile_time.h"
#include "runtime/compile/compiler_count.h"
#include "runtime/workers/program.h"

namespace hone::tuner {
namespace {

using cache::TrialStatus;

constexpr std::int64_t expected_bytes = 100'000;  // of an image
constexpr std::string_view harness_source = "harness/harness.cu";
constexpr std::size_t enough_jobs = 4;  // waiting, for each compiler
constexpr std::chrono::milliseconds stop_interval{100};

/// Somebody waits for it.
constexpr runtime::Clock::time_point at_once = runtime::Clock::time_point::min();

/// Smaller is sooner. What is late already goes first, by when it is needed: at the start of a run that is
/// everything, and where compilers are behind for good, too. The rest goes by the latest moment at which its
/// compile may begin.
std::pair<bool, runtime::Clock::time_point> urgency(std::chrono::microseconds takes,
                                                    runtime::Clock::time_point needed,
                                                    runtime::Clock::time_point now) {
    if (needed <= now + takes) return {false, needed};
    return {true, needed - takes};
}

ImageSource::Result failed(std::string detail) {
    return {.status = TrialStatus::compile_failed, .detail = std::move(detail), .image = {}};
}

ImageSource::Result failed_by_accident(std::string detail) {
    ImageSource::Result result = failed(std::move(detail));
    result.is_accident = true;
    return result;
}

/// Compressed here, by a thread that waits for a compiler anyway: it takes a millisecond that the measuring
/// thread would lose. Nothing to store when the compile failed.
cache::PackedImage packed_image(const cache::ImageKey& key, ImageSource::Result& result) {
    if (result.status != TrialStatus::ok) return {};
    try {
        return pack(key, result.image);
    } catch (const std::bad_alloc&) {  // a thread has nobody to throw to
        result = failed_by_accident("out of memory");
        return {};
    }
}

}  // namespace

CompilePool::CompilePool(cache::Cache& cache, CompilePoolOptions options)
    : cache_(cache), options_(std::move(options)), stop_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (options_.workers <= 0) options_.workers = runtime::compiler_count();
}

CompilePool::~CompilePool() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        queue_.clear();
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop_event_.get(), &one, sizeof one);
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    try {
        store_finished();
    } catch (const std::exception&) {  // the images are lost, nothing else
    }
}

bool CompilePool::has_room() const {
    const std::lock_guard lock(mutex_);
    const std::int64_t coming = static_cast<std::int64_t>(queue_.size()) * expected_bytes;
    return needed_bytes_ + coming < options_.image_bytes;
}

bool CompilePool::is_short_of_work() const {
    const std::lock_guard lock(mutex_);
    return queue_.size() < enough_jobs * static_cast<std::size_t>(options_.workers);
}

CompilePool::User CompilePool::add_user() {
    const std::lock_guard lock(callers_);
    used_.emplace_back();
    return used_.size() - 1;
}

void CompilePool::prefetch(User user, const Problem& problem, const std::vector<Candidate>& candidates,
                           std::chrono::milliseconds until) {
    const runtime::Clock::time_point needed = runtime::Clock::now() + until;
    const std::lock_guard lock(callers_);
    if (options_.with_references && !candidates.empty()) {
        enqueue_harness(user, needed);
        enqueue_reference(user, problem, needed);
    }
    for (const Candidate& candidate : candidates) enqueue_candidate(user, problem, candidate, needed);
    store_finished();
}

bool CompilePool::is_ready(const Problem& problem) const {
    const std::lock_guard callers(callers_);
    const auto needs = needs_.find(to_string(problem));
    if (needs == needs_.end()) return false;
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(needs->second, [](const JobPtr& job) { return job->state == State::done; });
}

ImageSource::Result CompilePool::get(User user, const Problem& problem, const Candidate& candidate) {
    const runtime::Clock::time_point since = runtime::Clock::now();
    std::unique_lock lock(callers_);
    const JobPtr job = enqueue_candidate(user, problem, candidate, at_once);
    lock.unlock();
    return wait(user, job, since);
}

ImageSource::Result CompilePool::reference(User user, const Problem& problem) {
    const runtime::Clock::time_point since = runtime::Clock::now();
    std::unique_lock lock(callers_);
    const JobPtr job = enqueue_reference(user, problem, at_once);
    lock.unlock();
    return wait(user, job, since);
}

bool CompilePool::has_reference(const Problem& problem) const {
    const cache::ImageKey key = runtime::reference_image_key(problem, options_.arch, options_.nvrtc);
    const std::lock_guard callers(callers_);
    const auto job = jobs_.find(runtime::key_text(key));
    if (job == jobs_.end()) return false;
    const std::lock_guard lock(mutex_);
    return job->second->state == State::done;
}

CompilePool::JobPtr CompilePool::enqueue_candidate(User user, const Problem& problem,
                                                   const Candidate& candidate,
                                                   runtime::Clock::time_point needed) {
    return need(problem,
                enqueue(user, runtime::candidate_image_key(problem, candidate, options_.arch, options_.nvrtc),
                        runtime::candidate_request(problem, candidate, options_.arch), needed));
}

CompilePool::JobPtr CompilePool::enqueue_reference(User user, const Problem& problem,
                                                   runtime::Clock::time_point needed) {
    return need(problem, enqueue(user, runtime::reference_image_key(problem, options_.arch, options_.nvrtc),
                                 runtime::reference_request(problem, options_.arch), needed));
}

CompilePool::JobPtr CompilePool::need(const Problem& problem, const JobPtr& job) {
    std::string name = to_string(problem);
    if (job->needed_for.insert(name).second) needs_[std::move(name)].push_back(job);
    return job;
}

/// What other problems need, too, stays. What nobody has begun to compile is not compiled.
void CompilePool::release(const Problem& problem) {
    const std::lock_guard lock(callers_);
    store_finished();
    const auto needs = needs_.extract(to_string(problem));
    if (!needs) return;
    for (const JobPtr& job : needs.mapped()) {
        job->needed_for.erase(needs.key());
        if (job->needed_for.empty() && !withdraw(job)) make_spare(job);
    }
    forget_oldest();
}

/// False where it is being compiled, or has been, or somebody waits for it.
bool CompilePool::withdraw(const JobPtr& job) {
    const std::lock_guard lock(mutex_);
    if (job->state != State::queued || job->needed == at_once) return false;
    std::erase(queue_, job);
    jobs_.erase(runtime::key_text(job->key));
    return true;
}

CompilePool::JobPtr CompilePool::enqueue_harness(User user, runtime::Clock::time_point needed) {
    const EmbeddedSource* source = find_source(harness_source);
    if (source == nullptr) return nullptr;
    const cache::ImageKey key{.template_hash = std::string(source->hash),
                              .static_fields = {},
                              .candidate = {},
                              .arch = to_string(options_.arch),
                              .nvrtc = options_.nvrtc,
                              .options = runtime::compile_options(options_.arch)};
    return enqueue(user, key, {.source = std::string(harness_source), .constants = {}, .arch = options_.arch},
                   needed);
}

void CompilePool::prefetch_harness(User user) {
    const std::lock_guard lock(callers_);
    enqueue_harness(user, runtime::Clock::now());
}

ImageSource::Result CompilePool::harness(User user) {
    const runtime::Clock::time_point since = runtime::Clock::now();
    std::unique_lock lock(callers_);
    const JobPtr job = enqueue_harness(user, at_once);
    lock.unlock();
    if (job == nullptr) return failed("this build has no " + std::string(harness_source));
    return wait(user, job, since);
}

std::int64_t CompilePool::compiled(User user) const {
    const std::lock_guard lock(callers_);
    return used_[user].compiled;
}

std::chrono::nanoseconds CompilePool::waited(User user) const {
    const std::lock_guard lock(callers_);
    return used_[user].waited;
}

CompilePool::JobPtr CompilePool::enqueue(User user, const cache::ImageKey& key,
                                         runtime::CompileRequest request, runtime::Clock::time_point needed) {
    const std::string name = runtime::key_text(key);
    if (const auto found = jobs_.find(name); found != jobs_.end()) {
        hurry(*found->second, needed);
        return found->second;
    }
    const std::chrono::microseconds takes = runtime::compile_time(request.source);
    auto job = std::make_shared<Job>(Job{.request = std::move(request),
                                         .key = key,
                                         .user = user,
                                         .takes = takes,
                                         .needed = needed,
                                         .result = {}});
    if (std::optional<cache::Image> image = cache_.image(key)) {
        jobs_.emplace(name, job);
        job->result = {.detail = {}, .image = std::move(*image), .from_cache = true};
        job->in_cache = true;
        const std::lock_guard lock(mutex_);
        job->state = State::done;
        held_bytes_ += std::ssize(job->result.image.cubin);
        needed_bytes_ += std::ssize(job->result.image.cubin);
        return job;
    }
    start_threads();
    jobs_.emplace(name, job);  // nobody waits for one that is not queued
    const std::lock_guard lock(mutex_);
    queue_.push_back(job);
    work_.notify_one();
    return job;
}

void CompilePool::hurry(Job& job, runtime::Clock::time_point needed) {
    const std::lock_guard lock(mutex_);
    job.needed = std::min(job.needed, needed);
}

/// What the user waits for others that ask or store is waiting for its image, too.
ImageSource::Result CompilePool::wait(User user, const JobPtr& job, runtime::Clock::time_point since) {
    const bool is_done = wait_until_done(*job);
    const std::lock_guard lock(callers_);
    store_finished();
    make_spare(job);
    forget_oldest();
    used_[user].waited += runtime::Clock::now() - since;
    if (!is_done) return failed("stopped");
    if (job->result.is_accident) {  // the next size that wants it tries again
        const auto known = jobs_.find(runtime::key_text(job->key));
        if (known != jobs_.end() && known->second == job) jobs_.erase(known);
    }
    return job->result;
}

/// A signal's handler sets the flag and can wake nobody, so it is looked at ever again.
bool CompilePool::wait_until_done(const Job& job) {
    const auto is_done = [&] { return job.state == State::done; };
    std::unique_lock lock(mutex_);
    while (!finished_.wait_for(lock, stop_interval, is_done)) {
        if (options_.stop != nullptr && *options_.stop) return false;
    }
    return true;
}

void CompilePool::make_spare(const JobPtr& job) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(job->is_spare, true)) return;
    spare_.push_back(runtime::key_text(job->key));
    if (job->state == State::done) needed_bytes_ -= std::ssize(job->result.image.cubin);
}

/// What is spare, and can be had from the cache again.
void CompilePool::forget_oldest() {
    const std::lock_guard lock(mutex_);
    while (held_bytes_ > options_.image_bytes && !spare_.empty()) {
        const auto job = jobs_.find(spare_.front());
        spare_.pop_front();
        if (job == jobs_.end() || !job->second->in_cache) continue;
        held_bytes_ -= std::ssize(job->second->result.image.cubin);
        jobs_.erase(job);
    }
}

/// A cache that cannot be written (full, read-only) costs a compile next time, no more; one that somebody
/// holds is waited for once a minute.
void CompilePool::store_finished() {
    std::vector<JobPtr> jobs;
    {
        const std::lock_guard lock(mutex_);
        jobs.swap(unstored_);
    }
    for (const JobPtr& job : jobs) {
        ++used_[job->user].compiled;
        if (job->result.status != TrialStatus::ok || !cache_.writable()) continue;
        try {
            cache_.store_image(job->key, std::exchange(job->packed, {}));
            job->in_cache = true;
        } catch (const cache::CacheError&) {
        }
    }
}

void CompilePool::start_threads() {
    if (!threads_.empty()) return;
    for (int i = 0; i < options_.workers; ++i) {
        compilers_.emplace_back(runtime::CompilerProcessOptions{.program = runtime::own_worker_program(),
                                                                .time_limit = options_.time_limit,
                                                                .in_background = true});
    }
    for (runtime::CompilerProcess& compiler : compilers_) {
        try {
            threads_.emplace_back([&] { serve(compiler); });
        } catch (const std::system_error&) {  // no more threads: those that there are do all of it
            if (threads_.empty()) throw;
            return;
        }
    }
}

void CompilePool::serve(runtime::CompilerProcess& compiler) {
    while (const JobPtr job = next_job()) {
        Result result = compile(compiler, job->request);
        cache::PackedImage packed = packed_image(job->key, result);
        finish(job, std::move(result), std::move(packed));
    }
    compiler.stop();
}

/// With mutex_ held, and a queue that is not empty.
std::vector<CompilePool::JobPtr>::iterator CompilePool::most_urgent() {
    const runtime::Clock::time_point now = runtime::Clock::now();
    return std::ranges::min_element(
        queue_, {}, [&](const JobPtr& waiting) { return urgency(waiting->takes, waiting->needed, now); });
}

CompilePool::JobPtr CompilePool::next_job() {
    std::unique_lock lock(mutex_);
    work_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) return nullptr;
    const auto first = most_urgent();
    JobPtr job = *first;
    queue_.erase(first);
    job->state = State::running;
    return job;
}

/// Once more where the compiler met with an accident: one that was killed for want of memory was one of many.
ImageSource::Result CompilePool::compile(runtime::CompilerProcess& compiler,
                                         const runtime::CompileRequest& request) {
    Result result = compile_once(compiler, request);
    return result.is_accident ? compile_once(compiler, request) : result;
}

/// A thread has nobody to throw to.
ImageSource::Result CompilePool::compile_once(runtime::CompilerProcess& compiler,
                                              const runtime::CompileRequest& request) {
    try {
        runtime::CompiledImage image = compiler.compile(request, stop_event_.get());
        return {.detail = {}, .image = {.cubin = std::move(image.cubin), .resources = image.resources}};
    } catch (const runtime::CompilerAccident& accident) {
        return failed_by_accident(accident.what());
    } catch (const std::bad_alloc&) {
        return failed_by_accident("out of memory");
    } catch (const std::exception& error) {
        return failed(error.what());
    }
}

void CompilePool::finish(const JobPtr& job, Result result, cache::PackedImage packed) {
    const std::lock_guard lock(mutex_);
    job->result = std::move(result);
    job->packed = std::move(packed);
    job->state = State::done;
    held_bytes_ += std::ssize(job->result.image.cubin);
    if (!job->is_spare) needed_bytes_ += std::ssize(job->result.image.cubin);
    if (!stopping_) unstored_.push_back(job);
    finished_.notify_all();
}

}  // namespace hone::tuner

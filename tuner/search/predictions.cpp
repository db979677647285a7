#include "tuner/search/predictions.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "kernel_templates/space.h"
#include "tuner/search/shortlist.h"

namespace hone::tuner {
namespace {

constexpr unsigned cores_a_thread = 4;  // the others compile
constexpr unsigned most_threads = 16;
constexpr std::size_t most_kept = 1024;  // candidates of a problem

/// The best, or where the pool is larger a shortlist of it.
std::vector<Candidate> best_of(const std::vector<RankedCandidate>& ranked, std::size_t best,
                               std::size_t pool) {
    std::vector<MeasuredKernel> first;
    const std::size_t count = std::min(ranked.size(), std::max(best, pool));
    for (std::size_t i = 0; i < count; ++i) first.push_back({ranked[i].candidate, ranked[i].predicted_us});
    if (pool > best) first = shortlist(first, best);
    std::vector<Candidate> chosen;
    for (const MeasuredKernel& kernel : first) chosen.push_back(kernel.candidate);
    return chosen;
}

/// The variant's first, up to so many, that are not slower than `limit_us`.
std::vector<RankedCandidate> first_of(const Variant* variant, const std::vector<RankedCandidate>& ranked,
                                      std::size_t count, double limit_us) {
    std::vector<RankedCandidate> first;
    for (const RankedCandidate& next : ranked) {
        if (first.size() == count || next.predicted_us > limit_us) break;
        if (next.candidate.variant == variant) first.push_back(next);
    }
    return first;
}

}  // namespace

std::vector<Candidate> best_predictions(const Problem& problem, const DeviceTraits& traits,
                                        PredictionShare share) {
    const std::vector<RankedCandidate> ranked = ranked_space(problem, traits);
    std::vector<Candidate> best = best_of(ranked, share.best, share.pool);
    if (ranked.empty()) return best;
    const double limit_us = share.variant_limit * ranked.front().predicted_us;
    for (const Variant* variant : problem.family->variants) {
        const std::vector<RankedCandidate> first =
            first_of(variant, ranked, std::max(share.of_each_variant, share.variant_pool), limit_us);
        std::ranges::move(best_of(first, share.of_each_variant, share.variant_pool),
                          std::back_inserter(best));
    }
    return best;
}

Predictions::Predictions(const DeviceTraits& traits) : traits_(traits) {}

Predictions::~Predictions() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

/// With the mutex held.
Predictions::Job& Predictions::job_of(const Problem& problem, PredictionShare share) {
    const std::string name =
        fmt::format("{} {} {} {} {} {}", to_string(problem), share.best, share.of_each_variant,
                    share.variant_limit, share.pool, share.variant_pool);
    return jobs_.try_emplace(name, Job{.problem = problem, .share = share, .candidates = {}}).first->second;
}

void Predictions::prefetch(const Problem& problem, PredictionShare share, std::size_t place) {
    if (share == PredictionShare{} || share.best > most_kept) return;
    const std::lock_guard lock(mutex_);
    Job& job = job_of(problem, share);
    if (job.state != State::idle) return;
    job.state = State::queued;
    job.place = place;
    queue_.insert(std::ranges::upper_bound(queue_, place, {}, &Job::place), &job);
    const unsigned wanted =
        std::clamp(std::thread::hardware_concurrency() / cores_a_thread, 1U, most_threads);
    try {
        if (threads_.size() < wanted) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {  // no more threads: get() predicts what nobody has begun
    }
    work_.notify_one();
}

std::vector<Candidate> Predictions::get(const Problem& problem, PredictionShare share) {
    if (share == PredictionShare{}) return {};
    if (share.best > most_kept) return best_predictions(problem, traits_, share);
    std::unique_lock lock(mutex_);
    Job& job = job_of(problem, share);
    while (job.state != State::done) {
        if (job.state == State::idle || job.state == State::queued) {
            std::erase(queue_, &job);
            work_on(job, lock);
        } else {
            changed_.wait(lock, [&] { return job.state != State::running; });
        }
    }
    return job.candidates;
}

void Predictions::work_on(Job& job, std::unique_lock<std::mutex>& lock) {
    job.state = State::running;
    lock.unlock();
    try {
        std::vector<Candidate> candidates = best_predictions(job.problem, traits_, job.share);
        lock.lock();
        job.candidates = std::move(candidates);
        job.state = State::done;
    } catch (...) {  // whoever waits for it tries it again
        lock.lock();
        job.state = State::idle;
        changed_.notify_all();
        throw;
    }
    changed_.notify_all();
}

void Predictions::serve() {
    std::unique_lock lock(mutex_);
    while (true) {
        work_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
        if (stopping_) return;
        Job& job = *queue_.front();
        queue_.pop_front();
        try {
            work_on(job, lock);
        } catch (const std::exception&) {  // get() fails likewise, and has a caller
        }
    }
}

}  // namespace hone::tuner

#include "tuner/search/covering.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "cache/process.h"
#include "kernel_templates/space.h"
#include "tuner/search/cover.h"

namespace hone::tuner {
namespace {

constexpr std::size_t kernels_of_size = 4;  // that are tried at all others, the winner among them

void add_new(const Candidate& candidate, std::vector<Candidate>& list) {
    if (std::ranges::find(list, candidate) == list.end()) list.push_back(candidate);
}

std::vector<Candidate> winners_of(const std::vector<ProblemResult*>& sizes) {
    std::vector<Candidate> winners;
    for (const ProblemResult* size : sizes)
        add_new(*parse_candidate(*size->problem.family, size->winner->candidate), winners);
    return winners;
}

/// What may serve all sizes: the winners, then who came close to them.
std::vector<Candidate> pool_of(const std::vector<ProblemResult*>& sizes, const RunContext& run) {
    std::vector<Candidate> pool = winners_of(sizes);
    for (const ProblemResult* size : sizes) {
        for (const MeasuredKernel& kernel :
             shortlist(run.knowledge.raced_kernels(size->problem), kernels_of_size))
            add_new(kernel.candidate, pool);
    }
    return pool;
}

/// Microseconds of each kernel of the pool; infinity where there is no such time. Adds to `launched`.
std::vector<double> timed(const Problem& problem, const std::vector<Candidate>& pool, RunContext& run,
                          std::int64_t& launched) {
    const DeviceTraits& traits = run.measurer.device().traits;
    CandidateList list{.order = {}, .fallback = fallback(problem, traits), .incumbent = {}};
    for (const Candidate& candidate : pool) {
        if (allowed(problem, candidate, traits) && run.measurer.can_measure(problem, candidate))
            list.order.push_back(candidate);
    }
    if (run.measurer.needs_images()) run.images.prefetch(problem, list.order);
    ProblemTuner tuner(problem, list, run);
    tuner.time_all();
    launched += tuner.launched();
    const std::vector<MeasuredKernel> raced = run.knowledge.raced_kernels(problem);
    std::vector<double> us;
    for (const Candidate& candidate : pool) {
        const auto found = std::ranges::find(raced, candidate, &MeasuredKernel::candidate);
        us.push_back(found == raced.end() ? std::numeric_limits<double>::infinity() : found->us);
    }
    return us;
}

/// A stored trial becomes that of the winner.
void crown(const Candidate& candidate, RunContext& run, ProblemResult& result) {
    if (to_string(candidate) == result.winner->candidate) return;
    cache::Trial winner = *run.knowledge.valid_trial(result.problem, candidate);
    winner.winner = true;
    winner.stage = cache::Stage::final_round;
    winner.chain.clear();
    winner.created_at = cache::now_ms();
    run.cache.store(winner);
    run.knowledge.learn(winner);
    result.runner_up = std::exchange(result.winner, std::move(winner));
    result.ties = run.knowledge.stored_ties(result.problem, *result.winner);
}

void choose(const std::vector<ProblemResult*>& sizes, std::size_t limit, RunContext& run,
            CoverResult& result) {
    const std::vector<Candidate> pool = pool_of(sizes, run);
    TimesBySize us;
    for (const ProblemResult* size : sizes)
        us.push_back(timed(size->problem, pool, run, result.measurements));
    if (run.stop()) {
        result.failure = "stopped before all sizes were measured";
        return;
    }
    const std::optional<Cover> found = cover(us, limit);
    if (!found) {
        result.failure =
            fmt::format("no {} of the {} kernels that were tried were found to serve all {} sizes", limit,
                        pool.size(), sizes.size());
        return;
    }
    for (const std::size_t kernel : found->kernels) result.kernels.push_back(to_string(pool[kernel]));
    result.mean_loss = found->mean_loss;
    result.worst_loss = found->worst_loss;
    for (std::size_t i = 0; i < sizes.size(); ++i) crown(pool[found->kernel_of_size[i]], run, *sizes[i]);
}

}  // namespace

CoverResult cover_sizes(const std::vector<ProblemResult*>& sizes, std::size_t limit, RunContext& run) {
    CoverResult result{.problem = sizes.front()->problem, .sizes = sizes.size()};
    const std::vector<Candidate> winners = winners_of(sizes);
    if (winners.size() > limit) {
        choose(sizes, limit, run, result);
        return result;
    }
    for (const Candidate& winner : winners) result.kernels.push_back(to_string(winner));
    const bool is_of_this_run = std::ranges::none_of(sizes, &ProblemResult::reused);
    if (is_of_this_run) result.mean_loss = result.worst_loss = 0;
    return result;
}

}  // namespace hone::tuner

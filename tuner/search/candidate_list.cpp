#include "tuner/search/candidate_list.h"

#include <algorithm>
#include <cstdint>

#include "kernel_templates/space.h"
#include "tuner/search/problem_tuner.h"

namespace hone::tuner {
namespace {

void add(std::vector<Candidate>& list, const Candidate& candidate) {
    if (std::ranges::find(list, candidate) == list.end()) list.push_back(candidate);
}

/// A few of every variant, so that a model that misjudges one variant as a whole cannot keep it out.
void add_best_of(const Variant& variant, const std::vector<RankedCandidate>& ranked, int seats,
                 std::vector<Candidate>& list) {
    int taken = 0;
    for (const RankedCandidate& next : ranked) {
        if (taken == seats) return;
        if (next.candidate.variant != &variant) continue;
        add(list, next.candidate);
        ++taken;
    }
}

int seats_of_a_variant(Effort effort) {
    return effort == Effort::known ? 0 : effort == Effort::quick ? 2 : 8;
}
std::size_t seed_limit(Effort effort) { return effort == Effort::known ? 2 : 8; }

}  // namespace

std::size_t candidate_limit(Effort effort) {
    switch (effort) {
        case Effort::quick: return 16;
        case Effort::standard: return 128;
        case Effort::exhaustive: return SIZE_MAX;
        case Effort::known: return 0;
    }
    return 128;
}

CandidateList list_candidates(const Problem& problem, const RunContext& run) {
    const DeviceTraits& traits = run.measurer.device().traits;
    CandidateList list{.order = {}, .fallback = fallback(problem, traits)};
    std::vector<Candidate> wanted;
    if (list.fallback) wanted.push_back(*list.fallback);
    for (const Candidate& seed : run.knowledge.seeds(problem, seed_limit(run.options.effort)))
        add(wanted, seed);
    const std::vector<RankedCandidate> ranked = ranked_space(problem, traits);
    const std::size_t limit = std::min(ranked.size(), candidate_limit(run.options.effort));
    for (std::size_t i = 0; i < limit; ++i) add(wanted, ranked[i].candidate);
    const int seats = seats_of_a_variant(run.options.effort);
    for (const Variant* variant : problem.family->variants) add_best_of(*variant, ranked, seats, wanted);
    std::erase_if(wanted, [&](const Candidate& c) { return !run.measurer.can_measure(problem, c); });

    std::vector<Candidate> last;
    for (const Knowledge::Culprit& culprit : run.knowledge.culprits(problem)) {
        if (allowed(problem, culprit.candidate, traits)) add(last, culprit.candidate);
    }
    for (const Candidate& candidate : wanted) {
        if (std::ranges::find(last, candidate) == last.end()) list.order.push_back(candidate);
    }
    list.first_culprit = list.order.size();
    list.order.insert(list.order.end(), last.begin(), last.end());
    return list;
}

std::optional<Predicted> best_predicted(const Problem& problem, const CandidateList& candidates,
                                        const Measurer& measurer) {
    std::optional<Predicted> best;
    for (const Candidate& candidate : candidates.order) {
        const std::optional<double> us = measurer.least_us(problem, candidate);
        if (us && (!best || *us < best->us)) best = {candidate, *us};
    }
    return best;
}

std::vector<Candidate> surely_tried(const Problem& problem, const CandidateList& candidates,
                                    const Measurer& measurer) {
    const std::optional<Predicted> best = best_predicted(problem, candidates, measurer);
    if (!best) return candidates.order;
    std::vector<Candidate> tried;
    for (const Candidate& candidate : candidates.order) {
        const std::optional<double> us = measurer.least_us(problem, candidate);
        if (candidates.fallback == candidate || !us || *us <= best->us) tried.push_back(candidate);
    }
    return tried;
}

}  // namespace hone::tuner

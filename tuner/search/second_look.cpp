#include "tuner/search/second_look.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "kernel_templates/calibration.h"
#include "kernel_templates/space.h"

namespace hone::tuner {
namespace {

// Chosen by replaying sweeps of an H100 and an H200 with noise; docs/performance.md has the figures.
constexpr std::size_t most_recommended = 4;
constexpr std::size_t most_neighbours = 2;
constexpr std::size_t most_neighbours_of_new_ones = 8;  // where this problem was never raced
constexpr std::size_t most_again = 3;                   // of those that the winner has beaten
constexpr double beaten_narrowly = 1.08;  // times the winner: a disturbed race may be wrong by so much
constexpr double long_call_us = 100;  // new kernels of slower calls won nothing, and took a third of the time
constexpr double another_shape = 1;   // doublings that another shape counts for
constexpr double doubt = 0.05;        // weight of the assumption that a kernel is
constexpr double doubtful_ratio = 1.15;     // so far behind
constexpr double no_recommendation = 1.10;  // times the best: who is expected there is not tried
constexpr double alike = 0.01;              // a difference of ratios that another run might not see

/// What races say of a kernel: times over those of their best, weighted by how near they are.
struct Recommendation {
    double weighted_ratios = 0;
    double weights = 0;

    [[nodiscard]] double ratio() const {
        return (weighted_ratios + doubt * doubtful_ratio) / (weights + doubt);
    }
};

/// By candidate text. Races that this run had of other problems of the family.
std::map<std::string, Recommendation> recommendations(const Problem& problem, const Knowledge& knowledge) {
    std::map<std::string, Recommendation> found;
    for (const Precedent& precedent : knowledge.precedents(problem)) {
        if (!precedent.race->of_this_run || precedent.race->problem == problem) continue;
        const std::vector<Knowledge::TimedKernel> kernels = knowledge.timed_kernels(precedent.race->problem);
        if (kernels.empty()) continue;
        const double best_us = std::ranges::min_element(kernels, {}, &Knowledge::TimedKernel::us)->us;
        const double doublings = precedent.doublings + (precedent.same_shape ? 0 : another_shape);
        const double weight = std::exp(-doublings);
        for (const Knowledge::TimedKernel& kernel : kernels) {
            Recommendation& one = found[*kernel.candidate];
            one.weighted_ratios += weight * kernel.us / best_us;
            one.weights += weight;
        }
    }
    return found;
}

/// Takes those that may run here, can be measured and were not tried, each once.
class Untried {
  public:
    Untried(const Problem& problem, const RunContext& run) : problem_(problem), run_(run) {}

    bool add(const Candidate& candidate) {
        const bool is_new = run_.knowledge.valid_trial(problem_, candidate) == nullptr &&
                            std::ranges::find(list_, candidate) == list_.end();
        const bool may_run = is_new && allowed(problem_, candidate, run_.measurer.device().traits);
        if (!may_run || !run_.measurer.can_measure(problem_, candidate)) return false;
        list_.push_back(candidate);
        return true;
    }
    /// Also one that was tried.
    void add_again(const Candidate& candidate) { list_.push_back(candidate); }
    [[nodiscard]] std::vector<Candidate> take() { return std::move(list_); }

  private:
    const Problem& problem_;
    const RunContext& run_;
    std::vector<Candidate> list_;
};

/// The closest of those that the winner has beaten: whatever disturbed one race does not disturb the next.
void add_beaten(const Problem& problem, const cache::Trial& winner, const Knowledge& knowledge,
                Untried& untried) {
    std::vector<MeasuredKernel> beaten = knowledge.raced_kernels(problem);
    std::erase_if(beaten, [&](const MeasuredKernel& kernel) {
        return kernel.us > beaten_narrowly * winner.timing.median_us ||
               to_string(kernel.candidate) == winner.candidate;
    });
    std::ranges::stable_sort(beaten, {}, &MeasuredKernel::us);
    beaten.resize(std::min(beaten.size(), most_again));
    for (const MeasuredKernel& kernel : beaten) untried.add_again(kernel.candidate);
}

/// Those whose images are there for other sizes; of those that did equally well the first by their texts.
void add_recommended(const Problem& problem, const RunContext& run, Untried& untried) {
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [text, recommendation] : recommendations(problem, run.knowledge)) {
        if (recommendation.ratio() < no_recommendation)
            order.emplace_back(std::round(recommendation.ratio() / alike), text);
    }
    std::ranges::sort(order);
    std::size_t added = 0;
    for (const auto& [_, text] : order) {
        if (added == most_recommended) return;
        const std::optional<Candidate> candidate = parse_candidate(*problem.family, text);
        if (candidate && run.asked.has(problem, *candidate) && untried.add(*candidate)) ++added;
    }
}

/// One tunable of one of these has another of its values. Those first that are expected to gain most by it:
/// what a prediction misjudges about a leader it misjudges about its neighbours, too.
std::vector<RankedCandidate> neighbours(const Problem& problem, const std::vector<Candidate>& leaders,
                                        const DeviceTraits& traits) {
    std::vector<RankedCandidate> found;
    for (const Candidate& leader : leaders) {
        const double leader_us = predicted_us(problem, leader, traits);
        for (std::size_t i = 0; i < leader.variant->tunables.size(); ++i) {
            for (const Candidate& other : with_other_values(problem, leader, i, traits))
                found.push_back({other, predicted_us(problem, other, traits) / leader_us});
        }
    }
    std::ranges::sort(found, {}, [](const RankedCandidate& ranked) {
        return std::pair(ranked.predicted_us, to_string(ranked.candidate));
    });
    return found;
}

/// The winner and who is level with it, further than ties reach: any of them wins another run, which has to
/// have the same neighbours looked at.
std::vector<Candidate> leaders_of(const Problem& problem, const cache::Trial& winner,
                                  const Knowledge& knowledge) {
    std::vector<Candidate> leaders;
    for (const MeasuredKernel& kernel : knowledge.raced_kernels(problem)) {
        if (kernel.us <= (1 + cache::held_limit) * winner.timing.median_us)
            leaders.push_back(kernel.candidate);
    }
    return leaders;
}

void add_neighbours(const Problem& problem, const cache::Trial& winner, const RunContext& run,
                    Untried& untried) {
    const std::size_t most = was_raced(problem, run) ? most_neighbours : most_neighbours_of_new_ones;
    std::size_t added = 0;
    for (const RankedCandidate& near :
         neighbours(problem, leaders_of(problem, winner, run.knowledge), run.measurer.device().traits)) {
        if (added == most) break;
        if (untried.add(near.candidate)) ++added;
    }
}

}  // namespace

std::vector<Candidate> challengers(const Problem& problem, const cache::Trial& winner,
                                   const RunContext& run) {
    Untried untried(problem, run);
    add_beaten(problem, winner, run.knowledge, untried);
    if (winner.timing.median_us > long_call_us) return untried.take();
    add_recommended(problem, run, untried);
    add_neighbours(problem, winner, run, untried);
    return untried.take();
}

std::vector<Candidate> likely_challengers(const Problem& problem, const cache::Trial& winner,
                                          const RunContext& run) {
    Untried untried(problem, run);
    if (winner.timing.median_us <= long_call_us) add_neighbours(problem, winner, run, untried);
    return untried.take();
}

}  // namespace hone::tuner

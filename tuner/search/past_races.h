// Races that were run before, here or elsewhere: which problem, on which GPU, and which kernels came out
// ahead. What a race starts from. Problems and candidates that this build does not know are left out. Used by
// one thread.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cache/records.h"
#include "tuner/search/shortlist.h"

namespace hone::tuner {

struct PastRace {
    cache::GpuKey gpu;
    Problem problem;
    std::string winner_template;          ///< hash of the winner's variant
    std::vector<MeasuredKernel> kernels;  ///< the winner first, then those that raced it
    Problem shape;                        ///< the problem's static part
    std::array<double, max_fields> logs;  ///< of its fields, each one more, to base 2
    bool of_this_run = false;

    /// Whether the winner's kernel is still the one that was measured.
    [[nodiscard]] bool is_current() const;
};

/// A past race as another problem sees it.
struct Precedent {
    const PastRace* race = nullptr;
    bool same_gpu = false;  ///< of the kind that is tuned
    bool same_problem = false;
    bool same_shape = false;  ///< the static fields are the same
    double doublings = 0;     ///< between the sizes of both, over all sizes that choose a kernel
    double unlikeness = 0;    ///< doublings of all integers and 1 for each choice that differs
};

class PastRaces {
  public:
    explicit PastRaces(cache::GpuKey here) : here_(std::move(here)) {}

    /// Trials of one layer of the cache: those that won, the best of each key first (predicted ones are left
    /// out), and others of their races, anywhere between. Of the same problem on the same GPU the layer that
    /// is added first counts.
    void add(std::span<const cache::Trial> trials);
    /// A race of this run has ended so.
    void learn(const cache::Trial& winner);

    /// Races of the problem's family, the nearest first: those of the same shape by the doublings between
    /// their sizes, half a doubling more for another kind of GPU, then other shapes by unlikeness; of equally
    /// near ones those that were added first.
    [[nodiscard]] std::vector<Precedent> nearest(const Problem& problem) const;
    /// The nearest one that was stored, if it has the problem's shape, else any that was: who asks this of
    /// thousands of problems at once wants to know no more of other shapes.
    [[nodiscard]] std::optional<Precedent> nearest_stored(const Problem& problem) const;

  private:
    PastRace* find(const cache::TuningKey& key);
    void add_winner(const cache::Trial& winner, std::set<const PastRace*>& is_new);
    void add_other(const cache::Trial& other, const std::set<const PastRace*>& is_new);

    cache::GpuKey here_;
    std::map<std::string, std::deque<PastRace>, std::less<>> races_;  ///< by family
    std::map<std::string, PastRace*> by_key_;                         ///< those that were stored
    std::map<std::string, std::vector<const PastRace*>> by_shape_;    ///< of these, in the order of races_
    std::map<std::string, PastRace*> of_this_run_;                    ///< by key, too
};

}  // namespace hone::tuner

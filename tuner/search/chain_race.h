// Which kernels are best together, where they run: in a model's step, one behind the other. Goes from place
// to place, tries what was proven there, and keeps what makes the whole step shorter. Knows no model: whoever
// replays steps answers through Chain. Used by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "kernel_templates/family.h"

namespace hone::tuner {

/// A model's step, which has one kernel in each place. Several may be ways to compute one step: each puts
/// itself and its kernels in place before it does what it is asked for.
class Chain {
  public:
    virtual ~Chain() = default;
    /// Microseconds of the step as it is, then with each of these in that place instead: `rounds` replays
    /// that take turns, none of one that cannot be launched or that the step does not do with. Does not
    /// return where the GPU does not survive one.
    [[nodiscard]] virtual std::vector<std::vector<double>> times(std::size_t place,
                                                                 const std::vector<Candidate>& candidates,
                                                                 int rounds) = 0;
    /// From now on the step has this kernel in that place.
    virtual void take(std::size_t place, const Candidate& candidate) = 0;
    /// The step as it is, and with all of these, one a place: as times().
    [[nodiscard]] virtual std::pair<std::vector<double>, std::vector<double>> beside(
        const std::vector<Candidate>& others, int rounds) = 0;
    /// From now on the step is computed this way.
    virtual void enter() = 0;
    /// Microseconds of the step as it is, and of another way to compute it as that is: as times(). Over
    /// several lengths of its sequences, where it has such.
    [[nodiscard]] virtual std::pair<std::vector<double>, std::vector<double>> against(Chain& other,
                                                                                      int rounds) = 0;
};

/// One kernel of a step, which runs in all layers.
struct ChainPlace {
    Problem problem;
    Candidate incumbent;                ///< whom the step has
    std::vector<Candidate> candidates;  ///< the others that may take its place, all of them proven
};

struct ChainOptions {
    int heat_rounds = 3;
    int final_rounds = 15;
    std::size_t finalists = 3;
    double least_gain = 0.002;  ///< of the whole step: who gains less leaves the place to who has it
    std::chrono::milliseconds limit{20000};  ///< no place is begun later
};

/// How a candidate fared in a place: the step's time over that of the step as it was then.
struct ChainTrial {
    std::size_t place = 0;
    Candidate candidate;
    double ratio = 1;
    bool was_in_final = false;
    bool taken = false;
};

struct ChainResult {
    std::vector<Candidate> kernels;  ///< of each place, in the end
    std::vector<ChainTrial> trials;  ///< in their order
    bool is_complete = false;        ///< every place was tried
};

/// One time through all places.
[[nodiscard]] ChainResult race_in_chain(Chain& chain, const std::vector<ChainPlace>& places,
                                        const std::function<bool()>& stop, const ChainOptions& options = {});

}  // namespace hone::tuner

// Which candidates a problem's race has not seen and should have, by what the whole run has learned since:
// those that did well in its other races, and neighbours of the winner and of who is level with it. Measures
// nothing.
#pragma once

#include <vector>

#include "tuner/search/problem_tuner.h"

namespace hone::tuner {

/// The most promising first; empty where nothing is left to try.
[[nodiscard]] std::vector<Candidate> challengers(const Problem& problem, const cache::Trial& winner,
                                                 const RunContext& run);
/// Most of them that have no image yet, as far as the problem's own race tells; for who compiles ahead.
[[nodiscard]] std::vector<Candidate> likely_challengers(const Problem& problem, const cache::Trial& winner,
                                                        const RunContext& run);

}  // namespace hone::tuner

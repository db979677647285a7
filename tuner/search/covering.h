// Chooses the few kernels that serve all sizes of a static problem, after the sizes have their winners: for
// engines that want few images. Used by the tuner.
#pragma once

#include <cstddef>
#include <vector>

#include "tuner/search/problem_tuner.h"

namespace hone::tuner {

/// Results of all sizes of one static problem, each with a winner. Where these are more than `limit` kernels,
/// the winners and the kernels that came close to them are timed at all sizes, at each in one heat; what that
/// says best of becomes the winner of its sizes, in `sizes` and in the cache.
[[nodiscard]] CoverResult cover_sizes(const std::vector<ProblemResult*>& sizes, std::size_t limit,
                                      RunContext& run);

}  // namespace hone::tuner

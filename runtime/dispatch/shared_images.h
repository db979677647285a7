// What serves each cell of an operator's grid, so that few images do. Where nothing is measured a cost model
// chooses, and holds several kernels for nearly equal: of these cells take what others have anyway, since
// each image more is half a second of a compiler. Pure functions; the dispatcher and `hone explain` both ask
// here.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/dispatch/bucket_grid.h"
#include "runtime/dispatch/choice.h"

namespace hone::runtime {

/// A fallback may be predicted to take as much longer than the one that a cell has for itself: less than what
/// cost models are wrong by.
inline constexpr double shared_image_slack = 0.03;

/// The choice of each cell, as choose() has it, but for fallbacks, which share images where they can.
[[nodiscard]] std::vector<std::optional<Choice>> choose_cells(const BucketGrid& grid,
                                                              std::span<const KnownWinner> winners,
                                                              const DeviceTraits& traits);

}  // namespace hone::runtime

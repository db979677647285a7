// Rows by expert, cut into tiles: how many there are at most. Plain C++ that plans and kernels include alike;
// which tile is whose, a kernel finds in the call's starts (expert_tiles.cuh).
#pragma once

namespace hone::expert_linear {

/// Tiles of `rows` rows that `places` rows of `experts` experts need, however they are spread: each of those
/// experts that have rows has one tile that is not full, with one row in it at least.
template <class Int>
[[nodiscard]] constexpr Int most_tiles(Int places, Int experts, Int rows) {
    const Int active = experts < places ? experts : places;
    return (places + active * (rows - 1)) / rows;
}

}  // namespace hone::expert_linear

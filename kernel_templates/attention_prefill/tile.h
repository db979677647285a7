// How the variants mma and plain deal queries to blocks, on the host: tile.cuh has the device's side.
#pragma once

#include "kernel_templates/attention_prefill/attention_prefill.h"

namespace hone::attention_prefill {

/// One launch of a block of `threads` for each tile of `tile_m` queries of a head. Its last argument is the
/// number of heads of a section.
[[nodiscard]] Plan tile_plan(const char* kernel, const AttentionProblem&, std::int64_t tile_m,
                             std::int64_t threads, const DeviceTraits&);

/// A block's work as the cost models see it.
struct TileWork {
    std::int64_t tile_m = 0;
    std::int64_t tile_n = 0;
    std::int64_t warp_rows = 0;  ///< queries of a warp, which skips keys that none of them sees
    double block_cycles = 0;     ///< of tile_n keys, on a multiprocessor that has nothing else to do
    double overhead_cycles = 0;  ///< of a tile, before and behind its keys
    std::int64_t blocks_per_sm = 1;
};
/// Modelled time of a call in microseconds: rounds of tiles, and the memory.
[[nodiscard]] double predict_us(const AttentionProblem&, const TileWork&, const DeviceTraits&);

/// The smallest tile, or more than half of its queries exist.
[[nodiscard]] constexpr bool tile_is_filled(const AttentionProblem& p, std::int64_t tile_m,
                                            std::int64_t smallest) {
    return tile_m <= smallest || tile_m < 2 * p.q_len;
}

}  // namespace hone::attention_prefill

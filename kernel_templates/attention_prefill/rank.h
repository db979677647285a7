// Preference of the variants: what their cost models share. No template's hash covers it.
#pragma once

#include "kernel_templates/attention_prefill/attention_prefill.h"
#include "kernel_templates/device_traits.h"
#include "kernel_templates/kit/typed.h"

namespace hone::attention_prefill {

/// Keys that the queries of a sequence of full length see, all together.
[[nodiscard]] double visible_pairs(const AttentionProblem&);

/// The work of a block of mma or plain as their cost models see it.
struct TileWork {
    std::int64_t tile_m = 0;
    std::int64_t tile_n = 0;
    std::int64_t warp_rows = 0;  ///< queries of a warp, which skips keys that none of them sees
    double block_cycles = 0;     ///< cycles for tile_n keys, on a multiprocessor that has nothing else to do
    double overhead_cycles = 0;  ///< cycles for a tile, before and behind its keys
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

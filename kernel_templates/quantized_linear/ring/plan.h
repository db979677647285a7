// A config of variant ring on the host, and what follows from it: for its plan and rules (ring.cpp) and the
// cost model (ring_cost.cpp).
#pragma once

#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "kernel_templates/quantized_linear/ring/geometry.cuh"

namespace hone::quantized_linear::ring_blocks {

/// Of the tunables, in their order.
enum Index : std::size_t {
    block_tokens,
    rows,
    warp_rows,
    k_warps,
    stage_columns,
    stages,
    cluster_k,
    cluster_tiles,
    blocks_per_sm,
    x_streams,
    programmatic
};

inline RingGeometry geometry(const QuantizedProblem& p, const Config& c) {
    const bool groups = p.format == Format::w4a16 && p.group != 0;
    return {.bits = p.bits(),
            .group = groups ? static_cast<int>(p.group) : 0,
            .zeros = groups && p.zeros,
            .products = static_cast<int>(p.products()),
            .in = static_cast<int>(p.in),
            .tokens = static_cast<int>(c[block_tokens]),
            .rows = static_cast<int>(c[rows]),
            .warp_rows = static_cast<int>(c[warp_rows]),
            .k_warps = static_cast<int>(c[k_warps]),
            .stage_columns = static_cast<int>(c[stage_columns]),
            .stages = static_cast<int>(c[stages]),
            .cluster_k = static_cast<int>(c[cluster_k]),
            .x_streams = c[x_streams] != 0};
}
inline RingGeometry geometry(const Problem& problem, const Config& c) {
    return geometry(quantized_problem(problem), c);
}

/// Of results; and blocks, clusters' all counted.
inline std::int64_t tiles(const QuantizedProblem& p, const Config& c) { return ceil_div(p.out, c[rows]); }
inline std::int64_t blocks(const QuantizedProblem& p, const Config& c) {
    return ceil_div(tiles(p, c), c[cluster_tiles]) * c[cluster_k];
}

/// What a thread may have: a quarter of a multiprocessor has a quarter of the registers, for whole warps.
inline std::int64_t register_share(const RingGeometry& g, const Config& c) {
    const std::int64_t quarters = ceil_div(g.threads(), 128);
    return 65536 / (128 * quarters * c[blocks_per_sm]) / 8 * 8;
}

/// Microseconds of a call.
[[nodiscard]] double predict(const Problem&, const Config&, const DeviceTraits&);

}  // namespace hone::quantized_linear::ring_blocks

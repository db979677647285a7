// How quantized_linear/ring/kernel.cu is launched.
#pragma once

#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "kernel_templates/quantized_linear/ring/geometry.cuh"

namespace hone::quantized_linear {

struct RingConfig {
    std::int64_t tokens = 8;
    std::int64_t rows = 64;
    std::int64_t warp_rows = 16;
    std::int64_t k_warps = 1;
    std::int64_t stage_columns = 128;
    std::int64_t stages = 3;
    std::int64_t cluster_k = 1;
    std::int64_t tiles = 1;  ///< that a block takes one after another
    std::int64_t blocks_per_sm = 1;
    std::int64_t x_streams = 0;
    std::int64_t programmatic = 0;
};

[[nodiscard]] inline RingGeometry geometry(const QuantizedProblem& p, const RingConfig& c) {
    return {.bits = p.bits(),
            .group = p.has_groups() ? static_cast<int>(p.group) : 0,
            .zeros = p.has_groups() && p.zeros,
            .products = static_cast<int>(p.products()),
            .in = static_cast<int>(p.in),
            .tokens = static_cast<int>(c.tokens),
            .rows = static_cast<int>(c.rows),
            .warp_rows = static_cast<int>(c.warp_rows),
            .k_warps = static_cast<int>(c.k_warps),
            .stage_columns = static_cast<int>(c.stage_columns),
            .stages = static_cast<int>(c.stages),
            .cluster_k = static_cast<int>(c.cluster_k),
            .x_streams = c.x_streams != 0};
}

/// Tiles of results; and blocks, clusters' all counted.
[[nodiscard]] inline std::int64_t tiles(const QuantizedProblem& p, const RingConfig& c) {
    return ceil_div(p.out, c.rows);
}
[[nodiscard]] inline std::int64_t blocks(const QuantizedProblem& p, const RingConfig& c) {
    return ceil_div(tiles(p, c), c.tiles) * c.cluster_k;
}

/// The product's launch and the tensor map of x, of a kernel whose parameters are ring_args or begin as they
/// do.
[[nodiscard]] Plan ring_product(const Kernel& kernel, const QuantizedProblem&, const RingConfig&,
                                const RingGeometry&);

inline constexpr auto ring_args = join(call_args, {tensor_map_arg(0, "x_map")});
inline constexpr Kernel ring_kernels[] = {{"quantized_linear_ring", ring_args}, normalize};

[[nodiscard]] Plan ring_plan(const QuantizedProblem&, const RingConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t ring_access_elements(const QuantizedProblem&, const RingConfig&) {
    return 16;
}

}  // namespace hone::quantized_linear

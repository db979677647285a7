// How quantized_linear/walk/kernel.cu is launched.
#pragma once

#include "kernel_templates/quantized_linear/quantize.h"
#include "kernel_templates/quantized_linear/walk/geometry.cuh"

namespace hone::quantized_linear {

struct WalkConfig {
    std::int64_t tokens = 1;
    std::int64_t k_warps = 16;
    std::int64_t unroll = 1;
    std::int64_t ahead = 0;
    std::int64_t blocks_per_sm = 1;
    std::int64_t residents = 1;
    std::int64_t programmatic = 0;
};

[[nodiscard]] inline WalkGeometry geometry(const QuantizedProblem& p, const WalkConfig& c) {
    return {.products = static_cast<int>(p.products()),
            .in = static_cast<int>(p.in),
            .out = static_cast<int>(p.out),
            .digits = p.is_packed(),
            .x_bytes = p.format == QuantFormat::fp8 ? 2 : 1,
            .blocks_scaled = p.has_blocks(),
            .zeros = p.zeros,
            .sets = p.has_groups() ? static_cast<int>(128 / p.group) : 1,
            .norm = p.norm && p.is_packed(),
            .tokens = static_cast<int>(c.tokens),
            .k_warps = static_cast<int>(c.k_warps),
            .unroll = static_cast<int>(c.unroll)};
}

/// Blocks of the grid: no more than are resident, nor than it takes for as few rounds; a multiple of four
/// where they take several groups of rows each, as the kernel wants it.
[[nodiscard]] inline std::int64_t blocks(const QuantizedProblem& p, const WalkConfig& c,
                                         const DeviceTraits& traits) {
    const std::int64_t groups = geometry(p, c).groups();
    const std::int64_t most = std::max<std::int64_t>(traits.sm_count * c.residents / 4 * 4, 4);
    if (groups <= most) return groups;
    return round_up(ceil_div(groups, ceil_div(groups, most)), std::int64_t{4});
}

inline constexpr Kernel walk_kernels[] = {{"quantized_linear_walk", call_args}, quantize};

[[nodiscard]] Plan walk_plan(const QuantizedProblem&, const WalkConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t walk_access_elements(const QuantizedProblem&, const WalkConfig&) {
    return 16;
}

}  // namespace hone::quantized_linear

// How quantized_linear/ring_w8/kernel.cu is launched.
#pragma once

#include "kernel_templates/quantized_linear/quantize.h"
#include "kernel_templates/quantized_linear/ring_w8/geometry.cuh"

namespace hone::quantized_linear {

struct RingW8Config {
    std::int64_t tokens = 8;
    std::int64_t rows = 64;
    std::int64_t consumers = 2;
    std::int64_t stage_columns = 128;
    std::int64_t stages = 8;
    std::int64_t x_place = 0;
    std::int64_t programmatic = 0;
};

/// Values of RingW8Config::x_place.
inline constexpr std::int64_t x_made = 0;     ///< each block makes its codes, which stay in shared memory
inline constexpr std::int64_t x_copied = 1;   ///< they come from memory and stay
inline constexpr std::int64_t x_streams = 2;  ///< they pass through the ring

[[nodiscard]] inline RingW8Geometry geometry(const QuantizedProblem& p, const RingW8Config& c) {
    return {.products = static_cast<int>(p.products()),
            .in = static_cast<int>(p.in),
            .out = static_cast<int>(p.out),
            .blocks_scaled = p.has_blocks(),
            .tokens = static_cast<int>(c.tokens),
            .rows = static_cast<int>(c.rows),
            .consumers = static_cast<int>(c.consumers),
            .stage_columns = static_cast<int>(c.stage_columns),
            .stages = static_cast<int>(c.stages),
            .x_streams = c.x_place == x_streams};
}

/// Tiles that a block takes: a block a multiprocessor.
[[nodiscard]] inline std::int64_t rounds(const QuantizedProblem& p, const RingW8Config& c,
                                         const DeviceTraits& traits) {
    return ceil_div(ceil_div(p.out, c.rows), traits.sm_count);
}
/// Blocks of the grid: no more than it takes for as few rounds.
[[nodiscard]] inline std::int64_t blocks(const QuantizedProblem& p, const RingW8Config& c,
                                         const DeviceTraits& traits) {
    return ceil_div(ceil_div(p.out, c.rows), rounds(p, c, traits));
}

inline constexpr auto ring_w8_args = join(
    call_args, {tensor_map_arg(0, "weight_map"), tensor_map_arg(1, "up_map"), tensor_map_arg(2, "x_map")});
inline constexpr Kernel ring_w8_kernels[] = {{"quantized_linear_ring_w8", ring_w8_args}, quantize};

[[nodiscard]] Plan ring_w8_plan(const QuantizedProblem&, const RingW8Config&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t ring_w8_access_elements(const QuantizedProblem&, const RingW8Config&) {
    return 16;
}

}  // namespace hone::quantized_linear

// How quantized_linear/mma/kernel.cu is launched.
#pragma once

#include "kernel_templates/quantized_linear/mma/geometry.cuh"
#include "kernel_templates/quantized_linear/quantize.h"

namespace hone::quantized_linear {

struct MmaConfig {
    std::int64_t tokens = 8;
    std::int64_t rows = 16;
    std::int64_t k_warps = 1;
    std::int64_t row_warps = 1;
    std::int64_t unroll = 1;
    std::int64_t programmatic = 0;
};

[[nodiscard]] inline mma_blocks::Geometry geometry(const QuantizedProblem& p, const MmaConfig& c) {
    return {.tokens = static_cast<int>(c.tokens),
            .rows = static_cast<int>(c.rows),
            .k_warps = static_cast<int>(c.k_warps),
            .row_warps = static_cast<int>(c.row_warps),
            .unroll = static_cast<int>(c.unroll),
            .products = static_cast<int>(p.products()),
            .x_bytes = p.is_packed() ? 2 : 1,
            .blocks_scaled = p.has_blocks()};
}

/// Groups of tokens, and of rows of the weight, that a block takes.
[[nodiscard]] inline std::int64_t token_groups(const QuantizedProblem& p, const MmaConfig& c) {
    return ceil_div(p.tokens, c.tokens);
}
[[nodiscard]] inline std::int64_t steps(const QuantizedProblem& p, const MmaConfig& c) {
    return ceil_div(p.out, c.rows * c.row_warps);
}

inline constexpr Kernel mma_kernels[] = {{"quantized_linear_mma", call_args}, normalize, quantize};

[[nodiscard]] Plan mma_plan(const QuantizedProblem&, const MmaConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t mma_access_elements(const QuantizedProblem&, const MmaConfig&) {
    return 16;
}

}  // namespace hone::quantized_linear

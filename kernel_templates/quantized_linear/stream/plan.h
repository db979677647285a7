// How quantized_linear/stream/kernel.cu is launched.
#pragma once

#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "kernel_templates/quantized_linear/stream/geometry.cuh"

namespace hone::quantized_linear {

struct StreamConfig {
    std::int64_t tokens = 1;
    std::int64_t rows = 16;
    std::int64_t k_warps = 2;
    std::int64_t row_warps = 1;
    std::int64_t unroll = 1;
    std::int64_t blocks_per_sm = 1;
    std::int64_t programmatic = 0;
};

/// What bf16 can hold of x times the norm's weight: fp16 might overflow.
[[nodiscard]] constexpr bool folds_norm(const QuantizedProblem& p) {
    return p.norm && p.dtype == Dtype::bf16;
}

[[nodiscard]] inline StreamGeometry geometry(const QuantizedProblem& p, const StreamConfig& c) {
    return {.products = static_cast<int>(p.products()),
            .in = static_cast<int>(p.in),
            .tokens = static_cast<int>(c.tokens),
            .rows = static_cast<int>(c.rows),
            .k_warps = static_cast<int>(c.k_warps),
            .row_warps = static_cast<int>(c.row_warps),
            .unroll = static_cast<int>(c.unroll),
            .norm = folds_norm(p)};
}

[[nodiscard]] inline std::int64_t blocks(const QuantizedProblem& p, const StreamConfig& c) {
    return ceil_div(p.out, c.rows * c.row_warps);
}

inline constexpr Kernel stream_kernels[] = {{"quantized_linear_stream", call_args}, normalize};

[[nodiscard]] Plan stream_plan(const QuantizedProblem&, const StreamConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t stream_access_elements(const QuantizedProblem&, const StreamConfig&) {
    return 16;
}

}  // namespace hone::quantized_linear

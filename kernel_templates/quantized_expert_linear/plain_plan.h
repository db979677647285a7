// How quantized_expert_linear/plain.cu is launched.
#pragma once

#include "kernel_templates/linear/plain_product.h"
#include "kernel_templates/quantized_expert_linear/launches.h"

namespace hone::quantized_expert_linear {

using linear::plain_product::PlainConfig;

inline constexpr Kernel plain_kernels[] = {{"quantized_expert_linear_plain", call_args}, codes, combine};

[[nodiscard]] inline Plan plain_plan(const QuantizedExpertProblem& p, const PlainConfig& c,
                                     const DeviceTraits&) {
    const std::int64_t blocks = p.most_tiles(c.tile_tokens) * ceil_div(p.out, c.tile_out);
    Launch product = launch(plain_kernels[0], grid_of(blocks), c.threads());
    product.programmatic = c.programmatic != 0;
    return around(p, plan_of(product), plain_kernels, expert_linear::result_vector(p, c.vector));
}

}  // namespace hone::quantized_expert_linear

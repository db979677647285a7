// How shared_norm_quantized_linear/plain.cu is launched.
#pragma once

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/shared_norm_quantized_linear/shared_norm_quantized_linear.h"

namespace hone::shared_norm_quantized_linear {

struct PlainConfig {
    std::int64_t tokens = 4;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel plain_kernels[] = {{"shared_norm_quantized_linear_plain", call_args}};

[[nodiscard]] inline Plan plain_plan(const SharedNormQuantizedProblem& p, const PlainConfig& c,
                                     const DeviceTraits&) {
    Launch product = launch(plain_kernels[0], grid_of(p.blocks(c.tokens)), 256);
    product.programmatic = c.programmatic != 0;
    return plan_of(product);
}

}  // namespace hone::shared_norm_quantized_linear

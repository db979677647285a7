// How quantized_linear/plain.cu is launched.
#pragma once

#include "kernel_templates/linear/plain_product.h"
#include "kernel_templates/quantized_linear/quantize.h"

namespace hone::quantized_linear {

using linear::plain_product::PlainConfig;

inline constexpr Kernel plain_kernels[] = {{"quantized_linear_plain", call_args}, normalize, quantize};

[[nodiscard]] Plan plain_plan(const QuantizedProblem&, const PlainConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t plain_access_elements(const QuantizedProblem&, const PlainConfig& c) {
    return c.vector;
}

}  // namespace hone::quantized_linear

// How linear/plain.cu is launched.
#pragma once

#include "kernel_templates/linear/normalize.h"
#include "kernel_templates/linear/plain_product.h"

namespace hone::linear {

using plain_product::PlainConfig;

inline constexpr Kernel plain_kernels[] = {{"linear_plain", call_args}, normalize};

[[nodiscard]] Plan plain_plan(const LinearProblem&, const PlainConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t plain_access_elements(const LinearProblem&, const PlainConfig& c) {
    return c.vector;
}

}  // namespace hone::linear

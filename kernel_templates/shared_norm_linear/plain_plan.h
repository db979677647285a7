// How shared_norm_linear/plain.cu is launched.
#pragma once

#include "kernel_templates/shared_norm_linear/plain_launch.h"
#include "kernel_templates/shared_norm_linear/shared_norm_linear.h"

namespace hone::shared_norm_linear {

inline constexpr Kernel plain_kernels[] = {{"shared_norm_linear_plain", call_args}};

[[nodiscard]] inline Plan plain_plan(const SharedNormProblem& p, const PlainConfig& c, const DeviceTraits&) {
    return plan_of_plain(p, c, plain_kernels[0]);
}

}  // namespace hone::shared_norm_linear

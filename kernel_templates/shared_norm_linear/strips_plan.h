// How shared_norm_linear/strips.cu is launched: as linear's strips.
#pragma once

#include "kernel_templates/linear/few_tokens.h"
#include "kernel_templates/shared_norm_linear/shared_norm_linear.h"

namespace hone::shared_norm_linear {

inline constexpr Kernel strips_kernels[] = {{"shared_norm_linear_strips", call_args}};

[[nodiscard]] inline Plan strips_plan(const SharedNormProblem& p, const linear::FewTokensConfig& c,
                                      const DeviceTraits& traits) {
    return plan_of(linear::few_tokens::product(strips_kernels[0], p.product(), c, traits));
}

}  // namespace hone::shared_norm_linear

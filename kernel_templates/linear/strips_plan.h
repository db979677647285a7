// How linear/strips.cu is launched.
#pragma once

#include "kernel_templates/linear/few_tokens.h"
#include "kernel_templates/linear/normalize.h"

namespace hone::linear {

inline constexpr Kernel strips_kernels[] = {{"linear_strips", call_args}, normalize};

[[nodiscard]] Plan strips_plan(const LinearProblem&, const FewTokensConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t strips_access_elements(const LinearProblem&, const FewTokensConfig&) {
    return 8;
}

}  // namespace hone::linear

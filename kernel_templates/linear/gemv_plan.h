// How linear/gemv.cu is launched.
#pragma once

#include "kernel_templates/linear/few_tokens.h"
#include "kernel_templates/linear/normalize.h"

namespace hone::linear {

inline constexpr Kernel gemv_kernels[] = {{"linear_gemv", call_args}, normalize};

[[nodiscard]] Plan gemv_plan(const LinearProblem&, const FewTokensConfig&, const DeviceTraits&);

[[nodiscard]] inline std::int64_t gemv_access_elements(const LinearProblem& p, const FewTokensConfig&) {
    return few_tokens::access_elements(p);
}

}  // namespace hone::linear

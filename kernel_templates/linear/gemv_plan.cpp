#include "kernel_templates/linear/gemv_plan.h"

namespace hone::linear {

Plan gemv_plan(const LinearProblem& p, const FewTokensConfig& c, const DeviceTraits& traits) {
    return few_tokens::plan(gemv_kernels, p, c, traits);
}

}  // namespace hone::linear

#include "kernel_templates/linear/mma_plan.h"

namespace hone::linear {

Plan mma_plan(const LinearProblem& p, const FewTokensConfig& c, const DeviceTraits& traits) {
    return few_tokens::plan(mma_kernels, p, c, traits);
}

}  // namespace hone::linear

#include "kernel_templates/linear/mma_plan.h"

namespace hone::linear {

Plan mma_plan(const LinearProblem& p, const FewTokensConfig& c, const DeviceTraits& traits) {
    return few_tokens::plan(mma_kernels[0], p, c, traits);
}

}  // namespace hone::linear

#include "kernel_templates/linear/strips_plan.h"

namespace hone::linear {

Plan strips_plan(const LinearProblem& p, const FewTokensConfig& c, const DeviceTraits& traits) {
    return few_tokens::plan(strips_kernels, p, c, traits);
}

}  // namespace hone::linear

#include "kernel_templates/linear/plain_plan.h"

namespace hone::linear {

Plan plain_plan(const LinearProblem& p, const PlainConfig& c, const DeviceTraits&) {
    Launch product = launch(plain_kernels[0], grid_of(plain_product::blocks(p, c)), c.threads());
    product.programmatic = c.programmatic != 0;
    return normalize_first(p, plan_of(product), plain_kernels[1]);
}

}  // namespace hone::linear

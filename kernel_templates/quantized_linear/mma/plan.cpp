#include "kernel_templates/quantized_linear/mma/plan.h"

namespace hone::quantized_linear {

Plan mma_plan(const QuantizedProblem& p, const MmaConfig& c, const DeviceTraits&) {
    const mma_blocks::Geometry g = geometry(p, c);
    Launch product = launch(mma_kernels[0], grid_of(steps(p, c) * token_groups(p, c)), g.threads());
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    return prepare_first(p, plan_of(product), mma_kernels);
}

}  // namespace hone::quantized_linear

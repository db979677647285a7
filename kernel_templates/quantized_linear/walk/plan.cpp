#include "kernel_templates/quantized_linear/walk/plan.h"

namespace hone::quantized_linear {

Plan walk_plan(const QuantizedProblem& p, const WalkConfig& c, const DeviceTraits& traits) {
    const WalkGeometry g = geometry(p, c);
    Launch product = launch(walk_kernels[0], grid_of(blocks(p, c, traits)), g.threads());
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    return quantize_first(p, plan_of(product), walk_kernels[1]);
}

}  // namespace hone::quantized_linear

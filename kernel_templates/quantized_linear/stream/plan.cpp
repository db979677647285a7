#include "kernel_templates/quantized_linear/stream/plan.h"

namespace hone::quantized_linear {

Plan stream_plan(const QuantizedProblem& p, const StreamConfig& c, const DeviceTraits&) {
    const StreamGeometry g = geometry(p, c);
    Launch product = launch(stream_kernels[0], grid_of(blocks(p, c)), g.threads());
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    if (folds_norm(p)) return plan_of(product);
    return linear::normalize_first(p.dense(), plan_of(product), stream_kernels[1]);
}

}  // namespace hone::quantized_linear

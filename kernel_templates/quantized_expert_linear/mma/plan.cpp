#include "kernel_templates/quantized_expert_linear/mma/plan.h"

namespace hone::quantized_expert_linear {

Plan mma_plan(const QuantizedExpertProblem& p, const MmaConfig& c, const DeviceTraits&) {
    const quantized_linear::mma_blocks::Geometry g = geometry(p, c);
    const std::int64_t blocks = p.most_tiles(c.tokens) * ceil_div(p.out, g.block_rows());
    Launch product = launch(mma_kernels[0], grid_of(blocks), g.threads());
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    return around(p, plan_of(product), mma_kernels, expert_linear::result_vector(p, 8));
}

}  // namespace hone::quantized_expert_linear

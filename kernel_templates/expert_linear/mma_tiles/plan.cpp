#include "kernel_templates/expert_linear/mma_tiles/plan.h"

namespace hone::expert_linear {

Plan mma_tiles_plan(const ExpertProblem& p, const MmaTilesConfig& c, const DeviceTraits&) {
    const linear::tiles::Geometry g = geometry(p, c);
    const std::int64_t blocks = p.most_tiles(c.tile_m) * ceil_div(p.out, g.result_columns());
    Launch product = launch(mma_tiles_kernels[0], grid_of(blocks), g.threads());
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    return combine_behind(p, plan_of(product), mma_tiles_kernels[1], mma_tiles_access_elements(p, c));
}

}  // namespace hone::expert_linear

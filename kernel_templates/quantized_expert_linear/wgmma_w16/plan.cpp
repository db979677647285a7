#include "kernel_templates/quantized_expert_linear/wgmma_w16/plan.h"

#include <algorithm>

namespace hone::quantized_expert_linear {

linear::gemm::Geometry geometry(const QuantizedExpertProblem& p, const WgmmaW16Config& c) {
    linear::gemm::Geometry g = expert_linear::geometry(p, c);
    g.operands =
        quantized_linear::w16::Stage{.bits = p.bits(), .group = static_cast<int>(p.group), .zeros = p.zeros}
            .operands();
    return g;
}

std::int64_t tiles_across(const QuantizedExpertProblem& p, const WgmmaW16Config& c) {
    return ceil_div(p.out, geometry(p, c).result_rows());
}

namespace {

/// Of the rows of a narrow tile; the other map stands in for it where there are none.
TensorMap narrow_map(const QuantizedExpertProblem& p, const WgmmaW16Config& c,
                     const linear::gemm::Geometry& g) {
    const bool is_used = c.narrow_n != 0;
    TensorMap map =
        expert_linear::sorted_x_map(p, c, g, static_cast<int>(is_used ? c.narrow_n : c.tile_n), workspace);
    if (!is_used) map.same_as = 0;
    return map;
}

}  // namespace

Plan wgmma_w16_plan(const QuantizedExpertProblem& p, const WgmmaW16Config& c, const DeviceTraits& traits) {
    const linear::gemm::Geometry g = geometry(p, c);
    const std::int64_t blocks =
        std::min(p.most_tiles(c.tile_n) * tiles_across(p, c), traits.sm_count * c.blocks_per_sm);
    Launch product = launch(wgmma_w16_kernels[0], grid_of(blocks), g.threads());
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    Plan plan = plan_of(product);
    if (p.gather &&
        c.copied_x == 0) {  // rows that stand by token are no boxes: the kernel does not read the map
        add_map(plan,
                linear::gemm::matrix_map(p.dtype, x, x_stride, p.in, p.tokens, g.operands.columns,
                                         static_cast<int>(std::min<std::int64_t>(g.x_box(), p.tokens))));
    } else {
        add_map(plan, expert_linear::sorted_x_map(p, c, g, g.x_box(), workspace));
    }
    add_map(plan, narrow_map(p, c, g));
    plan = around(p, plan, wgmma_w16_kernels, 8);
    return c.copied_x != 0 ? expert_linear::copies_in_front(p, plan, wgmma_w16_kernels[1]) : plan;
}

}  // namespace hone::quantized_expert_linear

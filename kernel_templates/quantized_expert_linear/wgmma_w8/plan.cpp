#include "kernel_templates/quantized_expert_linear/wgmma_w8/plan.h"

#include <algorithm>

namespace hone::quantized_expert_linear {

linear::gemm::Geometry geometry(const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
    linear::gemm::Geometry g = expert_linear::geometry(p, c);
    g.operands = {.columns = 128};
    return g;
}

std::int64_t tiles_across(const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
    const linear::gemm::Geometry g = geometry(p, c);
    return ceil_div(p.out, g.swapped ? g.result_rows() : g.result_columns());
}

namespace {

/// Maps of weight, x and up; the weight's stands in for up's where there is none.
void add_maps(Plan& plan, const QuantizedExpertProblem& p, const linear::gemm::Geometry& g) {
    const auto weight_map = [&](int pointer) {
        return linear::gemm::matrix_map(p.code_dtype(), pointer, TensorMap::no_gaps, p.in, p.experts * p.out,
                                        g.operands.columns, g.weight_box());
    };
    TensorMap x_map = linear::gemm::matrix_map(
        p.code_dtype(), workspace, TensorMap::no_gaps, p.in, p.places(), g.operands.columns,
        static_cast<int>(std::min<std::int64_t>(g.x_box(), p.places())));
    x_map.offset_bytes = p.room().codes_at;
    TensorMap unused = weight_map(weight);
    unused.same_as = 0;
    add_map(plan, weight_map(weight));
    add_map(plan, x_map);
    add_map(plan, p.gated ? weight_map(up) : unused);
}

}  // namespace

Plan wgmma_w8_plan(const QuantizedExpertProblem& p, const WgmmaW8Config& c, const DeviceTraits& traits) {
    const linear::gemm::Geometry g = geometry(p, c);
    const std::int64_t blocks = std::min(p.most_tiles(expert_linear::tile_rows(c)) * tiles_across(p, c),
                                         traits.sm_count * c.blocks_per_sm);
    Launch product = launch(wgmma_w8_kernels[0], grid_of(blocks), g.threads());
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    Plan plan = plan_of(product);
    add_maps(plan, p, g);
    return around(p, plan, wgmma_w8_kernels, 8);
}

}  // namespace hone::quantized_expert_linear

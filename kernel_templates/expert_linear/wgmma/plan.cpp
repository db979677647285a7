#include "kernel_templates/expert_linear/wgmma/plan.h"

#include <algorithm>

#include "kernel_templates/expert_linear/room.cuh"

namespace hone::expert_linear {

linear::gemm::Geometry geometry(const ExpertProblem& p, const WgmmaConfig& c) {
    return linear::gemm::geometry(p.dense(1), {.tile_m = c.tile_m,
                                               .tile_n = c.tile_n,
                                               .consumers = c.consumers,
                                               .blocks_per_sm = c.blocks_per_sm,
                                               .swapped = c.swapped,
                                               .staged = 1});
}

std::int64_t tile_rows(const WgmmaConfig& c) { return c.swapped != 0 ? c.tile_n : c.tile_m; }

std::int64_t tiles_across(const ExpertProblem& p, const WgmmaConfig& c) {
    const linear::gemm::Geometry g = geometry(p, c);
    return ceil_div(p.out, g.swapped ? g.result_rows() : g.result_columns());
}

std::int64_t blocks_of(const ExpertProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    return std::min(p.most_tiles(tile_rows(c)) * tiles_across(p, c), traits.sm_count * c.blocks_per_sm);
}

TensorMap sorted_x_map(const ExpertProblem& p, const WgmmaConfig& c, const linear::gemm::Geometry& g,
                       int box_rows, int workspace_pointer) {
    const bool copied = c.copied_x != 0;
    TensorMap map = linear::gemm::matrix_map(
        p.dtype, copied ? workspace_pointer : x, copied ? TensorMap::no_gaps : x_stride, p.in, p.places(),
        g.operands.columns, static_cast<int>(std::min<std::int64_t>(box_rows, p.places())));
    if (copied) map.offset_bytes = copies_at(p.places(), result_bytes(p));
    return map;
}

namespace {

/// Maps of weight, x and up; the weight's stands in for those that the kernel does not use.
void add_maps(Plan& plan, const ExpertProblem& p, const WgmmaConfig& c, const linear::gemm::Geometry& g) {
    using linear::gemm::matrix_map;
    const auto weight_map = [&](int pointer) {
        return matrix_map(p.dtype, pointer, TensorMap::no_gaps, p.in, p.experts * p.out, g.operands.columns,
                          g.weight_box());
    };
    TensorMap unused = weight_map(weight);
    unused.same_as = 0;
    add_map(plan, weight_map(weight));
    add_map(plan, p.gather && c.copied_x == 0 ? unused : sorted_x_map(p, c, g, g.x_box(), workspace));
    add_map(plan, p.gated ? weight_map(up) : unused);
}

}  // namespace

Plan wgmma_plan(const ExpertProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    const linear::gemm::Geometry g = geometry(p, c);
    const std::int64_t blocks = blocks_of(p, c, traits);
    Launch product = launch(wgmma_kernels[0], grid_of(blocks), g.threads());
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    Plan plan = plan_of(product);
    add_maps(plan, p, c, g);
    plan = combine_behind(p, plan, wgmma_kernels[2], wgmma_access_elements(p, c));
    if (c.copied_x != 0) plan = copies_in_front(p, plan, wgmma_kernels[1]);
    if (c.tail_split != 0) {
        plan.workspace_bytes = partials_at(p.places(), result_bytes(p), copy_bytes(p, c.copied_x != 0)) +
                               blocks * g.workspace_bytes();
    }
    return plan;
}

}  // namespace hone::expert_linear

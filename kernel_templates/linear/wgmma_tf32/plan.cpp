#include "kernel_templates/linear/wgmma_tf32/plan.h"

#include <algorithm>

namespace hone::linear {
namespace tf32 {

Geometry geometry(const LinearProblem& p, const WgmmaTf32Config& c) {
    return {.tile_m = static_cast<int>(c.tile_m),
            .tile_n = static_cast<int>(c.tile_n),
            .consumers = static_cast<int>(c.consumers),
            .blocks_per_sm = static_cast<int>(c.blocks_per_sm),
            .cluster_k = static_cast<int>(c.cluster_k),
            .gated = p.gated,
            .swapped = c.swapped != 0};
}

std::int64_t tiles_across(const LinearProblem& p, const Geometry& g) {
    return ceil_div(g.swapped ? p.out : p.tokens, g.result_rows());
}
std::int64_t tiles_along(const LinearProblem& p, const Geometry& g) {
    return ceil_div(g.swapped ? p.tokens : p.out, g.result_columns());
}
std::int64_t tiles(const LinearProblem& p, const Geometry& g) {
    return tiles_across(p, g) * tiles_along(p, g);
}

}  // namespace tf32

namespace {

TensorMap matrix_map(int pointer, int stride, std::int64_t columns, std::int64_t rows, int box_rows) {
    TensorMap map{.pointer = static_cast<std::uint8_t>(pointer),
                  .dtype = Dtype::fp32,
                  .rank = 2,
                  .swizzle_bytes = tf32::row_bytes};
    map.extents[0] = static_cast<std::uint32_t>(columns);
    map.extents[1] = static_cast<std::uint32_t>(rows);
    map.stride_scalars[0] = static_cast<std::uint8_t>(stride);
    map.box[0] = tf32::stage_columns;
    map.box[1] = static_cast<std::uint16_t>(box_rows);
    return map;
}

/// Maps of x, weight and up; the weight's stands in for up's where there is none.
void add_maps(Plan& plan, const LinearProblem& p, const tf32::Geometry& g) {
    TensorMap up_map = matrix_map(up, up_stride, p.in, p.out, g.weight_box());
    if (!p.gated) up_map.same_as = 1;
    add_map(plan, matrix_map(x, x_stride, p.in, p.tokens, g.x_box()));
    add_map(plan, matrix_map(weight, weight_stride, p.in, p.out, g.weight_box()));
    add_map(plan, up_map);
}

}  // namespace

Plan wgmma_tf32_plan(const LinearProblem& p, const WgmmaTf32Config& c, const DeviceTraits& traits) {
    const tf32::Geometry g = tf32::geometry(p, c);
    // Clusters have one tile each, other blocks walk.
    const std::int64_t blocks =
        g.cluster_k > 1 ? tf32::tiles(p, g) * g.cluster_k
                        : std::min<std::int64_t>(tf32::tiles(p, g), traits.sm_count * c.blocks_per_sm);
    Launch product = launch(wgmma_tf32_kernels[0], grid_of(blocks), g.threads());
    product.cluster = grid_of(g.cluster_k);
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    Plan plan = plan_of(product);
    add_maps(plan, p, g);
    return normalize_first(p, plan, wgmma_tf32_kernels[1]);
}

}  // namespace hone::linear

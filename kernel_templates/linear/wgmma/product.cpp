#include "kernel_templates/linear/wgmma/product.h"

#include <algorithm>

#include "kernel_templates/linear/wgmma/schedule.cuh"

namespace hone::linear::gemm {

Operands operands(const LinearProblem& p) { return {.columns = static_cast<int>(128 / p.element_bytes())}; }

Geometry geometry(const LinearProblem& p, const WgmmaConfig& c) {
    return {.tile_m = static_cast<int>(c.tile_m),
            .tile_n = static_cast<int>(c.tile_n),
            .consumers = static_cast<int>(c.consumers),
            .blocks_per_sm = static_cast<int>(c.blocks_per_sm),
            .cluster_k = static_cast<int>(c.cluster_k),
            .gated = p.gated,
            .swapped = c.swapped != 0,
            .ping_pong = c.ping_pong != 0,
            .tail_pairs = c.tail_split == 2,
            .staged = static_cast<int>(c.staged),
            .operands = operands(p)};
}

std::int64_t steps(const LinearProblem& p) { return ceil_div(p.in, operands(p).columns); }

std::int64_t tiles_across(const LinearProblem& p, const Geometry& g) {
    return ceil_div(g.swapped ? p.out : p.tokens, g.result_rows());
}
std::int64_t tiles_along(const LinearProblem& p, const Geometry& g) {
    return ceil_div(g.swapped ? p.tokens : p.out, g.result_columns());
}
std::int64_t tiles(const LinearProblem& p, const Geometry& g) {
    return tiles_across(p, g) * tiles_along(p, g);
}

std::int64_t places(const WgmmaConfig& c, const DeviceTraits& traits) {
    // One place a multiprocessor may be the successor's.
    const std::int64_t used = c.blocks_per_sm - (c.programmatic >= 2 ? 1 : 0);
    return traits.sm_count * std::max<std::int64_t>(used, 1);
}

std::int64_t paired_blocks(const LinearProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    return 2 * std::min(tiles(p, geometry(p, c)), places(c, traits) / 2);
}

std::int64_t parts_of_tail(const LinearProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    if (c.tail_split == 0) return 1;
    if (c.tail_split == 2)
        return pair_parts(static_cast<int>(tiles(p, geometry(p, c))),
                          static_cast<int>(paired_blocks(p, c, traits)), static_cast<int>(steps(p)));
    return tail_parts(static_cast<int>(tiles(p, geometry(p, c))), static_cast<int>(places(c, traits)),
                      static_cast<int>(steps(p)));
}

TensorMap matrix_map(Dtype dtype, int pointer, int stride, std::int64_t columns, std::int64_t rows,
                     int box_columns, int box_rows) {
    TensorMap map{.pointer = static_cast<std::uint8_t>(pointer),
                  .dtype = dtype,
                  .rank = 2,
                  .swizzle_bytes = static_cast<std::uint8_t>(size_bytes(dtype) * box_columns)};
    map.extents[0] = static_cast<std::uint32_t>(columns);
    map.extents[1] = static_cast<std::uint32_t>(rows);
    map.stride_scalars[0] = static_cast<std::uint8_t>(stride);
    map.box[0] = static_cast<std::uint16_t>(box_columns);
    map.box[1] = static_cast<std::uint16_t>(box_rows);
    return map;
}

TensorMap rest_map(const TensorMap& x, int index) {
    TensorMap map = x;
    const std::uint32_t rest = x.extents[1] % x.box[1];
    if (rest == 0)
        map.same_as = static_cast<std::uint8_t>(index);
    else
        map.box[1] = static_cast<std::uint16_t>(rest);
    return map;
}

namespace {

/// Maps of x, weight, up, result and the rest of x; the weight's stands in for those that the kernel does not
/// use.
void add_maps(Plan& plan, const LinearProblem& p, const Geometry& g, const MapArguments& of) {
    const auto weight_map = [&](int pointer, int stride) {
        return matrix_map(p.dtype, pointer, stride, p.in, p.out, g.operands.columns, g.weight_box());
    };
    const TensorMap result_map = matrix_map(of.result, of.out, of.out_stride, p.out, p.tokens,
                                            g.panel_width(), g.swapped ? g.panel_tokens() : block_rows);
    TensorMap unused = weight_map(of.weight, of.weight_stride);
    unused.same_as = 1;
    const TensorMap x_map =
        matrix_map(p.dtype, of.x, of.x_stride, p.in, p.tokens, g.operands.columns, g.x_box());
    add_map(plan, x_map);
    add_map(plan, weight_map(of.weight, of.weight_stride));
    add_map(plan, p.gated ? weight_map(of.up, of.up_stride) : unused);
    add_map(plan, g.staged != 0 && p.out % 8 == 0 ? result_map : unused);
    add_map(plan, rest_map(x_map, 0));
}

/// Blocks of the launch, whole clusters: those that have tiles or parts of some, and no more than find a
/// place.
std::int64_t blocks(const LinearProblem& p, const WgmmaConfig& c, const DeviceTraits& traits,
                    std::int64_t neighbours) {
    const std::int64_t count = tiles(p, geometry(p, c));
    if (c.cluster_k > 1) return count * c.cluster_k;  // clusters have one tile each, other blocks walk
    if (c.tail_split == 2) return paired_blocks(p, c, traits);
    const std::int64_t wanted = ceil_div(count * parts_of_tail(p, c, traits), neighbours);
    return std::min(wanted, places(c, traits) / neighbours) * neighbours;
}

}  // namespace

Plan plan_product(const Kernel& kernel, const LinearProblem& p, const WgmmaConfig& c,
                  const DeviceTraits& traits, const MapArguments& of, std::int64_t neighbours) {
    const Geometry g = geometry(p, c);
    Launch product = launch(kernel, grid_of(blocks(p, c, traits, neighbours)), g.threads());
    product.cluster = grid_of(g.tail_pairs ? 2 : c.cluster_k * neighbours);
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    Plan plan = plan_of(product);
    // The same for any number of tokens: fewer of them may leave a larger rest.
    if (c.tail_split == 1) plan.workspace_bytes = places(c, traits) * g.workspace_bytes();
    add_maps(plan, p, g, of);
    return plan;
}

}  // namespace hone::linear::gemm

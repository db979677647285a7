#include "kernel_templates/linear/wgmma/product.h"

#include <algorithm>

#include "kernel_templates/linear/wgmma/schedule.cuh"
#include "kernel_templates/linear/wgmma/rules.h"

namespace hone::linear::gemm {

Operands operands(const LinearProblem& p) { return {.columns = static_cast<int>(128 / p.element_bytes())}; }

Geometry geometry(const LinearProblem& p, const Config& config) {
    return {.tile_m = static_cast<int>(config[tile_m]),
            .tile_n = static_cast<int>(config[tile_n]),
            .consumers = static_cast<int>(config[consumers]),
            .blocks_per_sm = static_cast<int>(config[blocks_per_sm]),
            .cluster_k = static_cast<int>(config[cluster_k]),
            .gated = p.gated,
            .swapped = config[swapped] != 0,
            .ping_pong = config[ping_pong] != 0,
            .staged = config[staged] != 0,
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

std::int64_t places(const Config& config, const DeviceTraits& traits) {
    // One place a multiprocessor may be the successor's.
    const std::int64_t used = config[blocks_per_sm] - (config[programmatic] == 2 ? 1 : 0);
    return traits.sm_count * std::max<std::int64_t>(used, 1);
}

std::int64_t resident_blocks(const Config& config, const DeviceTraits& traits) {
    const std::int64_t blocks = places(config, traits);
    switch (config[cluster_k]) {
        case 1: return blocks;
        case 2: return blocks * 32 / 33;
        case 4: return blocks * 29 / 32;
        default: return blocks * 27 / 32;
    }
}

std::int64_t parts_of_tail(const LinearProblem& p, const Config& config, const DeviceTraits& traits) {
    if (config[tail_split] == 0) return 1;
    return tail_parts(static_cast<int>(tiles(p, geometry(p, config))),
                      static_cast<int>(places(config, traits)), static_cast<int>(steps(p)));
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

namespace {

/// Maps of x, weight, up and result, in the order of the kernel's parameters; the weight's stands in for
/// those that the kernel does not use.
void add_maps(Plan& plan, const LinearProblem& p, const Geometry& g, const MapArguments& of) {
    Launch& launch = plan.launches[0];
    const auto add = [&](const TensorMap& map) {
        plan.tensor_maps[static_cast<std::size_t>(plan.tensor_map_count)] = map;
        launch.args[launch.arg_count++] = tensor_map_arg(plan.tensor_map_count++);
    };
    const auto add_unused = [&] { launch.args[launch.arg_count++] = tensor_map_arg(1); };
    const auto weight_map = [&](int pointer, int stride) {
        return matrix_map(p.dtype, pointer, stride, p.in, p.out, g.operands.columns, g.weight_box());
    };
    add(matrix_map(p.dtype, of.x, of.x_stride, p.in, p.tokens, g.operands.columns, g.x_box()));
    add(weight_map(of.weight, of.weight_stride));
    if (p.gated) {
        add(weight_map(of.up, of.up_stride));
    } else {
        add_unused();
    }
    if (g.staged) {
        add(matrix_map(of.result, of.out, of.out_stride, p.out, p.tokens, g.panel_width(),
                       g.swapped ? g.tile_n : block_rows));
    } else {
        add_unused();
    }
}

}  // namespace

Plan plan_product(const char* kernel, const LinearProblem& p, const Config& config,
                  const DeviceTraits& traits, const MapArguments& of) {
    const Geometry g = geometry(p, config);
    Plan plan{.launch_count = 1};
    Launch& gemm = plan.launches[0];
    gemm.kernel = kernel;
    // Clusters have one tile each, other blocks walk.
    const std::int64_t count = tiles(p, g);
    const std::int64_t most = places(config, traits);
    const std::int64_t blocks =
        g.cluster_k > 1 ? count * g.cluster_k : std::min(count * parts_of_tail(p, config, traits), most);
    gemm.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
    gemm.block = {static_cast<std::uint32_t>(g.threads()), 1, 1};
    gemm.cluster = {static_cast<std::uint32_t>(g.cluster_k), 1, 1};
    gemm.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    gemm.programmatic = config[programmatic] != 0;
    // The same for any number of tokens: fewer of them may leave a larger rest.
    if (config[tail_split] != 0) plan.workspace_bytes = most * g.workspace_bytes();
    add_maps(plan, p, g, of);
    return plan;
}

std::vector<Config> proven_configs(const LinearProblem& p) {
    struct Shape {
        std::int64_t tile_m, tile_n, consumers, ping_pong, blocks_per_sm, swapped;
    };
    const std::int64_t rows = p.gated ? 128 : 64;  // of 64 rows of results, where the weight is left
    const Shape shapes[] = {{rows, 8, 1, 0, 2, 1},  {rows, 16, 1, 0, 2, 1},  {rows, 32, 1, 0, 2, 1},
                            {rows, 64, 1, 0, 2, 1}, {rows, 128, 1, 0, 1, 1}, {64, 128, 2, 1, 1, 0},
                            {128, 128, 2, 0, 1, 0}, {128, 256, 2, 0, 1, 0}};
    std::vector<Config> configs;
    for (const Shape& shape : shapes) {
        for (const std::int64_t parts_of_sum : tunables[cluster_k].values.span()) {
            Config& config = configs.emplace_back();
            config[tile_m] = shape.tile_m;
            config[tile_n] = shape.tile_n;
            config[consumers] = shape.consumers;
            config[ping_pong] = shape.ping_pong;
            config[blocks_per_sm] = shape.blocks_per_sm;
            config[swapped] = shape.swapped;
            config[tail_split] = 0;
            config[cluster_k] = parts_of_sum;
            config[staged] = parts_of_sum == 1 ? 1 : 0;
            config[raster] = 8;
            config[l2_hint] = p.tokens <= 64 ? 1 : 0;
            config[programmatic] = p.tokens <= 128 ? 1 : 2;
        }
    }
    return configs;
}

}  // namespace hone::linear::gemm

#include <algorithm>
#include <cmath>

#include "kernel_templates/linear/normalize.h"
#include "kernel_templates/linear/wgmma_tf32/geometry.cuh"

namespace hone::linear {
namespace {

using tf32::Geometry;

enum Index : std::size_t {
    tile_m,
    tile_n,
    consumers,
    blocks_per_sm,
    swapped,
    cluster_k,
    raster,
    l2_hint,
    programmatic
};

constexpr Tunable tunables[] = {
    {"tile_m", "rows of a tile: tokens; swapped: results a token", {64, 128, 192, 256}},
    {"tile_n", "columns of a tile: results a token; swapped: tokens", {16, 32, 64, 96, 112, 128, 160}},
    {"consumers", "warpgroups that multiply", {1, 2, 3}},
    {"blocks_per_sm", "resident blocks a multiprocessor", {1, 2}},
    {"swapped", "1: the weight is the left operand, for few tokens", {0, 1}},
    {"cluster_k", "parts of a sum, added up within a cluster of blocks", {1, 2, 4, 8}},
    {"raster", "rows of tiles that are worked on together", {8, 16}},
    {"l2_hint", "1: weights leave level 2 first, x last", {0, 1}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

Geometry geometry(const LinearProblem& p, const Config& config) {
    return {.tile_m = static_cast<int>(config[tile_m]),
            .tile_n = static_cast<int>(config[tile_n]),
            .consumers = static_cast<int>(config[consumers]),
            .blocks_per_sm = static_cast<int>(config[blocks_per_sm]),
            .cluster_k = static_cast<int>(config[cluster_k]),
            .gated = p.gated,
            .swapped = config[swapped] != 0};
}

std::int64_t steps(const LinearProblem& p) { return ceil_div(p.in, tf32::stage_columns); }

/// Tiles of results in the direction of the left operand's rows, and of the right one's.
std::int64_t tiles_across(const LinearProblem& p, const Geometry& g) {
    return ceil_div(g.swapped ? p.out : p.tokens, g.result_rows());
}
std::int64_t tiles_along(const LinearProblem& p, const Geometry& g) {
    return ceil_div(g.swapped ? p.tokens : p.out, g.result_columns());
}
std::int64_t tiles(const LinearProblem& p, const Geometry& g) {
    return tiles_across(p, g) * tiles_along(p, g);
}

/// Blocks that run at the same time. Clusters do not fill every group of multiprocessors, and nothing here
/// can ask how many fit: a careful estimate.
std::int64_t resident_blocks(const Config& config, const DeviceTraits& traits) {
    const std::int64_t blocks = traits.sm_count * config[blocks_per_sm];
    switch (config[cluster_k]) {
        case 1: return blocks;
        case 2: return blocks * 32 / 33;
        case 4: return blocks * 29 / 32;
        default: return blocks * 27 / 32;
    }
}

constexpr Constraint constraints[] = {
    {"pairs of tf32 numbers are for fp32: other types have variant wgmma",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return linear_problem(p).dtype == Dtype::fp32;
     }},
    {"rows must start at multiples of 16 bytes: in and out are multiples of 4",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return linear_problem(p).in % 4 == 0 && linear_problem(p).out % 4 == 0;
     }},
    {"warpgroups take one or two blocks of 64 rows, with weights as left rows one of each weight",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(linear_problem(problem), c);
         const int blocks = g.gated_rows() ? 2 : 1;
         return g.tile_m % (tf32::block_rows * g.consumers * blocks) == 0 && g.row_blocks() <= 2;
     }},
    {"two blocks a multiprocessor have one consumer each, and three consumers have tiles of 192 rows",
     [](const Problem&, const Config& c, const DeviceTraits&) {
         return (c[blocks_per_sm] == 1 || c[consumers] == 1) && (c[consumers] == 3) == (c[tile_m] == 192);
     }},
    {"sums, and those of one stage, must fit a thread's registers",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(linear_problem(problem), c);
         return g.needed_registers() <= g.consumer_registers();
     }},
    {"at least three stages must fit shared memory",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return geometry(linear_problem(problem), c).stages() >= 3;
     }},
    {"weights are the left operand for up to 256 tokens; up to 64 then share a tile, more share tiles of 64",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const LinearProblem p = linear_problem(problem);
         return c[swapped] == 0 || (p.tokens <= 256 && c[tile_n] >= std::min<std::int64_t>(p.tokens, 64));
     }},
    {"tiles with x as the left operand have 64 columns at least, and one consumer only 64 rows",
     [](const Problem&, const Config& c, const DeviceTraits&) {
         return c[swapped] != 0 || (c[tile_n] >= 64 && (c[consumers] == 1) == (c[tile_m] == 64));
     }},
    {"more than half of a tile's tokens must exist",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const LinearProblem p = linear_problem(problem);
         return c[swapped] != 0 ? c[tile_n] == 16 || c[tile_n] < 2 * p.tokens : c[tile_m] < 2 * p.tokens;
     }},
    {"tiles of less than 128 x 96 are for problems that such tiles cover in four rounds",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const LinearProblem p = linear_problem(problem);
         const std::int64_t large = ceil_div(p.tokens, 128) * ceil_div(p.products() * p.out, 96);
         return c[swapped] != 0 || c[tile_m] * c[tile_n] >= 128 * 96 || large <= 4 * t.sm_count;
     }},
    {"a sum is split where multiprocessors would be idle, into parts of eight steps at least",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const LinearProblem p = linear_problem(problem);
         return c[cluster_k] == 1 || (tiles(p, geometry(p, c)) * c[cluster_k] <= resident_blocks(c, t) &&
                                      8 * c[cluster_k] <= steps(p));
     }},
    {"the parts of sums that meet in a cluster must fit the rings",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(linear_problem(problem), c);
         return c[cluster_k] == 1 || g.exchange_bytes() <= g.barriers_at();
     }},
    {"larger groups are for more than 8 rows of tiles, worked on in more than one round",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const LinearProblem p = linear_problem(problem);
         const Geometry g = geometry(p, c);
         return c[raster] == 8 ||
                (tiles_across(p, g) > 8 && tiles_along(p, g) > 1 && tiles(p, g) > resident_blocks(c, t));
     }},
    {"hints are for weights that are read once: up to 256 tokens",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return c[l2_hint] == 0 || linear_problem(problem).tokens <= 256;
     }},
};

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

/// Maps of x, weight and up, in the order of the kernel's parameters; the weight's stands in for up's.
void add_maps(Plan& plan, const LinearProblem& p, const Geometry& g) {
    plan.tensor_maps[0] = matrix_map(x, x_stride, p.in, p.tokens, g.x_box());
    plan.tensor_maps[1] = matrix_map(weight, weight_stride, p.in, p.out, g.weight_box());
    plan.tensor_maps[2] = matrix_map(up, up_stride, p.in, p.out, g.weight_box());
    plan.tensor_map_count = p.gated ? 3 : 2;
    Launch& launch = plan.launches[0];
    for (const int index : {0, 1, p.gated ? 2 : 1}) launch.args[launch.arg_count++] = tensor_map_arg(index);
}

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    const Geometry g = geometry(p, config);
    Plan plan{.launch_count = 1};
    Launch& launch = plan.launches[0];
    launch.kernel = "linear_wgmma_tf32";
    // Clusters have one tile each, other blocks walk.
    const std::int64_t blocks =
        g.cluster_k > 1 ? tiles(p, g) * g.cluster_k
                        : std::min<std::int64_t>(tiles(p, g), traits.sm_count * config[blocks_per_sm]);
    launch.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
    launch.block = {static_cast<std::uint32_t>(g.threads()), 1, 1};
    launch.cluster = {static_cast<std::uint32_t>(g.cluster_k), 1, 1};
    launch.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    launch.programmatic = config[programmatic] != 0;
    add_maps(plan, p, g);
    for (const int index : {bias, residual, out}) launch.args[launch.arg_count++] = pointer_arg(index);
    for (const int index : {tokens, residual_stride, out_stride})
        launch.args[launch.arg_count++] = scalar_arg(index);
    return normalize_first(p, plan);
}

/// Cycles of one stage of `together` blocks: what the tensor cores and the port of shared memory take for it
/// (product.cuh), or what one warpgroup cannot do while its own products run, which the others' fill.
double stage_cycles(const Geometry& g, double together) {
    const double instructions = 3.0 * tf32::slices * g.tile_m / tf32::block_rows;
    const double multiply = instructions * std::max(g.tile_n / 2.0, 12.0);
    const double port = instructions * g.tile_n / 4 + 2.0 * g.tile_m + 3.0 * g.tile_n;
    const double alone = (multiply / g.consumers + 200.0 * g.row_blocks());
    return std::max({together * 1.05 * multiply, together * 1.1 * port, alone});
}

/// Rounds of tiles, each as long as its stages take to multiply, against the time that memory needs for the
/// weights; plus what a call costs before and after. From the floors, not yet fitted to measurements.
double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    const Geometry g = geometry(p, config);
    const double jobs = static_cast<double>(tiles(p, g) * config[cluster_k]);
    const double resident = static_cast<double>(resident_blocks(config, traits));
    const double rounds = std::ceil(jobs / resident);
    const double together = std::ceil(std::min(jobs, resident) / traits.sm_count);
    const double busy = std::min(1.0, jobs / traits.sm_count);
    const double part_steps = std::ceil(static_cast<double>(steps(p)) / static_cast<double>(g.cluster_k));

    const double cycles_per_us = (busy > 0.5 ? 0.886e-3 : 1e-3) * traits.sm_clock_khz;
    const double compute_us = rounds * part_steps * stage_cycles(g, together) / cycles_per_us;
    const double bytes_per_us = 0.9e-6 * traits.memory_bytes_per_s;
    const double hinted = config[l2_hint] != 0 && p.tokens <= 128 ? 0.97 : 1.0;
    const double memory_us = (hinted * p.weight_bytes() + p.x_bytes() + p.out_bytes()) / bytes_per_us;
    // What a multiprocessor can draw at once: a stage comes a microsecond after it was asked for.
    const double in_flight = traits.sm_count * busy * together * g.stages() * g.copied_bytes();
    const double draw_us = p.weight_bytes() * 1.2 / in_flight;
    const double body_us =
        std::pow(std::pow(compute_us, 4) + std::pow(memory_us, 4) + std::pow(draw_us, 4), 0.25);

    const double size = static_cast<double>(g.result_rows() * g.result_columns()) / (128.0 * 256.0);
    const double epilogue_us = 2.0 * size * (p.activation != Activation::none || p.residual ? 2.0 : 1.0);
    const double exchange_us = g.cluster_k > 1 ? 0.5 * g.cluster_k : 0.0;
    const double early = config[programmatic] == 0 ? 0.0 : p.tokens <= 128 ? -0.7 : 0.04 * body_us;
    return body_us + 3.2 + rounds * epilogue_us + exchange_us + early + normalize_us(p, traits);
}

/// The best by the cost model of a few shapes of tiles.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    if (p.tokens <= 8) return std::nullopt;  // gemv is faster
    struct Shape {
        std::int64_t tile_m, tile_n, consumers, swapped;
    };
    const std::int64_t rows = p.gated ? 256 : 128;  // of 64 results a warpgroup, where the weight is left
    const Shape shapes[] = {{rows, 16, 2, 1}, {rows, 32, 2, 1}, {rows, 64, 2, 1}, {rows, 128, 2, 1},
                            {128, 64, 2, 0},  {128, 128, 2, 0}, {192, 96, 3, 0},  {256, 128, 2, 0}};
    std::vector<Config> configs;
    for (const Shape& shape : shapes) {
        for (const std::int64_t parts : tunables[cluster_k].values.span()) {
            Config& config = configs.emplace_back();
            config[tile_m] = shape.tile_m;
            config[tile_n] = shape.tile_n;
            config[consumers] = shape.consumers;
            config[blocks_per_sm] = 1;
            config[swapped] = shape.swapped;
            config[cluster_k] = parts;
            config[raster] = 8;
            config[l2_hint] = p.tokens <= 64 ? 1 : 0;
            config[programmatic] = p.tokens <= 128 ? 1 : 0;
        }
    }
    return best_of(problem, wgmma_tf32, configs, traits);
}

}  // namespace

const Variant wgmma_tf32{
    .name = "wgmma_tf32",
    .summary = "fp32 as pairs of tf32 numbers, three products each on the warpgroup tensor cores",
    .source = "linear/wgmma_tf32/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .plan = plan,
    .fallback = fallback,
    .access_elements = [](const Problem&, const Config&) { return std::int64_t{4}; },
    .predict_us = predict};

}  // namespace hone::linear

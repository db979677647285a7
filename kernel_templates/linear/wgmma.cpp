#include <algorithm>
#include <cmath>

#include "kernel_templates/linear/gemm_geometry.cuh"
#include "kernel_templates/linear/normalise.h"

namespace hone::linear {
namespace {

using gemm::Geometry;

enum Index : std::size_t {
    tile_m,
    tile_n,
    k_panels,
    consumers,
    ping_pong,
    blocks_per_sm,
    swapped,
    stream_k,
    cluster_k,
    staged,
    raster,
    l2_hint,
    programmatic
};

constexpr Tunable tunables[] = {
    {"tile_m", "rows of a tile: tokens; swapped: results a token", {64, 128, 256}},
    {"tile_n",
     "columns of a tile: results a token; swapped: tokens",
     {8, 16, 32, 64, 80, 96, 112, 128, 160, 168, 192, 224, 256}},
    {"k_panels", "panels of 64 columns of x and of the weight in a stage", {1, 2, 4}},
    {"consumers", "warpgroups that multiply", {1, 2}},
    {"ping_pong", "1: they take tiles in turn instead of sharing one", {0, 1}},
    {"blocks_per_sm", "resident blocks a multiprocessor", {1, 2, 3}},
    {"swapped", "1: the weight is the left operand, for few tokens", {0, 1}},
    {"stream_k", "1: tiles of the last rounds are cut, so that all blocks do the same work", {0, 1}},
    {"cluster_k", "parts of a sum, added up within a cluster of blocks", {1, 2, 4, 8}},
    {"staged", "1: results leave through shared memory and the copy engine", {0, 1}},
    {"raster", "rows of tiles that are worked on together", {8, 16}},
    {"l2_hint", "1: weights leave level 2 first, x last", {0, 1}},
    {"programmatic",
     "1: programmatic dependent launch; 2: of the successor, late and beside the block; 3: with weights into "
     "level 2",
     {0, 1, 2, 3}},
};

Geometry geometry(const LinearProblem& p, const Config& config) {
    return {.tile_m = static_cast<int>(config[tile_m]),
            .tile_n = static_cast<int>(config[tile_n]),
            .k_panels = static_cast<int>(config[k_panels]),
            .consumers = static_cast<int>(config[consumers]),
            .blocks_per_sm = static_cast<int>(config[blocks_per_sm]),
            .cluster_k = static_cast<int>(config[cluster_k]),
            .gated = p.gated,
            .swapped = config[swapped] != 0,
            .ping_pong = config[ping_pong] != 0,
            .staged = config[staged] != 0};
}

std::int64_t steps(const LinearProblem& p, const Geometry& g) { return ceil_div(p.in, g.stage_columns()); }

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

/// Blocks a multiprocessor that a call uses: one place may be its successor's.
std::int64_t used_places(const Config& config) {
    return std::max<std::int64_t>(config[blocks_per_sm] - (config[programmatic] >= 2 ? 1 : 0), 1);
}

/// Blocks that run at the same time. Clusters do not fill every group of multiprocessors, and nothing here
/// can ask how many fit: a careful estimate.
std::int64_t resident_blocks(const Config& config, const DeviceTraits& traits) {
    const std::int64_t blocks = traits.sm_count * used_places(config);
    switch (config[cluster_k]) {
        case 1: return blocks;
        case 2: return blocks * 32 / 33;
        case 4: return blocks * 29 / 32;
        default: return blocks * 27 / 32;
    }
}

/// A thread's registers, where the roles do not exchange theirs.
bool fits_registers(const LinearProblem& p, const Geometry& g) {
    const bool plain_results = p.gated || (!p.bias && !p.residual && p.activation == Activation::none);
    if (g.sums() > (plain_results ? 192 : 128)) return false;
    if (g.blocks_per_sm == 1 && g.consumers == 2) return true;
    return g.sums() + 40 <= 65536 / (g.threads() * g.blocks_per_sm);
}

constexpr Constraint constraints[] = {
    {"tensor cores multiply fp16 and bf16",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return linear_problem(p).dtype != Dtype::fp32;
     }},
    {"rows must start at multiples of 16 bytes: in and out are multiples of 8",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return linear_problem(p).in % 8 == 0 && linear_problem(p).out % 8 == 0;
     }},
    {"warpgroups take whole blocks of 64 rows; ping-pong is between two of them",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const LinearProblem p = linear_problem(problem);
         const Geometry g = geometry(p, c);
         return (!g.ping_pong || g.consumers == 2) &&
                g.tile_m % (gemm::block_rows * g.sharers() * (g.gated_rows() ? 2 : 1)) == 0;
     }},
    {"gate and up columns meet in one thread, and staged rows have 16 results at least",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(linear_problem(problem), c);
         return (!g.gated_columns() || g.tile_n % 16 == 0) &&
                (!g.staged || g.swapped || g.result_columns() % 16 == 0);
     }},
    {"a thread's sums must fit its registers",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const LinearProblem p = linear_problem(problem);
         return fits_registers(p, geometry(p, c));
     }},
    {"one consumer is for 64 rows of results; two blocks a multiprocessor have one consumer each, three up "
     "to "
     "64 tokens",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return (c[consumers] == 1) ==
                    (c[consumers] == 1 && geometry(linear_problem(problem), c).result_rows() == 64) &&
                (c[blocks_per_sm] == 1 || c[consumers] == 1) &&
                (c[blocks_per_sm] < 3 || linear_problem(problem).tokens <= 64);
     }},
    {"at least three stages must fit shared memory",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return geometry(linear_problem(problem), c).stages() >= 3;
     }},
    {"weights are the left operand for up to 512 tokens; up to 64 then share a tile, more share tiles of 64",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const LinearProblem p = linear_problem(problem);
         const std::int64_t least = p.tokens <= 64 ? p.tokens : p.tokens <= 128 ? 64 : 128;
         return c[swapped] == 0 || (p.tokens <= 512 && c[tile_n] >= least);
     }},
    {"weights as the left operand: no ping-pong, and one consumer for up to 64 tokens",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return c[swapped] == 0 ||
                (c[ping_pong] == 0 && (c[consumers] == 1 || linear_problem(problem).tokens > 64));
     }},
    {"stages of several panels are for up to 64 tokens as columns",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return c[k_panels] == 1 || (c[swapped] != 0 && linear_problem(problem).tokens <= 64);
     }},
    {"tiles with x as the left operand have 64 columns at least",
     [](const Problem&, const Config& c, const DeviceTraits&) { return c[swapped] != 0 || c[tile_n] >= 64; }},
    {"more than half of a tile's tokens must exist",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const LinearProblem p = linear_problem(problem);
         return c[swapped] != 0 ? c[tile_n] == 8 || c[tile_n] < 2 * p.tokens : c[tile_m] < 2 * p.tokens;
     }},
    {"tiles of less than 128 x 128 are for problems that such tiles cover in four rounds",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const LinearProblem p = linear_problem(problem);
         const std::int64_t large = ceil_div(p.tokens, 128) * ceil_div(p.products() * p.out, 128);
         return c[swapped] != 0 || c[tile_m] * c[tile_n] >= 128 * 128 || large <= 4 * t.sm_count;
     }},
    {"a sum is split over a cluster between tiles that are shared and not staged, or cut by stream-K",
     [](const Problem&, const Config& c, const DeviceTraits&) {
         return c[cluster_k] == 1 || (c[stream_k] == 0 && c[ping_pong] == 0 && c[staged] == 0);
     }},
    {"a sum is split over a cluster where multiprocessors would be idle, into parts of four steps at least",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const LinearProblem p = linear_problem(problem);
         return c[cluster_k] == 1 || (tiles(p, geometry(p, c)) * c[cluster_k] <= resident_blocks(c, t) &&
                                      4 * c[cluster_k] <= steps(p, geometry(p, c)));
     }},
    {"stream-K is for tiles that leave a fiftieth of their rounds empty, and for eight steps a block",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const LinearProblem p = linear_problem(problem);
         const std::int64_t all = tiles(p, geometry(p, c));
         const std::int64_t blocks = resident_blocks(c, t);
         const std::int64_t places = ceil_div(all, blocks) * blocks;
         return c[stream_k] == 0 ||
                (50 * (places - all) >= places && all * steps(p, geometry(p, c)) >= 8 * blocks);
     }},
    {"the parts of sums that meet in a cluster must fit the rings",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(linear_problem(problem), c);
         return c[cluster_k] == 1 || g.exchange_bytes() <= g.stages() * g.stage_bytes();
     }},
    {"whole sums go through shared memory, except those of up to 64 tokens as columns",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return c[staged] != 0 || c[cluster_k] > 1 ||
                (c[swapped] != 0 && linear_problem(problem).tokens <= 64);
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
    {"early weights are for up to 128 tokens: with more, they are in the way of the call before",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return c[programmatic] == 0 || c[programmatic] == 2 || linear_problem(problem).tokens <= 128;
     }},
};

/// Kernel arguments behind the tensor maps.
void add_results(Launch& launch) {
    for (const int index : {bias, residual, out, workspace})
        launch.args[launch.arg_count++] = pointer_arg(index);
    for (const int index : {tokens, residual_stride, out_stride})
        launch.args[launch.arg_count++] = scalar_arg(index);
}

TensorMap matrix_map(Dtype dtype, int pointer, int stride, std::int64_t columns, std::int64_t rows,
                     int box_columns, int box_rows) {
    TensorMap map{.pointer = static_cast<std::uint8_t>(pointer),
                  .dtype = dtype,
                  .rank = 2,
                  .swizzle_bytes = static_cast<std::uint8_t>(2 * box_columns)};
    map.extents[0] = static_cast<std::uint32_t>(columns);
    map.extents[1] = static_cast<std::uint32_t>(rows);
    map.stride_scalars[0] = static_cast<std::uint8_t>(stride);
    map.box[0] = static_cast<std::uint16_t>(box_columns);
    map.box[1] = static_cast<std::uint16_t>(box_rows);
    return map;
}

/// Maps of x, weight, up and result, in the order of the kernel's parameters; the weight's stands in for
/// those that the kernel does not use.
void add_maps(Plan& plan, const LinearProblem& p, const Geometry& g) {
    Launch& launch = plan.launches[0];
    const auto add = [&](const TensorMap& map) {
        plan.tensor_maps[static_cast<std::size_t>(plan.tensor_map_count)] = map;
        launch.args[launch.arg_count++] = tensor_map_arg(plan.tensor_map_count++);
    };
    const auto add_unused = [&] { launch.args[launch.arg_count++] = tensor_map_arg(1); };
    const auto weight_map = [&](int pointer, int stride) {
        return matrix_map(p.dtype, pointer, stride, p.in, p.out, gemm::k_panel, g.weight_box());
    };
    add(matrix_map(p.dtype, x, x_stride, p.in, p.tokens, gemm::k_panel, g.x_box()));
    add(weight_map(weight, weight_stride));
    if (p.gated) {
        add(weight_map(up, up_stride));
    } else {
        add_unused();
    }
    if (g.staged) {
        add(matrix_map(p.dtype, out, out_stride, p.out, p.tokens, g.panel_width(),
                       g.swapped ? g.tile_n : gemm::block_rows));
    } else {
        add_unused();
    }
}

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    const Geometry g = geometry(p, config);
    Plan plan{.launch_count = 1};
    Launch& gemm = plan.launches[0];
    gemm.kernel = "linear_wgmma";
    // Clusters have one tile each, other blocks walk.
    const std::int64_t count = tiles(p, g);
    const std::int64_t places = traits.sm_count * used_places(config);
    const std::int64_t blocks = g.cluster_k > 1         ? count * g.cluster_k
                                : config[stream_k] != 0 ? std::min(count * steps(p, g), places)
                                                        : std::min(count, places);
    gemm.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
    gemm.block = {static_cast<std::uint32_t>(g.threads()), 1, 1};
    gemm.cluster = {static_cast<std::uint32_t>(g.cluster_k), 1, 1};
    gemm.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    gemm.programmatic = config[programmatic] != 0;
    if (config[stream_k] != 0) plan.workspace_bytes = blocks * g.workspace_bytes();
    add_maps(plan, p, g);
    add_results(gemm);
    return normalise_first(p, plan);
}

/// Cycles of one stage: the tensor cores' own, and those of shared memory's port, 128 bytes each, which takes
/// the copies in and gives every instruction its 64 rows of the left operand and all rows of the right one.
double stage_cycles(const Geometry& g) {
    const double instructions = 4.0 * g.k_panels * g.tile_m / gemm::block_rows;
    const double multiply = instructions * g.tile_n / 2;
    const double port = (g.stage_bytes() + instructions * (2048.0 + 32.0 * g.tile_n)) / 128;
    return std::max(1.1 * multiply, port);  // power keeps the clock of busy tensor cores down
}

/// Microseconds between the last product of a tile and the first of the block's next one.
double epilogue_us(const LinearProblem& p, const Geometry& g) {
    const double size = static_cast<double>(g.result_rows() * g.result_columns()) / (128.0 * 256.0);
    const double work = 1.0 + (p.activation != Activation::none ? 1.0 : 0.0) + (p.residual ? 2.0 : 0.0);
    return (g.ping_pong ? 0.3 : 1.5) * size * work;
}

/// Microseconds for leaving a part of a tile's sums and adding those of the others, 64 bytes a cycle.
double fix_up_us(const LinearProblem& p, const Geometry& g, double rounds, double cycles_per_us) {
    const double parts_of_tile = std::min(1 + 1 / rounds, static_cast<double>(steps(p, g)));
    return 0.5 + parts_of_tile * (0.5 + g.partial_bytes() / 64.0 / cycles_per_us);
}

/// Rounds of tiles, each as long as its stages take to multiply, against the time that memory needs for the
/// weights; plus what a call costs before and after. Fitted to 685 measurements of 33 problems on an
/// H100 (docs/performance.md).
double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    const Geometry g = geometry(p, config);
    const double jobs = static_cast<double>(tiles(p, g) * config[cluster_k]);
    const double resident = static_cast<double>(resident_blocks(config, traits));
    const bool cut = config[stream_k] != 0;
    const double rounds = cut ? jobs / resident : std::ceil(jobs / resident);
    const double together = cut ? static_cast<double>(used_places(config))
                                : std::ceil(std::min(jobs, resident) / traits.sm_count);
    const double busy = cut ? 1.0 : std::min(1.0, jobs / traits.sm_count);
    const double part_steps =
        std::ceil(static_cast<double>(steps(p, g)) / static_cast<double>(config[cluster_k]));

    const double cycles_per_us = (busy > 0.5 ? 0.886e-3 : 1e-3) * traits.sm_clock_khz;
    const double compute_us = rounds * together * part_steps * stage_cycles(g) / cycles_per_us;
    const double hinted = config[l2_hint] != 0 && p.tokens <= 128 ? 0.96 : 1.0;
    const double bytes_per_us = 0.9e-6 * traits.memory_bytes_per_s;
    const double memory_us = (hinted * p.weight_bytes() + p.x_bytes() + p.out_bytes()) / bytes_per_us;
    // What a multiprocessor can draw at once: a stage comes a microsecond after it was asked for.
    const double in_flight = traits.sm_count * busy * together * g.stages() * g.stage_bytes();
    const double draw_us = p.weight_bytes() * 1.2 / in_flight;
    const double body_us =
        std::pow(std::pow(compute_us, 4) + std::pow(memory_us, 4) + std::pow(draw_us, 4), 0.25);

    double rest_us = 3.2 + std::ceil(rounds) * epilogue_us(p, g) + normalise_us(p, traits);
    if (config[cluster_k] > 1) rest_us += 0.5 * static_cast<double>(config[cluster_k]);
    if (cut) rest_us += fix_up_us(p, g, rounds, cycles_per_us);
    // Early weights help as long as they are most of what is read; later they are in the way of the call
    // before.
    const double early = config[programmatic] == 0 ? 0.0 : p.tokens <= 128 ? -0.7 : -0.4;
    return body_us + rest_us + early + (config[staged] != 0 && p.tokens <= 64 ? 0.2 : 0.0);
}

/// The best by the cost model of a few proven shapes of tiles.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    if (p.tokens <= 8) return std::nullopt;  // mma and gemv are faster
    struct Shape {
        std::int64_t tile_m, tile_n, consumers, ping_pong, blocks_per_sm, swapped;
    };
    const std::int64_t rows = p.gated ? 128 : 64;  // of 64 rows of results, where the weight is left
    const Shape shapes[] = {{rows, 16, 1, 0, 2, 1},  {rows, 32, 1, 0, 2, 1}, {rows, 64, 1, 0, 2, 1},
                            {rows, 128, 1, 0, 1, 1}, {64, 128, 2, 1, 1, 0},  {128, 128, 2, 0, 1, 0},
                            {128, 256, 2, 0, 1, 0}};
    std::optional<Config> best;
    double best_us = 0;
    for (const Shape& shape : shapes) {
        for (const std::int64_t parts_of_sum : tunables[cluster_k].values.span()) {
            Config config;
            config[tile_m] = shape.tile_m;
            config[tile_n] = shape.tile_n;
            config[k_panels] = 1;
            config[consumers] = shape.consumers;
            config[ping_pong] = shape.ping_pong;
            config[blocks_per_sm] = shape.blocks_per_sm;
            config[swapped] = shape.swapped;
            config[stream_k] = 0;
            config[cluster_k] = parts_of_sum;
            config[staged] = parts_of_sum == 1 ? 1 : 0;
            config[raster] = 8;
            config[l2_hint] = p.tokens <= 64 ? 1 : 0;
            config[programmatic] = p.tokens <= 128 ? 1 : 0;
            if (!allowed(problem, {&wgmma, config}, traits)) continue;
            const double us = predict(problem, config, traits);
            if (best && us >= best_us) continue;
            best = config;
            best_us = us;
        }
    }
    return best;
}

}  // namespace

const Variant wgmma{.name = "wgmma",
                    .summary = "warpgroup tensor cores fed by tensor copies, one warpgroup for the copies",
                    .source = "linear/wgmma.cu",
                    .min_arch = {9, 0, true},
                    .tunables = tunables,
                    .constraints = constraints,
                    .plan = plan,
                    .fallback = fallback,
                    .access_elements = [](const Problem&, const Config&) { return std::int64_t{8}; },
                    .predict_us = predict};

}  // namespace hone::linear

#include <algorithm>
#include <cmath>

#include "kernel_templates/linear/mma_tiles/geometry.cuh"
#include "kernel_templates/linear/normalize.h"

namespace hone::linear {
namespace {

using tiles::Geometry;

enum Index : std::size_t {
    tile_m,
    tile_n,
    tile_k,
    warps_m,
    warps_n,
    stages,
    blocks_per_sm,
    split,
    raster,
    programmatic
};

constexpr Tunable tunables[] = {
    {"tile_m", "tokens of a block", {32, 64, 128, 256}},
    {"tile_n", "rows of the weight of a block; gated: of both weights", {64, 128, 256}},
    {"tile_k", "columns of a stage", {32, 64}},
    {"warps_m", "warps that share the tokens", {1, 2, 4}},
    {"warps_n", "warps that share the rows of the weight", {1, 2, 4}},
    {"stages", "in shared memory; 2: filled through registers, more: by asynchronous copies", {2, 3, 4, 6}},
    {"blocks_per_sm", "resident blocks a multiprocessor", {1, 2, 3}},
    {"split", "parts of a sum, added up by a second launch", {1, 2, 3, 4, 6, 8}},
    {"raster", "rows of tiles that are worked on together", {8, 16}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

Geometry geometry(const LinearProblem& p, const Config& config) {
    return {.tile_m = static_cast<int>(config[tile_m]),
            .tile_n = static_cast<int>(config[tile_n]),
            .tile_k = static_cast<int>(config[tile_k]),
            .warps_m = static_cast<int>(config[warps_m]),
            .warps_n = static_cast<int>(config[warps_n]),
            .stages = static_cast<int>(config[stages]),
            .blocks_per_sm = static_cast<int>(config[blocks_per_sm]),
            .gated = p.gated};
}

std::int64_t k_tiles(const LinearProblem& p, const Config& config) { return ceil_div(p.in, config[tile_k]); }
std::int64_t rows_of_tiles(const LinearProblem& p, const Config& config) {
    return ceil_div(p.tokens, config[tile_m]);
}
std::int64_t tile_count(const LinearProblem& p, const Config& config) {
    return rows_of_tiles(p, config) * ceil_div(p.out, geometry(p, config).result_columns());
}

/// As many blocks as shared memory and registers allow, up to three.
std::int64_t resident_blocks(Geometry g, const DeviceTraits& traits) {
    if (g.shared_bytes() > traits.max_shared_bytes_per_block) return 0;
    const std::int64_t reserved = traits.compute_major >= 8 ? 1024 : 0;  // of shared memory, a block
    std::int64_t blocks = 0;
    for (g.blocks_per_sm = 1; g.blocks_per_sm <= 3; ++g.blocks_per_sm) {
        if (g.blocks_per_sm * (g.shared_bytes() + reserved) <= traits.shared_bytes_per_sm &&
            g.blocks_per_sm * g.threads() <= traits.max_threads_per_sm &&
            g.registers() <= g.register_budget())
            blocks = g.blocks_per_sm;
    }
    return blocks;
}

constexpr Constraint constraints[] = {
    {"tensor cores multiply fp16 and bf16, before sm_80 fp16 alone",
     [](const Problem& p, const Config&, const DeviceTraits& t) {
         const Dtype dtype = linear_problem(p).dtype;
         return dtype == Dtype::fp16 || (dtype == Dtype::bf16 && t.compute_major >= 8);
     }},
    {"rows must start at multiples of 16 bytes: in and out are multiples of 8",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return linear_problem(p).in % 8 == 0 && linear_problem(p).out % 8 == 0;
     }},
    {"up to 16 tokens are mma's, up to 8 gemv's where there is no mma",
     [](const Problem& p, const Config&, const DeviceTraits& t) {
         return linear_problem(p).tokens > (runs_on(mma, t) ? 16 : 8);
     }},
    {"asynchronous copies need sm_80",
     [](const Problem&, const Config& c, const DeviceTraits& t) {
         return c[stages] == 2 || t.has_async_copy();
     }},
    {"programmatic dependent launch needs sm_90, and helps up to 512 tokens",
     [](const Problem& p, const Config& c, const DeviceTraits& t) {
         return c[programmatic] == 0 || (t.has_programmatic_launch() && linear_problem(p).tokens <= 512);
     }},
    {"blocks have 4 or 8 warps, each with 32 or 64 rows of both operands",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(linear_problem(p), c);
         return (g.warps() == 4 || g.warps() == 8) && (g.warp_rows() == 32 || g.warp_rows() == 64) &&
                (g.warp_columns() == 32 || g.warp_columns() == 64);
     }},
    {"each operand is copied in whole rounds of 16 bytes a thread",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(linear_problem(p), c);
         return g.tile_m % g.rows_a_round() == 0 && g.result_columns() % g.rows_a_round() == 0;
     }},
    {"more than half of a tile's tokens must exist",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[tile_m] == 32 || c[tile_m] < 2 * linear_problem(p).tokens;
     }},
    {"tiles of less than 128 x 128 are for problems that such tiles cover in four rounds",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const LinearProblem p = linear_problem(problem);
         const std::int64_t large = ceil_div(p.tokens, 128) * ceil_div(p.products() * p.out, 128);
         return c[tile_m] * c[tile_n] >= 128 * 128 || large <= 4 * t.sm_count;
     }},
    {"as many blocks are resident as shared memory and registers allow, up to three",
     [](const Problem& p, const Config& c, const DeviceTraits& t) {
         return c[blocks_per_sm] == resident_blocks(geometry(linear_problem(p), c), t);
     }},
    {"a sum is split where multiprocessors would be idle, into parts of eight steps of 16 columns at least",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const LinearProblem p = linear_problem(problem);
         return c[split] == 1 ||
                (tile_count(p, c) * c[split] <= t.sm_count * c[blocks_per_sm] && c[split] * 128 <= p.in);
     }},
    {"larger groups are for more than 8 rows of tiles, worked on in more than one round",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const LinearProblem p = linear_problem(problem);
         return c[raster] == 8 ||
                (rows_of_tiles(p, c) > 8 && tile_count(p, c) > t.sm_count * c[blocks_per_sm]);
     }},
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    const LinearProblem p = linear_problem(problem);
    const Geometry g = geometry(p, config);
    Plan plan{.launch_count = 1};
    plan.launches[0] =
        launch("linear_mma_tiles", {static_cast<std::uint32_t>(tile_count(p, config) * config[split]), 1, 1},
               g.threads());
    plan.launches[0].shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    plan.launches[0].programmatic = config[programmatic] != 0;
    if (config[split] == 1) return normalize_first(p, plan);

    const std::int64_t results = p.tokens * p.out;
    constexpr std::int64_t combined = 256 * 4;  // results of a block of the second launch
    plan.workspace_bytes = config[split] * p.products() * results * 4;
    plan.launch_count = 2;
    plan.launches[1] =
        launch("linear_combine", {static_cast<std::uint32_t>(ceil_div(results, combined)), 1, 1}, 256);
    plan.launches[1].programmatic = plan.launches[0].programmatic;
    return normalize_first(p, plan);
}

/// Floating-point operations a cycle that mma.sync reaches on a multiprocessor, with float32 sums: from the
/// data sheets' rates and clocks; sm_90 gives it 62 % of what wgmma gets.
double flops_per_cycle(const DeviceTraits& traits) {
    switch (traits.compute_major) {
        case 7: return 1024;
        case 8: return traits.compute_minor == 0 ? 2048 : 1024;
        case 9: return 2540;
        case 10: return 2048;
        default: return 512;
    }
}

/// Cycles of 16 columns of one block: the tensor cores' own, and those of shared memory's port, 128 bytes
/// each, which takes the copies in and gives every warp its rows of both operands.
double step_cycles(const Geometry& g, const DeviceTraits& traits) {
    const double multiply = 32.0 * g.tile_m * g.tile_n / flops_per_cycle(traits);
    const double rows = g.tile_m + g.tile_n + g.warps() * (g.warp_rows() + g.warp_columns());
    return std::max(1.1 * multiply, 32.0 * rows / 128);
}

/// Rounds of tiles, each as long as its steps take to multiply, against the time that memory and level 2 need
/// and what the copies in flight can draw; plus what a call costs before and after.
double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    const Geometry g = geometry(p, config);
    const double jobs = static_cast<double>(tile_count(p, config) * config[split]);
    const double sms = traits.sm_count;
    const double blocks = static_cast<double>(config[blocks_per_sm]);
    const double full_rounds = std::floor(jobs / (sms * blocks));
    const double rest = std::ceil((jobs - full_rounds * sms * blocks) / sms);
    const double together = full_rounds > 0 ? blocks : rest;
    const double busy = std::min(1.0, jobs / sms);

    const double part_stages =
        std::ceil(static_cast<double>(k_tiles(p, config)) / static_cast<double>(config[split]));
    const double cycles_per_us = (busy > 0.5 ? 0.886e-3 : 1e-3) * traits.sm_clock_khz;
    // Four warps cannot hide their barriers and reads behind each other's products; eight can, in part.
    const double alone = together * g.warps() <= 4 ? 1.25 : g.reads_ahead() ? 1.0 : 1.05;
    const double stage_cycles =
        static_cast<double>(config[tile_k]) / 16 * step_cycles(g, traits) * alone + 20;
    const double compute_us = (full_rounds * blocks + rest) * part_stages * stage_cycles / cycles_per_us;

    const double bytes_per_us = 0.9e-6 * traits.memory_bytes_per_s;
    const double memory_us = (p.weight_bytes() + p.x_bytes() + p.out_bytes()) / bytes_per_us;
    const double stage_bytes = g.stage_bytes();
    const double level2_us = jobs / busy * part_stages * stage_bytes / (sms * 48 * cycles_per_us);
    const double in_flight = sms * busy * together * (g.stages - 1) * stage_bytes;
    const double draw_us = jobs * part_stages * stage_bytes / in_flight * 0.8;
    const double body_us = std::pow(
        std::pow(compute_us, 4) + std::pow(memory_us, 4) + std::pow(level2_us, 4) + std::pow(draw_us, 4),
        0.25);

    const double size = static_cast<double>(g.tile_m * g.result_columns()) / (128.0 * 256.0);
    const double work = 1.0 + (p.activation != Activation::none ? 1.0 : 0.0) + (p.residual ? 1.0 : 0.0);
    double rest_us = 3.2 + (full_rounds + 1) * 2.0 * size * work - (config[programmatic] != 0 ? 0.5 : 0.0);
    if (config[split] > 1) {
        const double partial_bytes =
            4.0 * static_cast<double>(config[split] * p.products() * p.tokens) * static_cast<double>(p.out);
        rest_us += 2.5 + 2 * partial_bytes / (1.5 * bytes_per_us);
    }
    return body_us + rest_us + normalize_us(p, traits);
}

/// The best by the cost model of a few proven shapes of tiles.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    struct Shape {
        std::int64_t tile_m, tile_n, warps_m, warps_n;
    };
    constexpr Shape shapes[] = {{32, 128, 1, 4},  {64, 64, 2, 2},   {64, 128, 2, 2},
                                {128, 128, 2, 2}, {128, 256, 2, 4}, {256, 128, 4, 2}};
    std::vector<Config> configs;
    for (const Shape& shape : shapes) {
        for (const std::int64_t parts : tunables[split].values.span()) {
            for (const std::int64_t ring : {2, 3, 4}) {
                Config& config = configs.emplace_back();
                config[tile_m] = shape.tile_m;
                config[tile_n] = shape.tile_n;
                config[tile_k] = 32;
                config[warps_m] = shape.warps_m;
                config[warps_n] = shape.warps_n;
                config[stages] = ring;
                config[blocks_per_sm] = resident_blocks(geometry(p, config), traits);
                config[split] = parts;
                config[raster] = 8;
                config[programmatic] = traits.has_programmatic_launch() && p.tokens <= 128 ? 1 : 0;
            }
        }
    }
    return best_of(problem, mma_tiles, configs, traits);
}

}  // namespace

const Variant mma_tiles{.name = "mma_tiles",
                        .summary = "warp tensor cores fed from tiles in shared memory",
                        .source = "linear/mma_tiles/kernel.cu",
                        .min_arch = {7, 5, false},
                        .tunables = tunables,
                        .constraints = constraints,
                        .plan = plan,
                        .fallback = fallback,
                        .access_elements = [](const Problem&, const Config&) { return std::int64_t{8}; },
                        .predict_us = predict};

}  // namespace hone::linear

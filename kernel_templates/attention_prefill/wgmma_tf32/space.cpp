#include <algorithm>
#include <cmath>

#include "kernel_templates/attention_prefill/attention_prefill.h"
#include "kernel_templates/attention_prefill/wgmma_tf32/geometry.cuh"

namespace hone::attention_prefill {
namespace {

using tf32::Geometry;

enum Index : std::size_t { consumers, tile_n, stages, programmatic };

constexpr Tunable tunables[] = {
    {"consumers", "warpgroups that multiply, 64 queries each", {1, 2, 3}},
    {"tile_n", "keys of a stage", {32, 64, 96, 128}},
    {"stages", "stages of keys, and of values", {1, 2, 3}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

Geometry geometry(const AttentionProblem& p, const Config& config) {
    return {.head_dim = static_cast<int>(p.head_dim),
            .consumers = static_cast<int>(config[consumers]),
            .tile_n = static_cast<int>(config[tile_n]),
            .stages = static_cast<int>(config[stages])};
}

/// Tiles of all heads and sequences, as if every sequence were the longest.
std::int64_t tiles(const AttentionProblem& p, const Geometry& g) {
    return p.slots() * ceil_div(p.q_len, g.tile_m());
}

constexpr Constraint constraints[] = {
    {"pairs of tf32 numbers are for fp32: other types have variant wgmma",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return attention_problem(p).dtype == Dtype::fp32;
     }},
    {"head_dim is a multiple of 4, for rows of 16-byte chunks, and at most 128, for the registers",
     [](const Problem& problem, const Config&, const DeviceTraits&) {
         const AttentionProblem p = attention_problem(problem);
         return p.head_dim % 4 == 0 && p.head_dim <= 128;
     }},
    {"queries and the stages must fit shared memory",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(attention_problem(problem), c);
         return g.shared_bytes() + tf32::reserved_bytes <= tf32::shared_bytes_per_sm;
     }},
    {"results, scores and weights must fit a consumer's registers",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(attention_problem(problem), c);
         return g.needed_registers() <= g.consumer_registers();
     }},
    {"a block of keys must fit the splitters' registers: 64 words a thread, 96 beside one consumer",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(attention_problem(problem), c);
         return g.rounds() <= (g.moves_registers() ? 8 : 12);
     }},
    {"more than half of a tile's queries must exist",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return c[consumers] == 1 || c[consumers] * tf32::block_rows < 2 * attention_problem(problem).q_len;
     }},
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    const AttentionProblem p = attention_problem(problem);
    const Geometry g = geometry(p, config);
    Plan plan{.launch_count = 1};
    Launch& launch = plan.launches[0];
    launch = attention_prefill::launch("attention_prefill_wgmma_tf32",
                                       {static_cast<std::uint32_t>(tiles(p, g)), 1, 1}, g.threads());
    launch.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    launch.programmatic = config[programmatic] != 0;
    return plan;
}

/// Cycles of a block of keys: what the tensor cores take for all consumers, and what of softmax, splitting
/// and waiting they do not hide, the less the more of them there are. Fitted to 24 measurements (causal, 512
/// to 4096 tokens, head_dim 64 and 128).
double block_cycles(const Geometry& g) {
    const double products = 3.0 * 2.0 * tf32::block_rows * g.tile_n * g.depth() / 1024.0;
    const double beside = 400.0 + 2300.0 / g.consumers + (g.stages == 1 ? 150.0 : 0.0);
    return 1.1 * g.consumers * products + beside;
}

/// Tiles dealt to whichever multiprocessor is free, the longest first: an equal share for all, or the longest
/// tile.
double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const AttentionProblem p = attention_problem(problem);
    const Geometry g = geometry(p, config);
    const auto count = static_cast<double>(tiles(p, g));
    const double keys = p.visible_pairs() / static_cast<double>(p.q_len);
    // Blocks of keys that a tile sees in part.
    const double edges = p.causal ? 0.5 * (g.tile_m() + g.tile_n) * (p.window > 0 ? 2.0 : 1.0) : 0.0;
    const double blocks = std::ceil((keys + edges) / g.tile_n);
    const double longest =
        p.causal && p.window == 0 ? static_cast<double>(ceil_div(p.kv_len, g.tile_n)) : blocks;

    constexpr double tile_cycles = 4000.0;
    const double share = count * (blocks * block_cycles(g) + tile_cycles) / traits.sm_count;
    const double rounds = std::ceil(count / traits.sm_count) / (count / traits.sm_count);
    const double cycles =
        std::max(share * (p.causal ? 1.0 : rounds), longest * block_cycles(g) + tile_cycles);
    const double cycles_per_us = 0.886e-3 * traits.sm_clock_khz;
    return cycles / cycles_per_us + 3.0 - (config[programmatic] != 0 ? 0.5 : 0.0);
}

/// The best by the cost model of a few shapes of tiles.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    struct Shape {
        std::int64_t consumers, tile_n, stages;
    };
    constexpr Shape shapes[] = {{2, 64, 2}, {2, 64, 1}, {3, 64, 2}, {2, 32, 2}, {1, 64, 1}};
    std::vector<Config> configs;
    for (const Shape& shape : shapes) {
        Config& config = configs.emplace_back();
        config[consumers] = shape.consumers;
        config[tile_n] = shape.tile_n;
        config[stages] = shape.stages;
        config[programmatic] = 1;
    }
    return best_of(problem, wgmma_tf32, configs, traits);
}

}  // namespace

const Variant wgmma_tf32{
    .name = "wgmma_tf32",
    .summary = "fp32 as pairs of tf32 numbers, three products each on the warpgroup tensor cores",
    .source = "attention_prefill/wgmma_tf32.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .plan = plan,
    .fallback = fallback,
    .access_elements = [](const Problem&, const Config&) { return std::int64_t{4}; },
    .predict_us = predict};

}  // namespace hone::attention_prefill

#include <algorithm>
#include <vector>

#include "kernel_templates/attention_prefill/plain/geometry.cuh"
#include "kernel_templates/attention_prefill/tile.h"

namespace hone::attention_prefill {
namespace {

using cuda_cores::Geometry;

enum Index : std::size_t { tile_m, tile_n, thread_m, columns, vector, programmatic };

constexpr Tunable tunables[] = {
    {"tile_m", "queries of a block", {32, 64, 128}},
    {"tile_n", "keys whose scores stand in registers", {32, 64, 128}},
    {"thread_m", "queries of a thread", {4, 8}},
    {"columns", "of the keys that a step brings", {16, 32}},
    {"vector", "elements an access", {1, 4}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

Geometry geometry(const AttentionProblem& p, const Config& c) {
    return {.head_dim = static_cast<int>(p.head_dim),
            .tile_m = static_cast<int>(c[tile_m]),
            .tile_n = static_cast<int>(c[tile_n]),
            .thread_m = static_cast<int>(c[thread_m]),
            .columns = static_cast<int>(c[columns]),
            .vector = static_cast<int>(c[vector])};
}

constexpr Constraint constraints[] = {
    {"blocks have 128 or 256 threads",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const int threads = geometry(attention_problem(p), c).threads();
         return threads == 128 || threads == 256;
     }},
    {"wide accesses need rows of a multiple of as many elements",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return attention_problem(p).head_dim % c[vector] == 0;
     }},
    {"steps of more columns are for heads that have them",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[columns] == 16 || c[columns] <= attention_problem(p).head_dim;
     }},
    {"more than half of a tile's queries must exist",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return tile_is_filled(attention_problem(p), c[tile_m], 32);
     }},
    {"a thread's results, scores and operands must fit its registers",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const AttentionProblem p = attention_problem(problem);
         return geometry(p, c).registers(static_cast<int>(p.element_bytes())) <= 220;
     }},
    {"queries, weights and two buffers must fit shared memory",
     [](const Problem& p, const Config& c, const DeviceTraits& t) {
         return geometry(attention_problem(p), c).shared_bytes() <= t.max_shared_bytes_per_block;
     }},
    {"programmatic dependent launch needs sm_90",
     [](const Problem&, const Config& c, const DeviceTraits& t) {
         return c[programmatic] == 0 || t.has_programmatic_launch();
     }},
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const AttentionProblem p = attention_problem(problem);
    const Geometry g = geometry(p, config);
    Plan plan = tile_plan("attention_prefill_plain", p, g.tile_m, g.threads(), traits);
    plan.launches[0].shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    plan.launches[0].programmatic = config[programmatic] != 0;
    return plan;
}

std::int64_t resident_blocks(const AttentionProblem& p, const Geometry& g, const DeviceTraits& traits) {
    const std::int64_t registers = g.registers(static_cast<int>(p.element_bytes())) + 24;
    return std::clamp<std::int64_t>(
        std::min({65536 / (registers * g.threads()), traits.shared_bytes_per_sm / (g.shared_bytes() + 1024),
                  std::int64_t{traits.max_threads_per_sm / g.threads()}}),
        1, 16);
}

/// Multiply-adds on all lanes beside what they read from shared memory: of a warp's vectors of queries and
/// weights two are distinct, of keys and values sixteen.
double block_cycles(const Geometry& g, std::int64_t together, const DeviceTraits& traits) {
    const double lanes = traits.compute_major == 7 || traits.arch() == Arch{8, 0, false} ? 64 : 128;
    const double key_columns = g.key_steps() * g.key_columns();
    const double products = static_cast<double>(g.tile_m) * g.tile_n * (key_columns + g.value_pitch());
    const double warps = g.threads() / 32.0;
    const double key_reads = key_columns / 4 * (2 * g.thread_m + 4 * g.thread_n());
    const double value_reads = g.tile_n / 4.0 * (2 * g.thread_m + 4 * g.groups() * g.width());
    const double steps = g.key_steps() + g.value_steps();
    const double staged = steps * g.rounds() * g.threads() * (g.vector == 1 ? 10.0 : 16.0) / 128;
    const double weigh = static_cast<double>(g.tile_m) * (12.0 * g.tile_n + 2.0 * g.value_pitch()) / lanes;
    const double waits = steps * 150.0 / static_cast<double>(together);
    return std::max(products / lanes, warps * (key_reads + value_reads)) + staged + weigh + waits;
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const AttentionProblem p = attention_problem(problem);
    const Geometry g = geometry(p, config);
    const std::int64_t together = resident_blocks(p, g, traits);
    // Four warps leave one scheduler to each: nothing hides their latencies.
    const double alone = together * g.threads() < 256 ? 1.3 : 1.0;
    return predict_us(p,
                      {.tile_m = g.tile_m,
                       .tile_n = g.tile_n,
                       .warp_rows = 2 * g.thread_m,
                       .block_cycles = alone * block_cycles(g, together, traits),
                       .overhead_cycles = 4000.0 / static_cast<double>(together),
                       .blocks_per_sm = together},
                      traits) -
           (config[programmatic] != 0 ? 0.5 : 0.0);
}

/// The best by the cost model of those that take any strides. One fits every chip: tiles of 32 x 32.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    std::vector<Config> configs;
    for (const std::int64_t queries : tunables[tile_m].values.span()) {
        for (const std::int64_t keys : {32, 64}) {
            for (const std::int64_t rows : tunables[thread_m].values.span()) {
                Config& config = configs.emplace_back();
                config[tile_m] = queries;
                config[tile_n] = keys;
                config[thread_m] = rows;
                config[columns] = 16;
                config[vector] = 1;
                config[programmatic] = traits.has_programmatic_launch() ? 1 : 0;
            }
        }
    }
    return best_of(problem, plain, configs, traits);
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "products on the CUDA cores: any type, head size and strides, on any chip",
                    .source = "attention_prefill/plain.cu",
                    .tunables = tunables,
                    .constraints = constraints,
                    .plan = plan,
                    .fallback = fallback,
                    .access_elements = [](const Problem&, const Config& config) { return config[vector]; },
                    .predict_us = predict};

}  // namespace hone::attention_prefill

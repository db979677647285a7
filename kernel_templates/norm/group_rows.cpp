#include <algorithm>

#include "kernel_templates/norm/norm.h"

namespace hone::norm {
namespace {

enum Index : std::size_t {
    threads,
    lanes,
    vector,
    rows_in_flight,
    early_weights,
    load_hint,
    store_hint,
    programmatic
};

constexpr Tunable tunables[] = {
    {"threads", "threads a block", {32, 64, 128, 256, 512, 1024}},
    {"lanes", "threads that share a row", {4, 8, 16, 32, 64, 128, 256, 512, 1024}},
    {"vector", "elements a memory access", {1, 2, 4, 8}},
    {"rows", "rows a group keeps in flight", {1, 2, 4}},
    {"early_weights", "1: weights are loaded into registers ahead of the reduction", {0, 1}},
    {"load_hint", "cache hint of loads: 0 normal, 1 no L1 allocation, 2 streaming", {0, 2}},
    {"store_hint", "cache hint of stores: 0 normal, 1 streaming", {0, 1}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

std::int64_t held_registers(const NormProblem& norm, const Config& config) {
    const std::int64_t row = row_registers(norm, config[lanes], config[vector]);
    const std::int64_t parameters = config[early_weights] != 0 ? row * (norm.bias ? 2 : 1) : 0;
    return row * config[rows_in_flight] * (norm.residual ? 2 : 1) + parameters;
}

constexpr Constraint constraints[] = {
    {"a row's lanes must fit its block",
     [](const Problem&, const Config& c, const DeviceTraits&) { return c[lanes] <= c[threads]; }},
    {"accesses are the widest that divide hidden and fit 16 bytes, or half of that",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return vector_is_sensible(norm_problem(p), c[vector]);
     }},
    {"at least half of the lanes must own columns",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[lanes] == 4 || c[lanes] * c[vector] < 2 * norm_problem(p).hidden;
     }},
    {"the rows, weights and residuals that a thread holds must fit its registers",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return held_registers(norm_problem(p), c) <= register_budget(c[threads]);
     }},
    {"several rows in flight pay only where a thread holds few packets of each",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[rows_in_flight] == 1 ||
                c[rows_in_flight] * packets_of(norm_problem(p), c[lanes], c[vector]) <= 8;
     }},
    {"programmatic dependent launch needs sm_90",
     [](const Problem&, const Config& c, const DeviceTraits& t) {
         return c[programmatic] == 0 || t.has_programmatic_launch();
     }},
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    const std::int64_t rows_per_block = config[threads] / config[lanes] * config[rows_in_flight];
    const std::int64_t row_count = problem[problem.family->fields.size() - 1];
    Plan plan{.launch_count = 1};
    plan.launches[0] = norm_launch("norm_group_rows");
    plan.launches[0].grid = {static_cast<std::uint32_t>(ceil_div(row_count, rows_per_block)), 1, 1};
    plan.launches[0].block = {static_cast<std::uint32_t>(config[threads]), 1, 1};
    plan.launches[0].programmatic = config[programmatic] != 0;
    return plan;
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const NormProblem norm = norm_problem(problem);
    const double row_bytes =
        static_cast<double>(norm.hidden * norm.element_bytes() * (norm.residual ? 2 : 1));
    const double groups = static_cast<double>(config[threads] / config[lanes]);
    const double rows_per_group = static_cast<double>(config[rows_in_flight]);
    const std::int64_t packets = packets_of(norm, config[lanes], config[vector]);
    const MemoryShape shape{
        .bytes_per_thread = static_cast<double>(packets * config[vector] * norm.element_bytes()),
        .rows_per_block = groups,
        .rows_in_flight = rows_per_group};
    return predict_us(
        problem,
        {.blocks = plan(problem, config, traits).launches[0].grid.x,
         .threads = config[threads],
         .held_registers = held_registers(norm, config),
         .elements = static_cast<double>(packets * config[vector] * config[rows_in_flight]),
         .work_factor = work_factor(norm),
         .reducing_warps = config[lanes] > 32 ? static_cast<double>(config[lanes]) / 32 : 0.0,
         .bytes_in_flight = row_bytes * groups * rows_per_group,
         .latency_us = config[early_weights] != 0 ? 0.0 : 0.15,
         .slowdown = hint_factor(problem, config[load_hint] != 0, config[store_hint] != 0, traits) *
                     memory_factor(problem, shape, traits),
         .programmatic = config[programmatic] != 0},
        traits);
}

/// The config that the cost model likes best, of those without cache hints and with one row in flight. It
/// must not spill on any chip: conversions to codes, done in software before sm_89, want registers too.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const NormProblem norm = norm_problem(problem);
    std::optional<Config> best;
    double best_us = 0;
    Config config;
    const std::int64_t conversions = norm.quantized() ? 32 : 0;
    config[rows_in_flight] = 1;
    config[programmatic] = traits.has_programmatic_launch() ? 1 : 0;
    for (const std::int64_t early : {1, 0}) {
        for (const std::int64_t lane_count : tunables[lanes].values.span()) {
            config[early_weights] = early;
            config[lanes] = lane_count;
            config[threads] = std::max<std::int64_t>(lane_count, 128);
            config[vector] = widest_vector(norm);
            if (held_registers(norm, config) + conversions > register_budget(config[threads])) continue;
            const double us = predict(problem, config, traits);
            if (best && us >= best_us) continue;
            best = config;
            best_us = us;
        }
    }
    return best;
}

}  // namespace

Variant group_rows(std::string_view source) {
    return {.name = "group_rows",
            .summary = "a group of threads, part of a warp up to a block, holds a row in registers",
            .source = source,
            .tunables = tunables,
            .constraints = constraints,
            .plan = plan,
            .fallback = fallback,
            .access_elements = [](const Problem&, const Config& config) { return config[vector]; },
            .predict_us = predict};
}

}  // namespace hone::norm

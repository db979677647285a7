#include <algorithm>

#include "kernel_templates/norm/norm.h"

namespace hone::norm {
namespace {

enum Index : std::size_t { threads, cluster, vector, early_weights, load_hint, store_hint, programmatic };

constexpr Tunable tunables[] = {
    {"threads", "threads a block", {64, 128, 256, 512, 1024}},
    {"cluster", "blocks that share a row", {2, 4, 8}},
    {"vector", "elements a memory access", {1, 2, 4, 8}},
    {"early_weights", "1: weights are loaded into registers ahead of the reduction", {0, 1}},
    {"load_hint", "cache hint of loads: 0 normal, 1 no L1 allocation, 2 streaming", {0, 2}},
    {"store_hint", "cache hint of stores: 0 normal, 1 streaming", {0, 1}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

std::int64_t held_registers(const NormProblem& norm, const Config& config) {
    const std::int64_t row = row_registers(norm, config[threads] * config[cluster], config[vector]);
    const std::int64_t parameters = config[early_weights] != 0 ? row * (norm.bias ? 2 : 1) : 0;
    return row + parameters + (norm.residual ? row : 0);
}

constexpr Constraint constraints[] = {
    {"accesses are the widest that divide hidden and fit 16 bytes, or half of that",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return vector_is_sensible(norm_problem(p), c[vector]);
     }},
    {"at least half of the cluster's threads must own columns",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[threads] * c[cluster] * c[vector] < 2 * norm_problem(p).hidden;
     }},
    {"the row, weights and residuals that a thread holds must fit its registers",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return held_registers(norm_problem(p), c) <= register_budget(c[threads]);
     }},
    {"clusters pay for long rows or few of them",
     [](const Problem& p, const Config&, const DeviceTraits& t) {
         const NormProblem norm = norm_problem(p);
         return norm.hidden * norm.element_bytes() >= 16384 || norm.rows * 2 <= t.sm_count;
     }},
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    const std::int64_t row_count = problem[problem.family->fields.size() - 1];
    Plan plan{.launch_count = 1};
    plan.launches[0] = norm_launch("norm_cluster_row");
    plan.launches[0].grid = {static_cast<std::uint32_t>(row_count * config[cluster]), 1, 1};
    plan.launches[0].block = {static_cast<std::uint32_t>(config[threads]), 1, 1};
    plan.launches[0].cluster = {static_cast<std::uint32_t>(config[cluster]), 1, 1};
    plan.launches[0].programmatic = config[programmatic] != 0;
    return plan;
}

/// Rows that do not fit one block's registers: the smallest cluster that holds them.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits&) {
    const NormProblem norm = norm_problem(problem);
    Config config;
    config[vector] = widest_vector(norm);
    config[threads] = 512;
    config[early_weights] = 0;
    config[programmatic] = 1;
    for (const std::int64_t size : {2, 4, 8}) {
        config[cluster] = size;
        if (held_registers(norm, config) <= register_budget(config[threads])) return config;
    }
    return std::nullopt;
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const NormProblem norm = norm_problem(problem);
    const double row_bytes =
        static_cast<double>(norm.hidden * norm.element_bytes() * (norm.residual ? 2 : 1));
    const std::int64_t packets = packets_of(norm, config[threads] * config[cluster], config[vector]);
    return predict_us(
        problem,
        {.blocks = norm.rows * config[cluster],
         .threads = config[threads],
         .held_registers = held_registers(norm, config),
         .elements = static_cast<double>(packets * config[vector]),
         .work_factor = work_factor(norm),
         .reducing_warps = static_cast<double>(config[threads]) / 32,
         .bytes_in_flight = row_bytes / static_cast<double>(config[cluster]),
         .latency_us = 0.24 * norm.reductions() + (config[early_weights] != 0 ? 0.0 : 0.15),
         .slowdown = (bound_by_memory(problem, traits) ? 1.02 : 1.0) *
                     hint_factor(problem, config[load_hint] != 0, config[store_hint] != 0, traits),
         .programmatic = config[programmatic] != 0},
        traits);
}

}  // namespace

Variant cluster_row(std::string_view source) {
    return {.name = "cluster_row",
            .summary =
                "a cluster of blocks holds a row in registers and reduces through distributed shared memory",
            .source = source,
            .min_arch = {9, 0, false},
            .tunables = tunables,
            .constraints = constraints,
            .plan = plan,
            .fallback = fallback,
            .access_elements = [](const Problem&, const Config& config) { return config[vector]; },
            .predict_us = predict};
}

}  // namespace hone::norm

#include <algorithm>

#include "kernel_templates/norm/norm.h"

namespace hone::norm {
namespace {

enum Index : std::size_t { threads, lanes, vector, stages, blocks_per_sm, store_hint, programmatic };

constexpr Tunable tunables[] = {
    {"threads", "threads a block", {64, 128, 256, 512, 1024}},
    {"lanes", "threads that share a row", {8, 16, 32, 64, 128, 256, 512, 1024}},
    {"vector", "elements a memory access", {1, 2, 4, 8}},
    {"stages", "rows of the ring in shared memory", {2, 3, 4}},
    {"blocks_per_sm", "resident blocks a multiprocessor", {1, 2, 4, 8}},
    {"store_hint", "cache hint of stores: 0 normal, 1 streaming", {0, 1}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

std::int64_t ring_bytes(const NormProblem& norm, const Config& config) {
    const std::int64_t row = packets_of(norm, config[lanes], config[vector]) * config[lanes] *
                             config[vector] * norm.element_bytes() * (norm.residual ? 2 : 1);
    return row * config[stages] * (config[threads] / config[lanes]);
}

std::int64_t held_registers(const NormProblem& norm, const Config& config) {
    return row_registers(norm, config[lanes], config[vector]) * (norm.bias ? 2 : 1);
}

constexpr Constraint constraints[] = {
    {"a row's lanes must fit its block",
     [](const Problem&, const Config& c, const DeviceTraits&) { return c[lanes] <= c[threads]; }},
    {"accesses are the widest that divide hidden and fit 16 bytes, or half of that",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return vector_is_sensible(norm_problem(p), c[vector]);
     }},
    {"asynchronous copies move at least 4 bytes",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[vector] * norm_problem(p).element_bytes() >= 4;
     }},
    {"at least half of the lanes must own columns",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[lanes] * c[vector] < 2 * norm_problem(p).hidden;
     }},
    {"the weights that a thread keeps must fit its registers",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return held_registers(norm_problem(p), c) <= register_budget(c[threads]) / 2;
     }},
    {"the rings of all resident blocks must fit shared memory",
     [](const Problem& p, const Config& c, const DeviceTraits& t) {
         const std::int64_t block = ring_bytes(norm_problem(p), c) + 2048;
         return block <= t.max_shared_bytes_per_block && block * c[blocks_per_sm] <= t.shared_bytes_per_sm;
     }},
    {"the resident blocks must fit a multiprocessor's threads",
     [](const Problem&, const Config& c, const DeviceTraits& t) {
         return c[threads] * c[blocks_per_sm] <= t.max_threads_per_sm;
     }},
    {"a persistent grid needs more rows than run at once",
     [](const Problem& p, const Config& c, const DeviceTraits& t) {
         return norm_problem(p).rows > t.sm_count * c[blocks_per_sm] * (c[threads] / c[lanes]);
     }},
    {"programmatic dependent launch needs sm_90",
     [](const Problem&, const Config& c, const DeviceTraits& t) {
         return c[programmatic] == 0 || t.has_programmatic_launch();
     }},
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const NormProblem norm = norm_problem(problem);
    const std::int64_t blocks = ceil_div(norm.rows, config[threads] / config[lanes]);
    const std::int64_t resident = traits.sm_count * config[blocks_per_sm];
    Plan plan{.launch_count = 1};
    plan.launches[0] = norm_launch("norm_persistent_rows");
    plan.launches[0].grid = {static_cast<std::uint32_t>(std::min(blocks, resident)), 1, 1};
    plan.launches[0].block = {static_cast<std::uint32_t>(config[threads]), 1, 1};
    plan.launches[0].shared_bytes = static_cast<std::uint32_t>(ring_bytes(norm, config));
    plan.launches[0].programmatic = config[programmatic] != 0;
    return plan;
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const NormProblem norm = norm_problem(problem);
    const std::int64_t groups = config[threads] / config[lanes];
    const Launch launch = plan(problem, config, traits).launches[0];
    const double row_bytes =
        static_cast<double>(norm.hidden * norm.element_bytes() * (norm.residual ? 2 : 1));
    return predict_us(
        problem,
        {.blocks = launch.grid.x,
         .threads = config[threads],
         .held_registers = held_registers(norm, config),
         .shared_bytes = launch.shared_bytes,
         .blocks_per_sm = config[blocks_per_sm],
         .rounds = static_cast<double>(norm.rows) / static_cast<double>(launch.grid.x * groups),
         .elements = static_cast<double>(packets_of(norm, config[lanes], config[vector]) * config[vector]),
         .work_factor = work_factor(norm),
         .reducing_warps = config[lanes] > 32 ? static_cast<double>(config[lanes]) / 32 : 0.0,
         .bytes_in_flight = row_bytes * static_cast<double>(groups * (config[stages] - 1)),
         .loads_ahead = true,
         .slowdown = (bound_by_memory(problem, traits) ? 1.07 : 1.042) *
                     hint_factor(problem, false, config[store_hint] != 0, traits),
         .programmatic = config[programmatic] != 0},
        traits);
}

}  // namespace

Variant persistent_rows(std::string_view source) {
    return {.name = "persistent_rows",
            .summary =
                "resident blocks walk over the rows, which asynchronous copies bring to shared memory ahead "
                "of use",
            .source = source,
            .min_arch = {8, 0, false},
            .tunables = tunables,
            .constraints = constraints,
            .plan = plan,
            .fallback = [](const Problem&, const DeviceTraits&) { return std::optional<Config>(); },
            .access_elements = [](const Problem&, const Config& config) { return config[vector]; },
            .predict_us = predict};
}

}  // namespace hone::norm

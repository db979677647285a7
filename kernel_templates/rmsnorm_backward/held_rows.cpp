#include <algorithm>
#include <cmath>

#include "kernel_templates/rmsnorm_backward/backward.h"

namespace hone::rmsnorm_backward {
namespace {

using norm::NormProblem;

enum Index : std::size_t {
    threads,
    lanes,
    vector,
    ahead,
    blocks_per_sm,
    load_hint,
    store_hint,
    sum_lanes,
    programmatic
};

constexpr Tunable tunables[] = {
    {"threads", "threads a block", {128, 256, 512, 1024}},
    {"lanes", "threads that share a row", {8, 16, 32, 64, 128, 256, 512, 1024}},
    {"vector", "elements a memory access", {1, 2, 4, 8}},
    {"ahead", "1: the next row is loaded before this one is reduced", {0, 1}},
    {"blocks_per_sm", "resident blocks a multiprocessor", {1, 2, 3, 4, 6, 8}},
    {"load_hint", "cache hint of loads: 0 normal, 2 streaming", {0, 2}},
    {"store_hint", "cache hint of stores: 0 normal, 1 streaming", {0, 1}},
    {"sum_lanes", "packets of columns that a block of the last launch adds", {8, 32}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

/// Floats in front of the partial rows in the workspace, as in held_rows.cu.
constexpr std::int64_t header_floats = 64;

/// Of dy, x and dsum of all rows that a thread holds at once, its weights and its sums of dweight.
std::int64_t held_registers(const NormProblem& norm, const Config& config) {
    const std::int64_t row = norm::row_registers(norm, config[lanes], config[vector]);
    const std::int64_t sums = norm::packets_of(norm, config[lanes], config[vector]) * config[vector];
    return row * (norm.residual ? 3 : 2) * (1 + config[ahead]) + row + sums;
}

/// What a thread needs in all; fitted to what ptxas uses for a dozen shapes on sm_90a. Addresses and results
/// in flight grow with what is held.
std::int64_t needed_registers(const NormProblem& norm, const Config& config) {
    return held_registers(norm, config) * 3 / 2 + 28;
}

/// A thread's registers where `blocks_per_sm` blocks are to be resident.
std::int64_t register_limit(const Config& config, const DeviceTraits& traits) {
    return std::min<std::int64_t>(255, traits.registers_per_sm / (config[threads] * config[blocks_per_sm]));
}

/// Bytes in which the groups' sums meet.
std::int64_t exchange_bytes(const Config& config) { return config[threads] * config[vector] * 4; }

std::int64_t block_count(const NormProblem& norm, const Config& config, const DeviceTraits& traits) {
    return std::min<std::int64_t>(norm::ceil_div(norm.rows, config[threads] / config[lanes]),
                                  traits.sm_count * config[blocks_per_sm]);
}

constexpr Constraint constraints[] = {
    {"a row's lanes must fit its block",
     [](const Problem&, const Config& c, const DeviceTraits&) { return c[lanes] <= c[threads]; }},
    {"accesses are the widest that divide hidden and fit 16 bytes, or half of that",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return norm::vector_is_sensible(norm_problem(p), c[vector]);
     }},
    {"at least half of the lanes must own columns",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[lanes] == 8 || c[lanes] * c[vector] < 2 * norm_problem(p).hidden;
     }},
    {"the resident blocks must fit a multiprocessor's threads",
     [](const Problem&, const Config& c, const DeviceTraits& t) {
         return c[threads] * c[blocks_per_sm] <= t.max_threads_per_sm;
     }},
    {"the last of the resident blocks must get rows",
     [](const Problem& p, const Config& c, const DeviceTraits& t) {
         const std::int64_t groups = c[threads] / c[lanes];
         return c[blocks_per_sm] == 1 || norm_problem(p).rows > t.sm_count * (c[blocks_per_sm] - 1) * groups;
     }},
    {"the rows, weights and sums that a thread holds must fit its registers",
     [](const Problem& p, const Config& c, const DeviceTraits& t) {
         return needed_registers(norm_problem(p), c) <= register_limit(c, t);
     }},
    {"the groups' sums must fit shared memory",
     [](const Problem&, const Config& c, const DeviceTraits& t) {
         return (exchange_bytes(c) + 2048) * c[blocks_per_sm] <= t.shared_bytes_per_sm;
     }},
    {"programmatic dependent launch needs sm_90",
     [](const Problem&, const Config& c, const DeviceTraits& t) {
         return c[programmatic] == 0 || t.has_programmatic_launch();
     }},
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const NormProblem norm = norm_problem(problem);
    const bool early = config[programmatic] != 0;
    const std::int64_t blocks = block_count(norm, config, traits);
    Plan plan{.launch_count = 2, .workspace_bytes = (header_floats + blocks * norm.hidden) * 4};
    plan.launches[0] = launch("rmsnorm_backward_held_rows", blocks, config[threads], early);
    plan.launches[1] = sum_launch(norm, config[sum_lanes], early);
    return plan;
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const NormProblem norm = norm_problem(problem);
    const std::int64_t blocks = block_count(norm, config, traits);
    const double resident =
        std::min<double>(static_cast<double>(config[blocks_per_sm]),
                         std::ceil(static_cast<double>(blocks) / static_cast<double>(traits.sm_count)));
    const double row_bytes =
        static_cast<double>(norm.hidden * norm.element_bytes() * (norm.residual ? 3 : 2));
    const double groups = static_cast<double>(config[threads] / config[lanes]);
    const double reduction_us =
        config[lanes] > 32 ? 0.05 + 0.01 * static_cast<double>(config[lanes]) / 32 : 0.02;
    return predict_us(problem,
                      {.bytes_in_flight = row_bytes * groups * resident,
                       .wait_us = config[ahead] != 0 ? 0.0 : 0.1 + reduction_us,
                       .partial_rows = static_cast<double>(blocks),
                       .programmatic = config[programmatic] != 0},
                      traits);
}

/// The config that the cost model likes best, of those without cache hints. It must not spill on any chip.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const NormProblem norm = norm_problem(problem);
    Config config;
    config[vector] = norm::widest_vector(norm);
    config[sum_lanes] = 8;
    config[programmatic] = traits.has_programmatic_launch() ? 1 : 0;
    std::optional<Config> best;
    double best_us = 0;
    for (const std::int64_t lane_count : tunables[lanes].values.span()) {
        for (const std::int64_t resident : tunables[blocks_per_sm].values.span()) {
            config[lanes] = lane_count;
            config[threads] = std::max<std::int64_t>(lane_count, 128);
            config[blocks_per_sm] = resident;
            if (held_registers(norm, config) > norm::register_budget(config[threads])) continue;
            if (!allowed(problem, {&held_rows, config}, traits)) continue;
            const double us = predict(problem, config, traits);
            if (best && us >= best_us) continue;
            best = config;
            best_us = us;
        }
    }
    return best;
}

}  // namespace

const Variant held_rows{
    .name = "held_rows",
    .summary = "resident blocks hold a row in registers and keep their sums of dweight there",
    .source = "rmsnorm_backward/held_rows.cu",
    .tunables = tunables,
    .constraints = constraints,
    .plan = plan,
    .fallback = fallback,
    .access_elements = [](const Problem&, const Config& config) { return config[vector]; },
    .predict_us = predict};

}  // namespace hone::rmsnorm_backward

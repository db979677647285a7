#include <algorithm>

#include "kernel_templates/norm/norm.h"

namespace hone::norm {
namespace {

enum Index : std::size_t { threads, vector, store_hint, programmatic };

constexpr Tunable tunables[] = {
    {"threads", "threads a block", {128, 256, 512, 1024}},
    {"vector", "elements a memory access", {1, 2, 4, 8}},
    {"store_hint", "cache hint of stores: 0 normal, 1 streaming", {0, 1}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

constexpr Constraint constraints[] = {
    {"accesses are the widest that divide hidden and fit 16 bytes, or half of that",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return vector_is_sensible(norm_problem(p), c[vector]);
     }},
    {"at least half of the threads must own columns, but for the smallest block",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[threads] == 128 || c[threads] * c[vector] < 2 * norm_problem(p).hidden;
     }},
    {"programmatic dependent launch needs sm_90",
     [](const Problem&, const Config& c, const DeviceTraits& t) {
         return c[programmatic] == 0 || t.has_programmatic_launch();
     }},
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    Plan plan{.launch_count = 1};
    plan.launches[0] = norm_launch("norm_streamed_row");
    plan.launches[0].grid = {static_cast<std::uint32_t>(problem[problem.family->fields.size() - 1]), 1, 1};
    plan.launches[0].block = {static_cast<std::uint32_t>(config[threads]), 1, 1};
    plan.launches[0].programmatic = config[programmatic] != 0;
    return plan;
}

std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const NormProblem norm = norm_problem(problem);
    Config config;
    config[vector] = widest_vector(norm);
    config[threads] = 128;
    while (config[threads] < 1024 && config[threads] * config[vector] * 4 < norm.hidden) config[threads] *= 2;
    config[programmatic] = traits.has_programmatic_launch() ? 1 : 0;
    return config;
}

/// A row's second reading comes from L1: where memory is the limit it costs nothing, as long as a thread has
/// few packets and the block therefore much in flight.
double share_factor(double bytes_per_thread) {
    return bytes_per_thread <= 64 ? 1.01 : bytes_per_thread <= 128 ? 1.14 : 1.5;
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const NormProblem norm = norm_problem(problem);
    const std::int64_t packets = packets_of(norm, config[threads], config[vector]);
    const double row_bytes =
        static_cast<double>(norm.hidden * norm.element_bytes() * (norm.residual ? 2 : 1));
    Footprint footprint{.blocks = norm.rows,
                        .threads = config[threads],
                        .held_registers = 8,
                        .elements = static_cast<double>(packets * config[vector]),
                        .work_factor = work_factor(norm) + (norm.residual ? 0.0 : 0.4),
                        .reducing_warps = static_cast<double>(config[threads]) / 32,
                        .bytes_in_flight = row_bytes,
                        .latency_us = 0.15,
                        .slowdown = hint_factor(problem, false, config[store_hint] != 0, traits),
                        .programmatic = config[programmatic] != 0};
    if (bound_by_memory(problem, traits)) {
        footprint.loads_ahead = true;
        footprint.slowdown *=
            share_factor(static_cast<double>(packets * config[vector] * norm.element_bytes()));
    }
    return predict_us(problem, footprint, traits);
}

}  // namespace

Variant streamed_row(std::string_view source) {
    return {.name = "streamed_row",
            .summary = "a block walks over a row of any length and reads it again for each pass",
            .source = source,
            .tunables = tunables,
            .constraints = constraints,
            .plan = plan,
            .fallback = fallback,
            .access_elements = [](const Problem&, const Config& config) { return config[vector]; },
            .predict_us = predict};
}

}  // namespace hone::norm

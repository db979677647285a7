#include <algorithm>

#include "kernel_templates/rmsnorm_backward/backward.h"

namespace hone::rmsnorm_backward {
namespace {

using norm::NormProblem;

enum Index : std::size_t { threads, vector, chunks, store_hint, sum_lanes, programmatic };

constexpr Tunable tunables[] = {
    {"threads", "threads a block", {128, 256, 512}},
    {"vector", "elements a memory access", {1, 2, 4, 8}},
    {"chunks", "parts of the rows that are summed apart", {1, 4, 16, 64, 256}},
    {"store_hint", "cache hint of stores: 0 normal, 1 streaming", {0, 1}},
    {"sum_lanes", "packets of columns that a block of the last launch adds", {8, 32}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

constexpr Constraint constraints[] = {
    {"accesses are the widest that divide hidden and fit 16 bytes, or half of that",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return norm::vector_is_sensible(norm_problem(p), c[vector]);
     }},
    {"each warp of a chunk must have a row",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[chunks] == 1 || c[chunks] * (c[threads] / 32) <= norm_problem(p).rows;
     }},
    {"programmatic dependent launch needs sm_90",
     [](const Problem&, const Config& c, const DeviceTraits& t) {
         return c[programmatic] == 0 || t.has_programmatic_launch();
     }},
};

std::int64_t tiles(const NormProblem& norm, const Config& config) {
    return norm::ceil_div(norm.hidden, 32 * config[vector]);
}

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    const NormProblem norm = norm_problem(problem);
    const bool early = config[programmatic] != 0;
    Plan plan{.launch_count = 3, .workspace_bytes = (config[chunks] * norm.hidden + 2 * norm.rows) * 4};
    plan.launches[0] = launch("rmsnorm_backward_find_factors", norm.rows, config[threads], early);
    plan.launches[1] = launch("rmsnorm_backward_apply_factors", tiles(norm, config) * config[chunks],
                              config[threads], early);
    plan.launches[2] = sum_launch(norm, config[sum_lanes], early);
    return plan;
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const NormProblem norm = norm_problem(problem);
    const double blocks = static_cast<double>(tiles(norm, config) * config[chunks]);
    const double resident = std::min(2048.0 / static_cast<double>(config[threads]), blocks / traits.sm_count);
    const double thread_bytes =
        2.0 * static_cast<double>(config[vector] * norm.element_bytes() * (norm.residual ? 3 : 2));
    const double row_bytes =
        static_cast<double>(norm.rows * norm.hidden * norm.element_bytes() * (norm.residual ? 3 : 2));
    // What L2 still holds of the first pass's reads need not come from memory again.
    const double kept = std::min(1.0, 0.5 * static_cast<double>(traits.l2_bytes) / row_bytes);
    return predict_us(problem,
                      {.read_passes = 2.0 - kept,
                       .bytes_in_flight = thread_bytes * static_cast<double>(config[threads]) * resident,
                       .wait_us = 0.15,
                       .instructions = 18,
                       .partial_rows = static_cast<double>(config[chunks]),
                       .launches = 3,
                       .programmatic = config[programmatic] != 0},
                      traits);
}

std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    Config config;
    config[threads] = 256;
    config[vector] = norm::widest_vector(norm_problem(problem));
    config[sum_lanes] = 8;
    config[programmatic] = traits.has_programmatic_launch() ? 1 : 0;
    for (const std::int64_t count : tunables[chunks].values.span()) {
        const std::int64_t before = config[chunks];
        config[chunks] = count;
        if (count > 64 || !allowed(problem, {&two_pass, config}, traits)) {
            config[chunks] = before;
            break;
        }
    }
    return config;
}

}  // namespace

const Variant two_pass{.name = "two_pass",
                       .summary = "rows are read twice: for their factors, then for the gradients",
                       .source = "rmsnorm_backward/two_pass.cu",
                       .tunables = tunables,
                       .constraints = constraints,
                       .plan = plan,
                       .fallback = fallback,
                       .access_elements = [](const Problem&, const Config& config) { return config[vector]; },
                       .predict_us = predict};

}  // namespace hone::rmsnorm_backward

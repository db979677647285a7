#include "kernel_templates/rope_kv_append/rope_kv_append.h"

namespace hone::rope_kv_append {
namespace {

enum Index : std::size_t { threads, programmatic };

constexpr Tunable tunables[] = {
    {"threads", "threads a block; a warp takes a head", {128, 256}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

constexpr Constraint constraints[] = {programmatic_needs_sm_90<programmatic>};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    const RopeProblem p = rope_problem(problem);
    return single_launch("rope_kv_append_plain", ceil_div(p.tokens * p.all_heads(), config[threads] / 32),
                         config[threads], config[programmatic] != 0);
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const RopeProblem p = rope_problem(problem);
    const double rounds = static_cast<double>(ceil_div(p.head_dim, 32));
    return predict_us(problem,
                      {.threads = static_cast<double>(p.tokens * p.all_heads() * 32),
                       .instructions = 80 + 40 * rounds,
                       .latency_us = 1.6 + 0.2 * rounds + (p.norm ? 0.4 : 0.0),
                       .slowdown = config[threads] == 128 ? 1.5 : 1.51,
                       .programmatic = config[programmatic] != 0},
                      traits);
}

std::optional<Config> fallback(const Problem&, const DeviceTraits& traits) {
    Config config;
    config[threads] = 128;
    config[programmatic] = traits.has_programmatic_launch() ? 1 : 0;
    return config;
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "a warp a head, element by element: any head_dim and alignment",
                    .source = "rope_kv_append/plain.cu",
                    .tunables = tunables,
                    .constraints = constraints,
                    .plan = plan,
                    .fallback = fallback,
                    .access_elements = [](const Problem&, const Config&) { return std::int64_t{1}; },
                    .predict_us = predict};

}  // namespace hone::rope_kv_append

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "kernel_templates/rope_kv_append/rope_kv_append.h"

namespace hone::rope_kv_append {
namespace {

enum Index : std::size_t { threads, vector, heads_a_thread, early_weights, load_hint, programmatic };

constexpr Tunable tunables[] = {
    {"threads", "threads a block", {64, 128, 256, 384}},
    {"vector", "elements a memory access", {2, 4, 8}},
    {"heads_a_thread", "heads of a token that a thread holds at once", {1, 2, 3, 4, 6}},
    {"early_weights", "1: the norms' weights are loaded into registers ahead of everything else", {0, 1}},
    {"load_hint", "cache hint of loads of q, k and v: 0 normal, 2 streaming", {0, 2}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

/// Accesses of whole pairs of packets in what rotates and in what does not.
bool fits(const RopeProblem& p, std::int64_t packet) {
    return p.head_dim % (2 * packet) == 0 && p.rotary_dim % (2 * packet) == 0;
}

/// 0: there is none.
std::int64_t widest_vector(const RopeProblem& p) {
    std::int64_t packet = 16 / p.element_bytes();
    while (packet > 1 && !fits(p, packet)) packet /= 2;
    return packet > 1 && p.head_dim <= 64 * packet ? packet : 0;
}

/// That share a head: a power of two, as in packets.cu.
std::int64_t lanes(const RopeProblem& p, const Config& config) {
    std::int64_t power = 1;
    while (power < p.head_dim / (2 * config[vector])) power *= 2;
    return power;
}

/// Side by side in a block.
std::int64_t groups(const RopeProblem& p, const Config& config) { return config[threads] / lanes(p, config); }

std::int64_t blocks_a_token(const RopeProblem& p, const Config& config) {
    return ceil_div(p.all_heads(), groups(p, config) * config[heads_a_thread]);
}

/// Packets of the heads and of the norms' weights, angles, and the head at hand as numbers.
std::int64_t held_registers(const RopeProblem& p, const Config& config) {
    const std::int64_t packet = ceil_div(config[vector] * p.element_bytes(), 4);
    const std::int64_t weights = p.norm && config[early_weights] != 0 ? 4 * packet : 0;
    return 2 * packet * config[heads_a_thread] + weights + (p.rotary_dim != 0 ? 4 : 2) * config[vector];
}

constexpr Constraint constraints[] = {
    {"accesses are the widest whose pairs divide head_dim and rotary_dim, or half of that",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const std::int64_t widest = widest_vector(rope_problem(p));
         return widest != 0 && (c[vector] == widest || c[vector] * 2 == widest);
     }},
    {"a head is within a warp",
     [](const Problem& p, const Config& c, const DeviceTraits&) { return lanes(rope_problem(p), c) <= 32; }},
    {"a block has no more threads than a token's heads take",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const RopeProblem rope = rope_problem(p);
         return c[threads] == 64 || groups(rope, c) < 2 * rope.all_heads();
     }},
    {"a thread's last head must exist",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const RopeProblem rope = rope_problem(p);
         return groups(rope, c) * (c[heads_a_thread] - 1) < rope.all_heads();
     }},
    {"what a thread holds must fit its registers",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return held_registers(rope_problem(p), c) <= (c[threads] > 256 ? 80 : 120);
     }},
    {"early_weights is for problems with a norm",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[early_weights] == 0 || rope_problem(p).norm;
     }},
    programmatic_needs_sm_90<programmatic>,
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    const RopeProblem p = rope_problem(problem);
    return single_launch("rope_kv_append_packets", p.tokens * blocks_a_token(p, config), config[threads],
                         config[programmatic] != 0);
}

/// Constants are fitted to 36 measured candidates of 4 problems on an H100; another GPU scales them by its
/// bandwidth, clock and multiprocessors.
double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const RopeProblem p = rope_problem(problem);
    const double thread_heads = static_cast<double>(config[heads_a_thread]);
    const double elements = 2 * static_cast<double>(config[vector]) * thread_heads;
    const double slots = static_cast<double>(blocks_a_token(p, config) * groups(p, config)) * thread_heads;
    const double idle = slots / static_cast<double>(p.all_heads()) - 1;
    const double large_blocks = std::max(0.0, std::log2(static_cast<double>(config[threads]) / 128));

    const double late_weights_us = p.norm && config[early_weights] == 0 ? 0.3 + 0.2 * (thread_heads - 1) : 0;
    const double streaming = config[load_hint] != 0 ? 1.005 : 1.0;
    return predict_us(problem,
                      {.threads = static_cast<double>(p.tokens * blocks_a_token(p, config) * config[threads]),
                       .instructions = 70 + (p.norm ? 18.0 : 10.0) * elements,
                       .latency_us = 1.0 + 0.01 * elements + late_weights_us,
                       .slowdown = streaming * (1 + large_blocks * (0.025 + 0.1 * idle) + 0.02 * idle),
                       .programmatic = config[programmatic] != 0},
                      traits);
}

/// Of blocks of 128 threads with one to three heads a thread, those that the cost model likes best.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const RopeProblem p = rope_problem(problem);
    Config config;
    config[vector] = widest_vector(p);
    if (config[vector] == 0) return std::nullopt;
    config[early_weights] = p.norm ? 1 : 0;
    config[programmatic] = traits.has_programmatic_launch() ? 1 : 0;
    std::optional<Config> best;
    double best_us = 0;
    for (const std::int64_t count : {1, 2, 3}) {
        config[heads_a_thread] = count;
        config[threads] = 128;
        if (!allowed(problem, {&packets, config}, traits)) config[threads] = 64;
        if (!allowed(problem, {&packets, config}, traits)) continue;
        const double us = predict(problem, config, traits);
        if (best && us >= best_us) continue;
        best = config;
        best_us = us;
    }
    return best;
}

}  // namespace

const Variant packets{.name = "packets",
                      .summary = "a few lanes hold a head in packets, with both partners of every rotation",
                      .source = "rope_kv_append/packets.cu",
                      .tunables = tunables,
                      .constraints = constraints,
                      .plan = plan,
                      .fallback = fallback,
                      .access_elements = [](const Problem&, const Config& config) { return config[vector]; },
                      .predict_us = predict};

}  // namespace hone::rope_kv_append

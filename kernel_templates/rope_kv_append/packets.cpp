#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/kit/work.h"
#include "kernel_templates/rope_kv_append/packets_plan.h"
#include "kernel_templates/rope_kv_append/rank.h"
#include "kernel_templates/rope_kv_append/variants.h"

namespace hone::rope_kv_append {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&PacketsConfig::threads>("threads a block", {64, 128, 256, 384}),
    tunable<&PacketsConfig::vector>("elements a memory access", {2, 4, 8}),
    tunable<&PacketsConfig::heads_a_thread>("heads of a token that a thread holds at once", {1, 2, 3, 4, 6}),
    tunable<&PacketsConfig::early_weights>(
        "1: the norms' weights are loaded into registers ahead of everything else", {0, 1}),
    tunable<&PacketsConfig::load_hint>("cache hint of loads of q, k and v: 0 normal, 2 streaming", {0, 2}),
    programmatic_launch<&PacketsConfig::programmatic>(),
});

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

/// Packets of the heads and of the norms' weights, angles, and the head at hand as numbers.
std::int64_t held_registers(const RopeProblem& p, const PacketsConfig& c) {
    const std::int64_t packet = ceil_div(c.vector * p.element_bytes(), 4);
    const std::int64_t weights = p.norm && c.early_weights != 0 ? 4 * packet : 0;
    return 2 * packet * c.heads_a_thread + weights + (p.rotary_dim != 0 ? 4 : 2) * c.vector;
}

constexpr Constraint constraints[] = {
    rule("accesses are the widest whose pairs divide head_dim and rotary_dim, or half of that",
         [](const RopeProblem& p, const PacketsConfig& c) {
             const std::int64_t widest = widest_vector(p);
             return widest != 0 && (c.vector == widest || c.vector * 2 == widest);
         }),
    rule("a head is within a warp",
         [](const RopeProblem& p, const PacketsConfig& c) { return lanes(p, c) <= 32; }),
    rule("a block has no more threads than a token's heads take",
         [](const RopeProblem& p, const PacketsConfig& c) {
             return c.threads == 64 || groups(p, c) < 2 * p.all_heads();
         }),
    rule("a thread's last head must exist",
         [](const RopeProblem& p, const PacketsConfig& c) {
             return groups(p, c) * (c.heads_a_thread - 1) < p.all_heads();
         }),
    rule("what a thread holds must fit its registers",
         [](const RopeProblem& p, const PacketsConfig& c) {
             return held_registers(p, c) <= (c.threads > 256 ? 80 : 120);
         }),
    rule("early_weights is for problems with a norm",
         [](const RopeProblem& p, const PacketsConfig& c) { return c.early_weights == 0 || p.norm; }),
    programmatic_needs_sm_90<PacketsConfig>,
};

/// Constants are fitted to 36 measured candidates of 4 problems on an H100; another GPU scales them by its
/// bandwidth, clock and multiprocessors.
double predict(const Problem& problem, const PacketsConfig& c, const DeviceTraits& traits) {
    const RopeProblem p(problem);
    const double thread_heads = static_cast<double>(c.heads_a_thread);
    const double elements = 2 * static_cast<double>(c.vector) * thread_heads;
    const double slots = static_cast<double>(blocks_a_token(p, c) * groups(p, c)) * thread_heads;
    const double idle = slots / static_cast<double>(p.all_heads()) - 1;
    const double large_blocks = std::max(0.0, std::log2(static_cast<double>(c.threads) / 128));

    const double late_weights_us = p.norm && c.early_weights == 0 ? 0.3 + 0.2 * (thread_heads - 1) : 0;
    const double streaming = c.load_hint != 0 ? 1.005 : 1.0;
    return predict_us(problem,
                      {.threads = static_cast<double>(p.tokens * blocks_a_token(p, c) * c.threads),
                       .instructions = 70 + (p.norm ? 18.0 : 10.0) * elements,
                       .latency_us = 1.0 + 0.01 * elements + late_weights_us,
                       .slowdown = streaming * (1 + large_blocks * (0.025 + 0.1 * idle) + 0.02 * idle),
                       .programmatic = c.programmatic != 0},
                      traits);
}

/// Whether loads that level 2 lets go of first gain: 1 to 9 % from 64 tokens of 32/8 heads of 128 on, and
/// until level 2 is too small for the call, of which they then lose 2 (in both GPUs' sweeps).
bool should_stream(const Problem& problem, const DeviceTraits& traits) {
    constexpr double least_bytes = 1e6;
    const double bytes = bytes_of(declared_arguments(problem));
    return bytes >= least_bytes && bytes < static_cast<double>(traits.l2_bytes);
}

/// The config that the cost model likes best, of blocks of 128 threads with one to three heads a thread.
std::optional<PacketsConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const RopeProblem p(problem);
    PacketsConfig c{.vector = widest_vector(p)};
    if (c.vector == 0) return std::nullopt;
    c.early_weights = p.norm ? 1 : 0;
    c.load_hint = should_stream(problem, traits) ? 2 : 0;
    c.programmatic = traits.has_programmatic_launch() ? 1 : 0;
    std::vector<PacketsConfig> configs;
    for (const std::int64_t count : {1, 2, 3}) {
        c.heads_a_thread = count;
        c.threads = 128;
        if (!allowed(problem, {&packets, config_of(c)}, traits)) c.threads = 64;
        configs.push_back(c);
    }
    return best_of<PacketsConfig>(problem, packets, configs, traits);
}

}  // namespace

const Variant packets{.name = "packets",
                      .summary = "a few lanes hold a head in packets, with both partners of every rotation",
                      .source = "rope_kv_append/packets.cu",
                      .tunables = tunables,
                      .constraints = constraints,
                      .kernels = packets_kernels,
                      .plan = typed<packets_plan>,
                      .fallback = typed<fallback>,
                      .access_elements = typed<packets_access_elements>,
                      .predict_us = typed<predict>};

}  // namespace hone::rope_kv_append

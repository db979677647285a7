#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/quantized_linear/mma/rank.h"
#include "kernel_templates/quantized_linear/rank.h"
#include "kernel_templates/quantized_linear/variants.h"

namespace hone::quantized_linear {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&MmaConfig::tokens>("of a block", {8, 16, 32, 64, 128}),
    tunable<&MmaConfig::rows>("of the weight that a warp multiplies together", {16, 32, 64}),
    tunable<&MmaConfig::k_warps>("warps that share a row", {1, 2, 4, 8}),
    tunable<&MmaConfig::row_warps>("groups of them in a block", {1, 2, 4, 8}),
    tunable<&MmaConfig::unroll>("panels of 64 columns that a warp keeps in flight", {1, 2, 4}),
    programmatic_launch<&MmaConfig::programmatic>(),
});

/// The least that holds all, or 64 and 128.
bool holds_tokens(const QuantizedProblem& p, const MmaConfig& c) {
    if (p.tokens > 64) return c.tokens >= 64;
    return c.tokens >= p.tokens && (c.tokens == 8 || c.tokens < 2 * p.tokens);
}

constexpr Constraint constraints[] = {
    rule("products of bf16 need sm_80",
         [](const QuantizedProblem& p, const DeviceTraits& t) {
             return t.compute_major >= 8 || !p.is_packed() || p.dtype == Dtype::fp16;
         }),
    rule("rows of x and of codes are whole accesses of 16 bytes: in is a multiple of 16",
         [](const QuantizedProblem& p) { return p.in % 16 == 0; }),
    rule("32 bits hold a warp's sums of int8 products: in is below 131072",
         [](const QuantizedProblem& p) { return p.format != QuantFormat::w8a8 || p.in < 131072; }),
    rule("a block holds all tokens, up to 64; more are shared by blocks of 64 or 128",
         [](const QuantizedProblem& p, const MmaConfig& c) { return holds_tokens(p, c); }),
    rule("blocks have 4 to 16 warps",
         [](const MmaConfig& c) { return c.k_warps * c.row_warps >= 4 && c.k_warps * c.row_warps <= 16; }),
    rule("a thread keeps two to sixteen loads in flight",
         [](const QuantizedProblem& p, const MmaConfig& c) { return loads(p, c) >= 2 && loads(p, c) <= 16; }),
    rule("batches are whole blocks of 128 columns where these have scales",
         [](const QuantizedProblem& p, const MmaConfig& c) {
             const mma_blocks::Geometry g = geometry(p, c);
             return !g.blocks_scaled || g.panels() % 2 == 0;
         }),
    rule("warps that share a row must all have columns",
         [](const QuantizedProblem& p, const MmaConfig& c) {
             return c.k_warps <= 2 || (c.k_warps - 1) * c.unroll * mma_blocks::panel < p.in;
         }),
    rule("warps must all have rows, except one group of 16",
         [](const QuantizedProblem& p, const MmaConfig& c) {
             const std::int64_t out = p.out;
             return (c.rows == 16 || c.rows / 2 < out) &&
                    (c.row_warps == 1 || (c.row_warps - 1) * c.rows < out);
         }),
    rule("loads and sums must fit a thread's registers",
         [](const QuantizedProblem& p, const MmaConfig& c) {
             const std::int64_t threads = geometry(p, c).threads();
             return registers(p, c) <= std::min<std::int64_t>(216, 65536 / threads);
         }),
    rule("two batches of x and the warps' sums must fit shared memory",
         [](const QuantizedProblem& p, const MmaConfig& c, const DeviceTraits& t) {
             return geometry(p, c).shared_bytes() <= t.max_shared_bytes_per_block;
         }),
    programmatic_needs_sm_90<MmaConfig>,
};

/// The weights over the bandwidth, over what the loads in flight can draw, over issue slots and, with x, over
/// level 2, joined by a soft maximum and rounded up to whole waves of blocks; plus what a launch costs.
double predict(const QuantizedProblem& p, const MmaConfig& c, const DeviceTraits& traits) {
    const mma_blocks::Geometry g = geometry(p, c);
    const double blocks = static_cast<double>(steps(p, c) * token_groups(p, c));
    const double resident =
        std::min(fitting(g, registers(p, c), traits), std::ceil(blocks / traits.sm_count));
    const double busy = std::min<double>(traits.sm_count, blocks);
    const double waves = blocks / (resident * traits.sm_count);
    const double uneven = waves <= 1 ? 1.0 : std::min(1.25, std::ceil(waves) / waves);

    const double weights = p.weight_bytes() * static_cast<double>(token_groups(p, c));  // through level 2
    const double x = blocks * static_cast<double>(c.tokens * p.in) * g.x_bytes;
    const double cycles_per_us = busy_cycles_per_us(traits);
    const double memory_us =
        (p.weight_bytes() + p.x_bytes() + p.out_bytes()) / (0.88e-6 * traits.memory_bytes_per_s);
    const double in_flight = resident * g.threads() * static_cast<double>(loads(p, c)) * 16;
    const double draw_us = weights / busy / in_flight * 1.2;
    const double issue_us = weights / 16 * slots(p, c) / (busy * 128 * cycles_per_us);
    const double level2_us = (weights + x) / (busy * 32 * cycles_per_us);
    const double body_us = std::pow(
        std::pow(memory_us, 4) + std::pow(draw_us, 4) + std::pow(issue_us, 4) + std::pow(level2_us, 4), 0.25);
    const double join_us = 0.4 + 0.1 * static_cast<double>(c.tokens) / 8;
    return body_us * uneven + join_us + prepare_us(p, traits) + (c.programmatic != 0 ? 1.4 : 1.8);
}

/// The best by the cost model of a few shapes of blocks.
std::optional<MmaConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    struct Shape {
        std::int64_t rows, k_warps, row_warps;
    };
    constexpr Shape shapes[] = {{16, 4, 1}, {16, 8, 1}, {16, 4, 2}, {16, 4, 4}, {32, 4, 1},
                                {32, 4, 2}, {32, 2, 4}, {32, 1, 8}, {64, 2, 2}, {64, 1, 4}};
    std::vector<MmaConfig> starts;
    for (const Shape& shape : shapes) {
        starts.push_back({.rows = shape.rows,
                          .k_warps = shape.k_warps,
                          .row_warps = shape.row_warps,
                          .programmatic = traits.has_programmatic_launch() ? 1 : 0});
    }
    const std::vector<MmaConfig> configs =
        combinations(starts, tunables, {&MmaConfig::tokens, &MmaConfig::unroll});
    return best_of(problem, mma, std::span<const MmaConfig>(configs), traits);
}

}  // namespace

const Variant mma{.name = "mma",
                  .summary =
                      "weights stream through registers into warp-level tensor cores, x through shared "
                      "memory",
                  .source = "quantized_linear/mma/kernel.cu",
                  .tunables = tunables,
                  .constraints = constraints,
                  .kernels = mma_kernels,
                  .plan = typed<mma_plan>,
                  .fallback = typed<fallback>,
                  .access_elements = typed<mma_access_elements>,
                  .predict_us = typed<predict>};

}  // namespace hone::quantized_linear

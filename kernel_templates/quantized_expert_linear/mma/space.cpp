#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/quantized_expert_linear/mma/plan.h"
#include "kernel_templates/quantized_expert_linear/rank.h"
#include "kernel_templates/quantized_expert_linear/variants.h"
#include "kernel_templates/quantized_linear/mma/rank.h"

namespace hone::quantized_expert_linear {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&MmaConfig::tokens>("rows of x of a block", {8, 16, 32, 64}),
    tunable<&MmaConfig::rows>("of the weight that a warp multiplies together", {16, 32, 64}),
    tunable<&MmaConfig::k_warps>("warps that share a row", {1, 2, 4, 8}),
    tunable<&MmaConfig::row_warps>("groups of them in a block", {1, 2, 4, 8}),
    tunable<&MmaConfig::unroll>("panels of 64 columns that a warp keeps in flight", {1, 2, 4}),
    programmatic_launch<&MmaConfig::programmatic>(),
});

/// As quantized_linear's variant counts them; and what finding a tile leaves.
std::int64_t registers(const QuantizedExpertProblem& p, const MmaConfig& c) {
    return quantized_linear::registers(p.coded(), c) + 4;
}

constexpr Constraint constraints[] = {
    rule("products of bf16 need sm_80",
         [](const QuantizedExpertProblem& p, const DeviceTraits& t) {
             return t.compute_major >= 8 || !p.is_packed() || p.dtype == Dtype::fp16;
         }),
    rule("rows of x and of codes are whole accesses of 16 bytes: in is a multiple of 16",
         [](const QuantizedExpertProblem& p) { return p.in % 16 == 0; }),
    rule("32 bits hold a warp's sums of int8 products: in is below 131072",
         [](const QuantizedExpertProblem& p) { return p.format != QuantFormat::w8a8 || p.in < 131072; }),
    rule("a block holds an expert's share of the rows, up to 32, and up to four times as many",
         [](const QuantizedExpertProblem& p, const MmaConfig& c) {
             const std::int64_t rows = p.rows_an_active();
             return c.tokens >= std::min<std::int64_t>(rows, 32) && (c.tokens == 8 || c.tokens < 4 * rows);
         }),
    rule("blocks have 4 to 16 warps",
         [](const MmaConfig& c) { return c.k_warps * c.row_warps >= 4 && c.k_warps * c.row_warps <= 16; }),
    rule("a thread keeps two to sixteen loads in flight",
         [](const QuantizedExpertProblem& p, const MmaConfig& c) {
             return quantized_linear::loads(p.coded(), c) >= 2 && quantized_linear::loads(p.coded(), c) <= 16;
         }),
    rule("batches are whole blocks of 128 columns where these have scales",
         [](const QuantizedExpertProblem& p, const MmaConfig& c) {
             const quantized_linear::mma_blocks::Geometry g = geometry(p, c);
             return !g.blocks_scaled || g.panels() % 2 == 0;
         }),
    rule("warps that share a row must all have columns",
         [](const QuantizedExpertProblem& p, const MmaConfig& c) {
             return c.k_warps <= 2 || (c.k_warps - 1) * c.unroll * quantized_linear::mma_blocks::panel < p.in;
         }),
    rule("warps must all have rows, except one group of 16",
         [](const QuantizedExpertProblem& p, const MmaConfig& c) {
             return (c.rows == 16 || c.rows / 2 < p.out) &&
                    (c.row_warps == 1 || (c.row_warps - 1) * c.rows < p.out);
         }),
    rule("loads and sums must fit a thread's registers",
         [](const QuantizedExpertProblem& p, const MmaConfig& c) {
             return registers(p, c) <= std::min<std::int64_t>(216, 65536 / geometry(p, c).threads());
         }),
    rule("two batches of x and the warps' sums must fit shared memory",
         [](const QuantizedExpertProblem& p, const MmaConfig& c, const DeviceTraits& t) {
             return geometry(p, c).shared_bytes() + 4 * c.tokens <= t.max_shared_bytes_per_block;
         }),
    programmatic_needs_sm_90<MmaConfig>,
};

/// Whether a block's warps have read a row in one turn.
bool turns_once(const QuantizedExpertProblem& p, const MmaConfig& c) {
    return c.k_warps * c.unroll * quantized_linear::mma_blocks::panel >= p.in;
}

/// Blocks that fit a multiprocessor. Of w4a16 the compiler takes some 30 registers fewer than registers()
/// counts, and holds one batch of loads where there is one turn.
double fitting(const QuantizedExpertProblem& p, const MmaConfig& c, const DeviceTraits& traits) {
    const std::int64_t spared = 31 + (turns_once(p, c) ? 4 * quantized_linear::loads(p.coded(), c) : 0);
    return quantized_linear::fitting(geometry(p, c),
                                     registers(p, c) - (p.format == QuantFormat::w4a16 ? spared : 0), traits);
}

/// Of one block, its turns one after the other: the latency of loads that is not hidden, then what is made of
/// them. A warp alone issues about two slots in three cycles, as one instruction waits for the other; `warps`
/// on its scheduler share the slots, and meet less often the longer each waits. Fitted to 55 sweeps of an
/// H200 of one to 8,192 tokens.
double loop_us(const QuantizedExpertProblem& p, const MmaConfig& c, double warps, double cycles_per_us) {
    constexpr double latency_us = 0.57;
    constexpr double begin_us = 0.5;
    constexpr double first_turn = 0.85;  // finds x, too
    const auto turns =
        static_cast<double>(ceil_div(p.in, c.k_warps * c.unroll * quantized_linear::mma_blocks::panel));
    const double work = static_cast<double>(quantized_linear::loads(p.coded(), c)) *
                        quantized_linear::slots(p.coded(), c) / cycles_per_us;
    return begin_us + (turns + first_turn) * (latency_us + work * std::sqrt(2.25 + 0.64 * warps * warps));
}

/// The tiles that a random routing needs: memory, the blocks' loops and level 2, joined by a soft maximum and
/// rounded up to whole waves of blocks. Blocks that are fewer than there is room for take what one takes.
double predict(const QuantizedExpertProblem& p, const MmaConfig& c, const DeviceTraits& traits) {
    const quantized_linear::mma_blocks::Geometry g = geometry(p, c);
    const auto tiles = static_cast<double>(expert_linear::routed_tiles(p, c.tokens));
    const double blocks = tiles * static_cast<double>(ceil_div(p.out, g.block_rows()));
    const double fit = fitting(p, c, traits);
    const double resident = std::clamp(blocks / traits.sm_count, 1.0, fit);
    const double busy = std::min<double>(traits.sm_count, blocks);
    const double waves = std::max(1.0, blocks / (fit * traits.sm_count));
    const double uneven = 1 + 0.27 * (std::min(1.25, std::ceil(waves) / waves) - 1);

    const double weights = tiles * p.coded().weight_bytes();  // through level 2
    const double x = blocks * static_cast<double>(c.tokens * p.in) * g.x_bytes;
    const double cycles_per_us = busy_cycles_per_us(traits);
    const double memory_us = moved_bytes(p) / (0.95e-6 * traits.memory_bytes_per_s);
    const double loops_us = waves * loop_us(p, c, resident * g.threads() / 128, cycles_per_us);
    const double level2_us = (weights + x) / (busy * 32 * cycles_per_us);
    constexpr double softness = 3.8;
    const double body_us =
        std::pow(std::pow(memory_us, softness) + std::pow(loops_us, softness) + std::pow(level2_us, softness),
                 1 / softness);
    const double join_us = 0.6 + 1.8 * static_cast<double>(c.tokens) / 8;
    return body_us * uneven + join_us + around_us(p, traits, c.programmatic != 0) + 1.6;
}

/// The best by the cost model of a few shapes of blocks.
std::optional<MmaConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    struct Shape {
        std::int64_t rows, k_warps, row_warps;
    };
    constexpr Shape shapes[] = {{16, 4, 1}, {16, 8, 1}, {16, 4, 2}, {16, 4, 4}, {16, 1, 4},
                                {16, 1, 8}, {16, 2, 4}, {32, 4, 1}, {32, 4, 2}, {32, 2, 4},
                                {32, 1, 8}, {32, 1, 4}, {32, 2, 2}};
    // Of other codes than w4a16, whose turns the model was not fitted to: two groups of four warps that share
    // rows, wherever these are long enough. Measured on an H100, 5 to 10 % over the others.
    const QuantizedExpertProblem p(problem);
    const bool is_fitted = p.format == QuantFormat::w4a16;
    const bool is_long = p.in >= 512;
    std::vector<MmaConfig> starts;
    for (const Shape& shape : shapes) {
        if (!is_fitted && is_long && (shape.k_warps != 4 || shape.row_warps != 2)) continue;
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

const Variant mma{
    .name = "mma",
    .summary = "weights stream through registers into warp-level tensor cores, x through shared memory",
    .source = "quantized_expert_linear/mma/kernel.cu",
    .tunables = tunables,
    .constraints = constraints,
    .kernels = mma_kernels,
    .plan = typed<mma_plan>,
    .fallback = typed<fallback>,
    .access_elements = typed<mma_access_elements>,
    .predict_us = typed<predict>};

}  // namespace hone::quantized_expert_linear

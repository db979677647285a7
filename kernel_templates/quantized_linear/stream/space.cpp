#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/linear/normalize_rank.h"
#include "kernel_templates/quantized_linear/rank.h"
#include "kernel_templates/quantized_linear/stream/plan.h"
#include "kernel_templates/quantized_linear/variants.h"

namespace hone::quantized_linear {
namespace {
constexpr auto tunables = tunables_of({
    tunable<&StreamConfig::tokens>("of a block, all of them", {1, 2, 4}),
    tunable<&StreamConfig::rows>("of the weight that a warp multiplies together", {16, 32}),
    tunable<&StreamConfig::k_warps>("warps that share a row", {2, 4, 8, 12, 14, 16}),
    tunable<&StreamConfig::row_warps>("groups of them in a block", {1, 2, 4}),
    tunable<&StreamConfig::unroll>("panels of 64 columns that a warp keeps in flight", {1, 2, 3, 4}),
    tunable<&StreamConfig::blocks_per_sm>("that a multiprocessor has room for", {1, 2, 3, 4, 6, 8}),
    programmatic_launch<&StreamConfig::programmatic>(),
});

/// Loads of 16 bytes that a thread has under way.
std::int64_t loads(const QuantizedProblem& p, const StreamConfig& c) {
    return c.unroll * p.products() * (c.rows / 16) * (p.bits() == 4 ? 1 : 2);
}
/// Registers of a thread: what is under way with its scales and zero points, sums and those of a group, x,
/// what is widened, and addresses.
std::int64_t registers(const QuantizedProblem& p, const StreamConfig& c) {
    const std::int64_t fragments = p.products() * c.rows / 16;
    const bool groups = p.has_groups();
    const std::int64_t extras =
        (groups || p.zeros ? (p.group == 32 ? 2 : 1) : 0) * (groups && p.zeros ? 2 : 1);
    return 4 * loads(p, c) + c.unroll * fragments * extras + fragments * 4 * (groups ? 2 : 1) + 36;
}

constexpr std::int64_t most_tokens = 4;
/// The least value of `tokens` that holds all.
std::int64_t tokens_held(const QuantizedProblem& p) {
    return *std::ranges::lower_bound(tunables[0].values.span(), std::min(p.tokens, most_tokens));
}

constexpr Constraint constraints[] = {
    rule("codes of 4 or 8 bits meet x of 16, up to 4 tokens",
         [](const QuantizedProblem& p) { return p.is_packed() && p.tokens <= most_tokens; }),
    rule("rows of x are whole accesses of 16 bytes: in is a multiple of 16",
         [](const QuantizedProblem& p) { return p.in % 16 == 0; }),
    rule("a block holds all tokens, and no more than it must",
         [](const QuantizedProblem& p, const StreamConfig& c) { return c.tokens == tokens_held(p); }),
    rule("blocks have 4 to 16 warps, multiprocessors 8 to 48",
         [](const StreamConfig& c) {
             const std::int64_t warps = c.k_warps * c.row_warps;
             return warps >= 4 && warps <= 16 && warps * c.blocks_per_sm >= 8 &&
                    warps * c.blocks_per_sm <= 48;
         }),
    rule("a thread keeps two to sixteen loads in flight",
         [](const QuantizedProblem& p, const StreamConfig& c) {
             return loads(p, c) >= 2 && loads(p, c) <= 16;
         }),
    rule("warps that share a row all have columns; turns are no more than half empty",
         [](const QuantizedProblem& p, const StreamConfig& c) {
             const StreamGeometry g = geometry(p, c);
             return g.k_warps <= std::max(2, g.panels()) &&
                    (g.unroll == 1 || 2 * g.panels() > g.turns() * g.turn());
         }),
    rule("warps must all have rows, except one group of 16",
         [](const QuantizedProblem& p, const StreamConfig& c) {
             const std::int64_t out = p.out;
             return (c.rows == 16 || c.rows / 2 < out) &&
                    (c.row_warps == 1 || (c.row_warps - 1) * c.rows < out);
         }),
    rule("programmatic launch needs sm_90",
         [](const StreamConfig& c, const DeviceTraits& t) {
             return c.programmatic == 0 || t.has_programmatic_launch();
         }),
    rule("a multiprocessor has no room for more blocks than come to it",
         [](const QuantizedProblem& p, const StreamConfig& c, const DeviceTraits& t) {
             return c.blocks_per_sm == 1 || blocks(p, c) > t.sm_count * (c.blocks_per_sm - 2);
         }),
    rule("loads and sums must fit a thread's registers",
         [](const QuantizedProblem& p, const StreamConfig& c) {
             const StreamGeometry g = geometry(p, c);
             return registers(p, c) <=
                    std::min<std::int64_t>(65536 / (g.threads() * c.blocks_per_sm) / 8 * 8, 200);
         }),
    rule("x and the warps' sums must fit shared memory, as often as blocks are resident",
         [](const QuantizedProblem& p, const StreamConfig& c, const DeviceTraits& t) {
             const std::int64_t bytes = geometry(p, c).shared_bytes();
             return bytes <= t.max_shared_bytes_per_block &&
                    c.blocks_per_sm * (bytes + 1024) <= t.shared_bytes_per_sm;
         }),
};

/// Instructions of a warp for a panel of 16 rows.
double panel_instructions(const QuantizedProblem& p, const StreamConfig& c) {
    const double fragments = static_cast<double>(p.products() * c.rows) / 16;
    const double widen = p.format == QuantFormat::w4a16 ? 48.0 : 62.0;
    const double groups = p.group == 0 ? 0.0 : std::max(1.0, 64.0 / static_cast<double>(p.group));
    return widen + 8 * groups + 8 + 8 / fragments;
}

/// Whatever is slowest of memory, what the loads in flight can draw and issue slots; what x, which every
/// block copies, adds; what the last blocks do alone; and the launch.
double predict(const QuantizedProblem& p, const StreamConfig& c, const DeviceTraits& traits) {
    const StreamGeometry g = geometry(p, c);
    const double count = static_cast<double>(blocks(p, c));
    const double sms = std::min<double>(traits.sm_count, count);
    const double resident = std::clamp(count / traits.sm_count, 1.0, static_cast<double>(c.blocks_per_sm));
    const double cycles_per_us = busy_cycles_per_us(traits);

    const double memory_us =
        (p.weight_bytes() + p.x_bytes() + p.out_bytes()) / (0.93e-6 * traits.memory_bytes_per_s);
    const double in_flight = resident * g.threads() * static_cast<double>(loads(p, c)) * 16;
    const double draw_us = p.weight_bytes() / sms / in_flight;
    const double pieces = static_cast<double>(p.products() * p.out) / 16 * static_cast<double>(p.in) / 64;
    const double warps = std::min(1.0, resident * g.threads() / 32 / 20);
    const double issue_us = pieces * panel_instructions(p, c) / (sms * 2.4 * warps * cycles_per_us);
    const double x_us = count * g.zeros_at() / (sms * 24 * cycles_per_us);
    const double body_us =
        std::pow(std::pow(memory_us, 4) + std::pow(draw_us, 4) + std::pow(issue_us, 4), 0.25);
    const double rounds = count / (traits.sm_count * resident);
    const double uneven = rounds <= 1 ? 0.0 : 0.05 * (std::ceil(rounds) / rounds - 1);
    // The columns of a turn come together, and the last of a row's are multiplied with nothing under way.
    const double turn_us = 0.02 * std::min(g.turn(), g.panels());
    return body_us * (1 + uneven) + 0.3 * x_us + turn_us + (c.programmatic != 0 ? 1.0 : 2.6) +
           (folds_norm(p) ? 0.3 : linear::normalize_us(p.dense(), traits));
}

/// The best by the cost model of a few shapes.
std::optional<StreamConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const QuantizedProblem p(problem);
    if (!p.is_packed() || p.tokens > most_tokens || p.in % 16 != 0) return std::nullopt;
    if (is_for_walk(p, traits) || is_for_ring(p, traits)) return std::nullopt;
    struct Shape {
        std::int64_t rows, k_warps, row_warps;
    };
    constexpr Shape shapes[] = {{16, 16, 1}, {16, 8, 1}, {16, 4, 1}, {32, 16, 1}, {16, 8, 2}};
    std::vector<StreamConfig> starts;
    for (const Shape& shape : shapes) {
        starts.push_back({.tokens = tokens_held(p),
                          .rows = shape.rows,
                          .k_warps = shape.k_warps,
                          .row_warps = shape.row_warps,
                          .programmatic = traits.has_programmatic_launch() ? 1 : 0});
    }
    const std::vector<StreamConfig> configs =
        combinations(starts, tunables, {&StreamConfig::unroll, &StreamConfig::blocks_per_sm});
    return best_of(problem, stream, std::span<const StreamConfig>(configs), traits);
}

}  // namespace

const Variant stream{.name = "stream",
                     .summary =
                         "many small blocks draw packed weights straight into registers, x stands in shared "
                         "memory; products by mma.sync",
                     .source = "quantized_linear/stream/kernel.cu",
                     .min_arch = {8, 0, false},
                     .tunables = tunables,
                     .constraints = constraints,
                     .kernels = stream_kernels,
                     .plan = typed<stream_plan>,
                     .fallback = typed<fallback>,
                     .access_elements = typed<stream_access_elements>,
                     .predict_us = typed<predict>};

}  // namespace hone::quantized_linear

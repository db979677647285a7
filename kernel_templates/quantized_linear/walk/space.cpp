#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/quantized_linear/rank.h"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/quantized_linear/walk/plan.h"

namespace hone::quantized_linear {
namespace {
constexpr auto tunables = tunables_of({
    tunable<&WalkConfig::tokens>("of a block, all of them", {1, 2, 4, 8}),
    tunable<&WalkConfig::k_warps>("warps that share rows",
                                  {4, 6, 7, 8, 10, 11, 12, 14, 16, 18, 20, 22, 24, 28}),
    tunable<&WalkConfig::unroll>("units of 128 columns that a warp keeps in flight", {1, 2, 4}),
    tunable<&WalkConfig::ahead>("turns of units asked of level 2 before x is waited for", {0, 1, 2}),
    tunable<&WalkConfig::blocks_per_sm>("that a multiprocessor has room for", {1, 2}),
    of_launch_alone(tunable<&WalkConfig::residents>("that a multiprocessor takes", {1, 2})),
    programmatic_launch<&WalkConfig::programmatic>(),
});

/// Loads of 16 bytes that a thread has under way.
std::int64_t loads(const QuantizedProblem& p, const WalkConfig& c) {
    return c.unroll * p.products() * (p.bits() == 4 ? 2 : 4);
}
/// Registers of a thread: what is under way with its scales and zero points, sums and those of a unit, x, and
/// addresses.
std::int64_t registers(const QuantizedProblem& p, const WalkConfig& c) {
    const WalkGeometry g = geometry(p, c);
    const std::int64_t sums = p.products() * g.column_blocks() * 4;
    const bool folds = p.is_packed() || p.has_blocks();
    const std::int64_t extras = p.has_groups()              ? g.sets * (p.zeros ? 2 : 1)
                                : p.has_blocks() || p.zeros ? 1
                                                            : 0;
    return 4 * loads(p, c) + c.unroll * p.products() * extras + sums * (folds ? 2 : 1) +
           (g.column_blocks() - 1) * 6 + 32;
}
/// What a thread may have: a quarter of a multiprocessor has a quarter of the registers, for whole warps.
std::int64_t register_share(const WalkGeometry& g, const WalkConfig& c) {
    return 65536 / (128 * ceil_div(g.threads() * c.blocks_per_sm, 128)) / 8 * 8;
}

/// Three digits of a token are columns of the right operand, so few tokens fill it.
std::int64_t most_tokens(const QuantizedProblem& p) { return p.is_packed() ? 4 : 8; }
/// The least value of `tokens` that holds all.
std::int64_t tokens_held(const QuantizedProblem& p) {
    return *std::ranges::lower_bound(tunables[0].values.span(), std::min(p.tokens, most_tokens(p)));
}
bool suits(const QuantizedProblem& p) {
    return p.tokens <= most_tokens(p) && p.in % 16 == 0 && (p.is_packed() || p.out % 16 == 0) &&
           p.in < 131072;
}

constexpr Constraint constraints[] = {
    rule("up to 4 tokens of packed weights, 8 of codes of 8 bits",
         [](const QuantizedProblem& p) { return p.tokens <= most_tokens(p); }),
    rule("rows of x and of codes are whole accesses of 16 bytes, and those of codes whole groups of 16: in "
         "and "
         "out are multiples of 16",
         [](const QuantizedProblem& p) { return p.in % 16 == 0 && (p.is_packed() || p.out % 16 == 0); }),
    rule("32 bits hold a warp's sums of int8 products: in is below 131072",
         [](const QuantizedProblem& p) { return p.in < 131072; }),
    rule("a block holds all tokens, and no more than it must",
         [](const QuantizedProblem& p, const WalkConfig& c) { return c.tokens == tokens_held(p); }),
    rule("multiprocessors have 8 to 32 warps",
         [](const WalkConfig& c) { return c.k_warps * c.residents >= 8 && c.k_warps * c.residents <= 32; }),
    rule("blocks that are taken find room",
         [](const WalkConfig& c) { return c.residents <= c.blocks_per_sm; }),
    rule("a thread keeps up to sixteen loads in flight",
         [](const QuantizedProblem& p, const WalkConfig& c) { return loads(p, c) <= 16; }),
    rule("turns are full but for an eighth, where fewer warps would not do",
         [](const QuantizedProblem& p, const WalkConfig& c) {
             const WalkGeometry g = geometry(p, c);
             return 8 * g.units() >= 7 * g.turns() * g.turn() || (c.k_warps <= 8 && c.unroll == 1);
         }),
    rule("what is asked for ahead is there, and whole",
         [](const QuantizedProblem& p, const WalkConfig& c, const DeviceTraits& t) {
             const WalkGeometry g = geometry(p, c);
             return c.ahead == 0 || (c.programmatic != 0 && p.in % 128 == 0 && g.units() % g.turn() == 0 &&
                                     c.ahead < g.turns() * ceil_div(g.groups(), blocks(p, c, t)));
         }),
    rule("programmatic launch needs sm_90",
         [](const WalkConfig& c, const DeviceTraits& t) {
             return c.programmatic == 0 || t.has_programmatic_launch();
         }),
    rule("loads and sums must fit a thread's registers",
         [](const QuantizedProblem& p, const WalkConfig& c) {
             return registers(p, c) <= std::min<std::int64_t>(register_share(geometry(p, c), c), 200);
         }),
    rule("x and the warps' sums must fit shared memory, as often as blocks are resident",
         [](const QuantizedProblem& p, const WalkConfig& c, const DeviceTraits& t) {
             const std::int64_t bytes = geometry(p, c).shared_bytes();
             return bytes <= t.max_shared_bytes_per_block &&
                    c.blocks_per_sm * (bytes + 1024) <= t.shared_bytes_per_sm;
         }),
};

/// Instructions of a warp for a unit of 16 rows x 128 columns.
double unit_instructions(const QuantizedProblem& p, const WalkGeometry& g) {
    const double operands = p.format == QuantFormat::w4a16   ? 24.0
                            : p.format == QuantFormat::w8a16 ? 16.0
                            : p.format == QuantFormat::fp8   ? 48.0
                                                             : 0.0;
    const double steps = p.format == QuantFormat::fp8 ? 8.0 : 4.0;
    const double folds = p.is_packed() ? g.sets * 12.0 : p.has_blocks() ? 8.0 : 0.0;
    return 8 + operands + g.column_blocks() * (1.5 * steps + folds);
}

/// Whatever is slowest of memory, what is under way and issue slots; what every block does with x; and what
/// is not hidden between two calls.
double predict(const QuantizedProblem& p, const WalkConfig& c, const DeviceTraits& traits) {
    const WalkGeometry g = geometry(p, c);
    const double count = static_cast<double>(blocks(p, c, traits));
    const double rounds = std::ceil(g.groups() / count);
    const double resident = std::ceil(count / traits.sm_count);
    const double cycles_per_us = busy_cycles_per_us(traits);
    const double bandwidth = 1e-6 * traits.memory_bytes_per_s;

    // The busiest multiprocessor takes in a little more than its share, while others have ended.
    const double busiest = rounds * resident * p.weight_bytes() / g.groups();
    const double memory_us = std::max((p.weight_bytes() + p.x_bytes() + p.out_bytes()) / (0.97 * bandwidth),
                                      busiest / (1.05 * bandwidth / traits.sm_count));
    const double turn_units = static_cast<double>(g.turns()) * g.turn();  // with those that are none
    const double in_flight =
        resident * 32 * static_cast<double>(g.k_warps) * static_cast<double>(loads(p, c)) * 16;
    const double latency_us = busiest * turn_units / g.units() / in_flight;
    const double warps = std::min(1.0, resident * g.k_warps / 16.0);
    const double issue_us =
        rounds * resident * turn_units * g.products * unit_instructions(p, g) / (2.2 * warps * cycles_per_us);
    const double body_us =
        std::pow(std::pow(memory_us, 4) + std::pow(latency_us, 4) + std::pow(issue_us, 4), 0.25);
    const double x_us = (p.is_packed() ? 0.5 : 0.3) * static_cast<double>(g.tokens) *
                        std::max(1.0, static_cast<double>(p.in) / 4096) * resident;
    // The next call's blocks find room beside these, or they begin when these end.
    const bool beside = c.programmatic != 0 && resident < static_cast<double>(c.blocks_per_sm);
    const double launch_us = c.programmatic == 0 ? 2.6 : beside ? 1.2 : 1.3;
    const double asked_us = c.ahead == 0 ? 0.0 : p.bits() == 4 ? 0.1 : -0.2;
    const double norm_us = p.norm && p.is_packed() ? 0.3 : 0.0;
    return body_us + x_us + launch_us + asked_us + norm_us + quantize_us(p, traits);
}

/// The best by the cost model.
std::optional<WalkConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const QuantizedProblem p(problem);
    if (!suits(p) || !traits.has_programmatic_launch()) return std::nullopt;
    const std::vector<WalkConfig> configs = combinations(
        {WalkConfig{.tokens = tokens_held(p), .programmatic = 1}}, tunables,
        {&WalkConfig::k_warps, &WalkConfig::unroll, &WalkConfig::blocks_per_sm, &WalkConfig::residents});
    return best_of(problem, walk, std::span<const WalkConfig>(configs), traits);
}

}  // namespace

const Variant walk{.name = "walk",
                   .summary =
                       "few tokens: resident blocks walk over the weight, whose codes come straight into "
                       "registers without a pause between rows; x stands in shared memory",
                   .source = "quantized_linear/walk/kernel.cu",
                   .min_arch = {9, 0, false},
                   .tunables = tunables,
                   .constraints = constraints,
                   .kernels = walk_kernels,
                   .plan = typed<walk_plan>,
                   .fallback = typed<fallback>,
                   .access_elements = typed<walk_access_elements>,
                   .predict_us = typed<predict>};

}  // namespace hone::quantized_linear

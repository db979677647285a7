#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/quantized_linear/rank.h"
#include "kernel_templates/quantized_linear/ring_w8/plan.h"
#include "kernel_templates/quantized_linear/variants.h"

namespace hone::quantized_linear {
namespace {
constexpr auto tunables = tunables_of({
    tunable<&RingW8Config::tokens>("of a block, all of them", {1, 2, 4, 8, 16}),
    tunable<&RingW8Config::rows>("results of a tile, a token", {8, 16, 24, 32, 40, 48, 56, 64}),
    tunable<&RingW8Config::consumers>("warpgroups that take the stages in turns", {1, 2, 4}),
    tunable<&RingW8Config::stage_columns>("columns of a stage", {128, 256, 512}),
    tunable<&RingW8Config::stages>("in shared memory", {4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32}),
    tunable<&RingW8Config::x_place>(
        "0: blocks make codes of x, which stay in shared memory; 1: they come from memory and stay; 2: they "
        "pass through the ring",
        {x_made, x_copied, x_streams}),
    programmatic_launch<&RingW8Config::programmatic>(),
});

constexpr std::int64_t most_tokens = 16;
/// The least value of `tokens` that holds all.
std::int64_t tokens_held(const QuantizedProblem& p) {
    return *std::ranges::lower_bound(tunables[0].values.span(), std::min(p.tokens, most_tokens));
}
bool suits(const QuantizedProblem& p) {
    return !p.is_packed() && p.tokens <= most_tokens && p.in % 16 == 0 && p.out % 16 == 0 && p.in < 131072;
}

/// Registers of a thread: sums, those of a stage, scales of blocks, and the rest; or numbers of x whose codes
/// it makes, of many tokens more than it keeps.
std::int64_t registers(const QuantizedProblem& p, const RingW8Config& c) {
    const RingW8Geometry g = geometry(p, c);
    const int sums = g.row_blocks() * g.n() / 2;
    const int parts = p.format == QuantFormat::w8a8 ? 0 : p.has_blocks() ? g.stage_panels() * sums : sums;
    const int scales = p.has_blocks() ? 2 * g.row_blocks() * (g.stage_panels() + 2) : 0;
    const int makes = c.x_place == x_made && c.tokens >= 8 && !p.has_blocks() ? 4 * 16 + 72 : 0;
    return std::max(sums + parts + scales + 48, makes);
}

constexpr Constraint constraints[] = {
    rule("codes of 8 bits, up to 16 tokens",
         [](const QuantizedProblem& p) { return !p.is_packed() && p.tokens <= most_tokens; }),
    rule("rows start at multiples of 16 elements: in and out are multiples of 16",
         [](const QuantizedProblem& p) { return p.in % 16 == 0 && p.out % 16 == 0; }),
    rule("32 bits hold sums of int8 products: in is below 131072",
         [](const QuantizedProblem& p) { return p.in < 131072; }),
    rule("a block holds all tokens, and no more than it must",
         [](const QuantizedProblem& p, const RingW8Config& c) { return c.tokens == tokens_held(p); }),
    rule("blocks make codes of x that has 16 bits and no norm",
         [](const QuantizedProblem& p, const RingW8Config& c) {
             return c.x_place != x_made || (p.quantizes_x() && !p.norm);
         }),
    rule("a stage is the same warpgroup's in every round: as many stages for each of them",
         [](const RingW8Config& c) { return c.stages % c.consumers == 0; }),
    rule("tiles leave few multiprocessors idle, where fewer rows would not do",
         [](const QuantizedProblem& p, const RingW8Config& c, const DeviceTraits& t) {
             return c.rows == 8 || 4 * blocks(p, c, t) >= 3 * t.sm_count;
         }),
    rule("every warpgroup has columns",
         [](const QuantizedProblem& p, const RingW8Config& c) {
             return c.consumers == 1 || geometry(p, c).steps() >= c.consumers;
         }),
    rule("programmatic launch needs sm_90",
         [](const RingW8Config& c, const DeviceTraits& t) {
             return c.programmatic == 0 || t.has_programmatic_launch();
         }),
    rule("sums and scales must fit a thread's registers",
         [](const QuantizedProblem& p, const RingW8Config& c) {
             const std::int64_t share = 65536 / geometry(p, c).threads() / 8 * 8;
             return registers(p, c) <= std::min<std::int64_t>(share, 224);
         }),
    rule("the ring, x and sums must fit shared memory",
         [](const QuantizedProblem& p, const RingW8Config& c, const DeviceTraits& t) {
             return geometry(p, c).shared_bytes() <= t.max_shared_bytes_per_block;
         }),
    rule("the ring takes three quarters of the room that it has, or all steps at least",
         [](const QuantizedProblem& p, const RingW8Config& c, const DeviceTraits& t) {
             const RingW8Geometry g = geometry(p, c);
             const std::int64_t ring = static_cast<std::int64_t>(g.stages) * g.stage_bytes();
             const std::int64_t room = t.max_shared_bytes_per_block - (g.shared_bytes() - ring);
             const bool holds_all = g.stages >= g.steps() * rounds(p, c, t);
             if (holds_all) return g.stages < 2 * g.steps() * rounds(p, c, t) || g.stages == 4;
             return 4 * ring >= 3 * room || c.stages == 32;
         }),
};

/// Whatever is slowest of memory (or the busiest multiprocessor's share of it), the ring's way there, and the
/// tensor cores; what every block does with x; and what is not hidden between two calls. Constants fit calls
/// of 4096 x 4096 to 28672 x 4096 at 1 to 16 tokens on an H200.
double predict(const QuantizedProblem& p, const RingW8Config& c, const DeviceTraits& traits) {
    const RingW8Geometry g = geometry(p, c);
    const double bandwidth = 0.95e-6 * traits.memory_bytes_per_s;
    const double share = static_cast<double>(rounds(p, c, traits) * c.rows) / static_cast<double>(p.out);
    const double memory_us = (p.weight_bytes() + p.x_bytes() + p.out_bytes()) / bandwidth;
    // A multiprocessor takes in a little more than its share.
    const double busiest_us = share * p.weight_bytes() * traits.sm_count / (1.05 * bandwidth);
    const double ring_bytes = static_cast<double>(g.stages) * g.stage_bytes();
    const double latency_us = share * p.weight_bytes() / std::min(ring_bytes, 96e3);
    const double steps = static_cast<double>(rounds(p, c, traits)) * g.steps();
    const double products = 4.0 * g.stage_panels() * g.row_blocks();
    const double scale_cycles = p.has_blocks() ? 200.0 * g.stage_panels() : 0.0;
    const double cycles = std::max(20.0 * products, (250.0 + 20.0 * products + scale_cycles) / g.consumers);
    const double product_us = steps * cycles / busy_cycles_per_us(traits);
    double sum = 0;
    for (const double us : {std::max(memory_us, busiest_us), latency_us, product_us}) sum += std::pow(us, 4);

    // Every block reads x that stays, behind the weights that fill its ring. The launch in front is partly
    // hidden behind those.
    const double more_numbers = static_cast<double>((p.tokens - 1) * p.in);
    double x_us = 0.3;
    if (c.x_place == x_made) x_us += static_cast<double>(p.in) / 60e3 + more_numbers / 10e3;
    if (c.x_place == x_copied) x_us += static_cast<double>(p.in) / 150e3 + more_numbers / 22e3;
    if (c.x_place == x_streams) x_us += 0.1 + 0.05 * g.n() / 8;
    const double made_us = c.x_place == x_made ? 0.0 : 0.5 * quantize_us(p, traits);
    const double launch_us = c.programmatic == 0 ? 2.2 : 1.0;
    return std::pow(sum, 0.25) + x_us + made_us + launch_us;
}

/// The best by the cost model.
std::optional<RingW8Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const QuantizedProblem p(problem);
    if (!suits(p) || !traits.has_programmatic_launch()) return std::nullopt;
    const std::vector<RingW8Config> configs =
        combinations({RingW8Config{.tokens = tokens_held(p), .programmatic = 1}}, tunables,
                     {&RingW8Config::rows, &RingW8Config::consumers, &RingW8Config::stage_columns,
                      &RingW8Config::stages, &RingW8Config::x_place});
    return best_of(problem, ring_w8, std::span<const RingW8Config>(configs), traits);
}

}  // namespace

const Variant ring_w8{
    .name = "ring_w8",
    .summary =
        "few tokens: codes of 8 bits pass through a ring in shared memory that tensor copies "
        "fill, warpgroup tensor cores read them there",
    .source = "quantized_linear/ring_w8/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .kernels = ring_w8_kernels,
    .plan = typed<ring_w8_plan>,
    .fallback = typed<fallback>,
    .access_elements = typed<ring_w8_access_elements>,
    .predict_us = typed<predict>};

}  // namespace hone::quantized_linear

#include <algorithm>

#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/linear/wgmma/rules.h"
#include "kernel_templates/quantized_linear/rank.h"
#include "kernel_templates/quantized_linear/two_widths/plan.h"
#include "kernel_templates/quantized_linear/two_widths/rounds.cuh"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/quantized_linear/wgmma_w16/rank.h"
#include "kernel_templates/quantized_linear/wgmma_w16/stages.h"

namespace hone::quantized_linear {
namespace {
using namespace linear::gemm;

constexpr auto tile_tunables = tunables_of({
    tunable<&WgmmaConfig::tile_m>("rows of a tile: of the weight", {128, 192, 256}),
    tunable<&WgmmaConfig::tile_n>("columns of a wide tile: tokens",
                                  {128, 136, 144, 152, 160, 168, 176, 184, 192, 200, 208, 224, 240, 256}),
    tunable<&WgmmaConfig::consumers>("warpgroups that multiply", {2, 3}),
    tunable<&WgmmaConfig::ping_pong>("warpgroups share a tile", {0}),
    tunable<&WgmmaConfig::blocks_per_sm>("resident blocks a multiprocessor", {1}),
    tunable<&WgmmaConfig::swapped>("the weight is the left operand", {1}),
    tunable<&WgmmaConfig::tail_split>("tiles are whole", {0}),
    tunable<&WgmmaConfig::cluster_k>("sums are whole", {1}),
    tunable<&WgmmaConfig::staged>("results leave through shared memory and the copy engine", {1}),
    tunable<&WgmmaConfig::raster>("rows of tiles that are worked on together", {8, 16}),
    tunable<&WgmmaConfig::l2_hint>("no hints to level 2", {0}),
    make_tunable(&WgmmaConfig::programmatic, "programmatic",
                 "2: programmatic dependent launch of the successor, late and beside the block", {0, 2}, 2),
});
constexpr auto w16_tunables = tunables_of(
    tile_tunables, {tunable<&WgmmaW16Config::stages_together>(
                       "stages between whose products the tensor cores do not wait; 0: all; 6: all, taken "
                       "two at a time",
                       {0, 1, 2, 6})});
constexpr auto tunables = tunables_of(
    w16_tunables,
    {tunable<&TwoWidthsConfig::last_n>("columns of a narrow tile: tokens",
                                       {64,  72,  80,  88,  96,  104, 112, 120, 128, 136, 144, 152,
                                        160, 168, 176, 184, 192, 200, 208, 216, 224, 232, 240, 248}),
     tunable<&TwoWidthsConfig::last_rounds>("rounds of narrow tiles, at most", {1, 2, 3, 4})});

/// How the tiles fill the multiprocessors.
widths::Shares shares_of(const QuantizedProblem& p, const TwoWidthsConfig& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    return {.rows = static_cast<int>(tiles_across(p.dense(), g)),
            .columns = static_cast<int>(tiles_along(p.dense(), g)),
            .last_columns = static_cast<int>(ceil_div(p.tokens, c.last_n)),
            .last_rounds = static_cast<int>(c.last_rounds),
            .blocks = static_cast<int>(places(c, traits))};
}

/// Columns that `n` has beyond what as many tiles of so many tokens need: whole eights.
std::int64_t spare_columns(std::int64_t tokens, std::int64_t n) {
    const std::int64_t needed = ceil_div(tokens, ceil_div(tokens, n));
    return n - ceil_div(needed, 8) * 8;
}

constexpr auto own_constraints = std::to_array<Constraint>({
    rule("codes of 4 or 8 bits that stand in blocks are multiplied with 16-bit x, without a gate",
         [](const QuantizedProblem& p) { return p.is_packed() && !p.gated; }),
    rule("codes are copied 16 bytes at a time, and rows of x and of results start there: in and out are "
         "multiples of 16",
         [](const QuantizedProblem& p) { return p.in % 16 == 0 && p.out % 16 == 0; }),
    rule("each tile of tokens widens its weights anew: several tiles are for more than 128 tokens",
         [](const QuantizedProblem& p) { return p.tokens > 128; }),
    rule("warpgroups take one or two blocks of 64 rows",
         through<TwoWidthsConfig>(&TwoWidthsConfig::consumers),
         [](const TwoWidthsConfig& c) {
             return c.tile_m % (64 * c.consumers) == 0 && c.tile_m / (64 * c.consumers) <= 2;
         }),
    rule("a thread's sums, fragments and codes must fit its registers",
         through<TwoWidthsConfig>(&TwoWidthsConfig::stages_together),
         [](const QuantizedProblem& p, const TwoWidthsConfig& c) {
             return fits_registers(p, geometry(p, c), c);
         }),
    rule(
        "at least three stages must fit shared memory, and two beside those that are worked on together: two "
        "without a pause",
        [](const QuantizedProblem& p, const TwoWidthsConfig& c) {
            return has_stages(geometry(p, c), c.stages_together);
        }),
    rule("two stages at a time are parts of sums that have an even number of steps",
         through<TwoWidthsConfig>(&TwoWidthsConfig::stages_together),
         [](const QuantizedProblem& p, const TwoWidthsConfig& c) {
             return !form_of(c.stages_together).pairs || steps(p.dense()) % 2 == 0;
         }),
    rule("narrow tiles have fewer columns than wide ones, and more than half of one's tokens exist",
         through(&TwoWidthsConfig::last_n),
         [](const QuantizedProblem& p, const TwoWidthsConfig& c) {
             return c.last_n < c.tile_n && c.last_n < 2 * p.tokens;
         }),
    rule("wide tiles are no wider than as many of them need, or by 8 tokens",
         through<TwoWidthsConfig>(&TwoWidthsConfig::tile_n),
         [](const QuantizedProblem& p, const TwoWidthsConfig& c) {
             return spare_columns(p.tokens, c.tile_n) <= 8;
         }),
    rule("narrow tiles are no wider than as many of them need", through(&TwoWidthsConfig::last_n),
         [](const QuantizedProblem& p, const TwoWidthsConfig& c) {
             return spare_columns(p.tokens, c.last_n) == 0;
         }),
    rule("there are rounds of wide tiles, and as many of narrow ones as there may be",
         [](const QuantizedProblem& p, const TwoWidthsConfig& c, const DeviceTraits& t) {
             const widths::Shares shares = shares_of(p, c, t);
             return shares.wide_rounds() > 0 && shares.narrow_rounds() == c.last_rounds;
         }),
});
constexpr auto constraints = joined(own_constraints, schedule_rules<Dense, TwoWidthsConfig>);

/// Microseconds of a call: rounds of wide tiles and of narrow ones, as wgmma_w16's model has them.
double predict_two_widths(const QuantizedProblem& p, const TwoWidthsConfig& c, const DeviceTraits& traits) {
    const w16::Form form = form_of(c.stages_together);
    const RoundCost wide = round_cost(p, geometry(p, c), form, traits);
    TwoWidthsConfig last = c;
    last.tile_n = c.last_n;
    const RoundCost narrow = round_cost(p, geometry(p, last), form, traits);
    const widths::Shares shares = shares_of(p, c, traits);
    const double wide_rounds = shares.wide_rounds();
    const double narrow_rounds = shares.narrow_rounds();
    const double us = call_us(p, wide_rounds * wide.products_us + narrow_rounds * narrow.products_us, traits);
    return us + (wide_rounds + narrow_rounds) * wide.end_us + (c.raster > 8 ? 0.005 * us : 0.0);
}

}  // namespace

const Variant two_widths{
    .name = "two_widths",
    .summary = "wgmma_w16 with wide tiles of tokens in whole rounds, and narrower ones in the last",
    .source = "quantized_linear/two_widths/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .kernels = two_widths_kernels,
    .plan = typed<two_widths_plan>,
    // What nobody has measured runs wgmma_w16.
    .fallback = no_fallback,
    .access_elements = typed<two_widths_access_elements>,
    .predict_us = typed<predict_two_widths>};

}  // namespace hone::quantized_linear

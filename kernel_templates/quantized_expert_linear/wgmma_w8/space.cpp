#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/linear/wgmma/rank.h"
#include "kernel_templates/quantized_expert_linear/rank.h"
#include "kernel_templates/quantized_expert_linear/variants.h"
#include "kernel_templates/quantized_expert_linear/wgmma_w8/plan.h"

namespace hone::quantized_expert_linear {
namespace {

using expert_linear::WgmmaConfig;
using linear::gemm::Geometry;

constexpr auto tile_tunables = tunables_of({
    read_with<&WgmmaConfig::swapped>(
        tunable<&WgmmaConfig::tile_m>("rows of a tile: of x; swapped: results a row", {64, 128, 256})),
    read_with<&WgmmaConfig::swapped>(tunable<&WgmmaConfig::tile_n>(
        "columns of a tile: results a row; swapped: rows of x", {8, 16, 32, 64, 96, 128, 192, 256})),
    tunable<&WgmmaConfig::consumers>("warpgroups that multiply", {1, 2}),
    tunable<&WgmmaConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2}),
    tunable<&WgmmaConfig::swapped>("1: the weight is the left operand, for few rows an expert", {0, 1}),
    tunable<&WgmmaConfig::tail_split>("1: tiles of a last round are split over all blocks", {0}),
    tunable<&WgmmaConfig::l2_hint>("1: weights leave level 2 first, x last", {0, 1}),
    tunable<&WgmmaConfig::copied_x>("rows of x become codes in a launch in front", {0}),
    programmatic_launch<&WgmmaConfig::programmatic>(),
});
constexpr auto tunables = tunables_of(
    tile_tunables,
    {tunable<&WgmmaW8Config::promote>(
        "fp8: products of 32 columns that the tensor cores add up before float32 registers do; 0: all",
        {0, 4, 8, 16})});

/// Sums, and beside them those that the tensor cores add to or the scales that they get in the end.
bool fits_registers(const Geometry& g, std::int64_t promoted) {
    const int held = g.sums() + (promoted == 0 ? 0 : g.tile_n / 2);
    if (promoted == 0 && g.sums() > (g.gated ? 128 : 160)) return false;
    if (g.blocks_per_sm == 1 && g.consumers == 2) return held <= 184;
    return held + 52 <= std::min(255, 65536 / (g.threads() * g.blocks_per_sm));
}

constexpr Constraint constraints[] = {
    rule("codes of 8 bits are multiplied with codes of x",
         [](const QuantizedExpertProblem& p) { return !p.is_packed(); }),
    rule("rows start at multiples of 16 elements: in and out are multiples of 16",
         [](const QuantizedExpertProblem& p) { return p.in % 16 == 0 && p.out % 16 == 0; }),
    rule("sums of int8 products must fit 32 bits: in below 131072; n of such products is 8 or a multiple of "
         "16",
         [](const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
             return p.format != QuantFormat::w8a8 || (p.in < 131072 && (c.tile_n == 8 || c.tile_n % 16 == 0));
         }),
    rule("integer sums are exact, blocks of 128 columns have a scale each, and sums of more than 512 fp8 "
         "products lose too much in the tensor cores",
         [](const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
             if (p.format == QuantFormat::w8a8) return c.promote == 0;
             if (p.has_blocks()) return c.promote == 4;
             return c.promote != 0 || p.in <= 512;
         }),
    rule("with blocks the columns of a tile share a scale of the weight",
         [](const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
             return !p.has_blocks() || c.swapped != 0 ||
                    quantized_linear::scaled_block % geometry(p, c).result_columns() == 0;
         }),
    rule("steps whose sums several blocks of rows take in turn must leave a stage for the next one",
         [](const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
             const Geometry g = geometry(p, c);
             return g.row_blocks() == 1 || g.stages() > c.promote / 4;
         }),
    rule("warpgroups take whole blocks of 64 rows",
         [](const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
             const Geometry g = geometry(p, c);
             return g.tile_m % (linear::gemm::block_rows * g.sharers() * (g.gated_rows() ? 2 : 1)) == 0;
         }),
    rule("gate and up columns meet in one thread, and staged rows have 16 results at least",
         [](const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
             const Geometry g = geometry(p, c);
             return (!g.gated_columns() || g.tile_n % 16 == 0) && (g.swapped || g.result_columns() % 16 == 0);
         }),
    rule("a thread's sums and scales, or the sums that are added to them, must fit its registers",
         [](const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
             return fits_registers(geometry(p, c), c.promote);
         }),
    rule("one consumer is for 64 rows of results; two blocks a multiprocessor have one consumer each",
         [](const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
             return (c.consumers != 1 || geometry(p, c).result_rows() == 64) &&
                    (c.blocks_per_sm == 1 || c.consumers == 1);
         }),
    rule(
        "at least three stages must fit shared memory",
        [](const QuantizedExpertProblem& p, const WgmmaW8Config& c) { return geometry(p, c).stages() >= 3; }),
    rule("weights are the left operand for up to 128 rows an expert, which up to 64 share a tile",
         [](const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
             const std::int64_t rows = p.rows_an_active();
             return c.swapped == 0 || (rows <= 128 && c.tile_n >= std::min<std::int64_t>(rows, 64));
         }),
    rule("half of a tile's rows must exist, or of two tiles'",
         [](const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
             const std::int64_t rows = expert_linear::tile_rows(c);
             return rows <= (c.swapped != 0 ? 16 : 64) || rows < 4 * p.rows_an_active();
         }),
    rule("weights that several tiles of rows need stay in level 2",
         [](const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
             return c.l2_hint == 0 || p.rows_an_active() <= expert_linear::tile_rows(c);
         }),
    rule("tiles with x as the left operand have 64 columns at least, and are for more than 16 rows an expert",
         [](const QuantizedExpertProblem& p, const WgmmaW8Config& c) {
             return c.swapped != 0 || (c.tile_n >= 64 && p.rows_an_active() > 16);
         }),
};

/// Rounds of tiles, each bound by the tensor cores or by the latency of a stage; and the memory.
double predict(const QuantizedExpertProblem& p, const WgmmaW8Config& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    const std::int64_t rows = expert_linear::tile_rows(c);
    const auto tiles = static_cast<double>(p.tiles(rows) * tiles_across(p, c));
    const double places = static_cast<double>(traits.sm_count * c.blocks_per_sm);
    const double rounds = std::ceil(tiles / places);
    const double together =
        std::min(static_cast<double>(c.blocks_per_sm), std::ceil(tiles / traits.sm_count));
    // A stage has twice as many columns, which tensor cores multiply twice as fast.
    const double added = c.promote == 0 ? 1.0 : 1.0 + 1.2 / static_cast<double>(c.promote);
    const double step = std::max(added * linear::gemm::stage_cycles(g) * together, 1000.0 / g.stages());
    const double steps = std::ceil(static_cast<double>(p.in) / 128);
    const double epilogue = 1200 + 0.04 * static_cast<double>(c.tile_m * c.tile_n);
    const double compute_us = rounds * (steps * step + epilogue) / busy_cycles_per_us(traits);
    const double memory_us = moved_bytes(p) / (0.88e-6 * traits.memory_bytes_per_s);
    return (c.programmatic != 0 ? 3.5 : 4.5) + std::max(compute_us, memory_us) +
           0.15 * std::min(compute_us, memory_us) + around_us(p, traits, c.programmatic != 0);
}

/// Sums of fp8 are added up in float32 wherever nobody has measured whether they need to be.
std::optional<WgmmaW8Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const QuantizedExpertProblem p(problem);
    // mma splits rows of the weight where there are too few tiles for all multiprocessors' rings.
    if (p.rows_an_active() <= 4 && p.active() * ceil_div(p.out, 64) < 1000) return std::nullopt;
    const std::int64_t gates = p.gated ? 2 : 1;
    WgmmaW8Config swapped;
    swapped.tile_m = 64 * gates;
    swapped.swapped = 1;
    swapped.programmatic = 1;
    swapped.promote = p.format == QuantFormat::fp8 ? 4 : 0;
    WgmmaW8Config straight = swapped;
    straight.tile_m = 128;
    straight.consumers = 2;
    straight.swapped = 0;
    const std::vector<WgmmaW8Config> configs = combinations<WgmmaW8Config>(
        {swapped, straight}, tunables, {&WgmmaW8Config::tile_n, &WgmmaW8Config::blocks_per_sm});
    return best_of(problem, wgmma_w8, std::span<const WgmmaW8Config>(configs), traits);
}

}  // namespace

const Variant wgmma_w8{.name = "wgmma_w8",
                       .summary = "warpgroup tensor cores on codes of 8 bits, both from tensor copies",
                       .source = "quantized_expert_linear/wgmma_w8/kernel.cu",
                       .min_arch = {9, 0, true},
                       .tunables = tunables,
                       .constraints = constraints,
                       .kernels = wgmma_w8_kernels,
                       .plan = typed<wgmma_w8_plan>,
                       .fallback = typed<fallback>,
                       .access_elements = typed<wgmma_w8_access_elements>,
                       .predict_us = typed<predict>};

}  // namespace hone::quantized_expert_linear

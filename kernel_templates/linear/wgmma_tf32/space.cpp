#include <algorithm>

#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/linear/variants.h"
#include "kernel_templates/linear/wgmma_tf32/rank.h"

namespace hone::linear {
namespace {

using namespace tf32;

constexpr auto tunables = tunables_of({
    read_with<&WgmmaTf32Config::swapped>(tunable<&WgmmaTf32Config::tile_m>(
        "rows of a tile: tokens; swapped: results a token", {64, 128, 192, 256})),
    read_with<&WgmmaTf32Config::swapped>(tunable<&WgmmaTf32Config::tile_n>(
        "columns of a tile: results a token; swapped: tokens", {16, 32, 64, 96, 112, 128, 160})),
    tunable<&WgmmaTf32Config::consumers>("warpgroups that multiply", {1, 2, 3}),
    tunable<&WgmmaTf32Config::blocks_per_sm>("resident blocks a multiprocessor", {1, 2}),
    tunable<&WgmmaTf32Config::swapped>("1: the weight is the left operand, for few tokens", {0, 1}),
    tunable<&WgmmaTf32Config::cluster_k>("parts of a sum, added up within a cluster of blocks", {1, 2, 4, 8}),
    tunable<&WgmmaTf32Config::raster>("rows of tiles that are worked on together", {8, 16}),
    tunable<&WgmmaTf32Config::l2_hint>("1: weights leave level 2 first, x last", {0, 1}),
    programmatic_launch<&WgmmaTf32Config::programmatic>(),
});

constexpr Constraint constraints[] = {
    rule("pairs of tf32 numbers are for fp32: other types have variant wgmma",
         [](const LinearProblem& p) { return p.dtype == Dtype::fp32; }),
    rule("rows must start at multiples of 16 bytes: in is a multiple of 4",
         [](const LinearProblem& p) { return p.in % 4 == 0; }),
    rule("warpgroups take one or two blocks of 64 rows, with weights as left rows one of each weight",
         [](const LinearProblem& p, const WgmmaTf32Config& c) {
             const Geometry g = geometry(p, c);
             const int blocks = g.gated_rows() ? 2 : 1;
             return g.tile_m % (tf32::block_rows * g.consumers * blocks) == 0 && g.row_blocks() <= 2;
         }),
    rule("two blocks a multiprocessor have one consumer each, and three consumers have tiles of 192 rows",
         [](const WgmmaTf32Config& c) {
             return (c.blocks_per_sm == 1 || c.consumers == 1) && (c.consumers == 3) == (c.tile_m == 192);
         }),
    rule("sums, and those of one stage, must fit a thread's registers",
         [](const LinearProblem& p, const WgmmaTf32Config& c) {
             const Geometry g = geometry(p, c);
             return g.needed_registers() <= g.consumer_registers();
         }),
    rule("at least three stages must fit shared memory",
         [](const LinearProblem& p, const WgmmaTf32Config& c) { return geometry(p, c).stages() >= 3; }),
    rule("weights are the left operand for up to 256 tokens; up to 64 then share a tile, more share tiles of "
         "64",
         [](const LinearProblem& p, const WgmmaTf32Config& c) {
             return c.swapped == 0 || (p.tokens <= 256 && c.tile_n >= std::min<std::int64_t>(p.tokens, 64));
         }),
    rule("tiles with x as the left operand have 64 columns at least, and one consumer only 64 rows",
         [](const WgmmaTf32Config& c) {
             return c.swapped != 0 || (c.tile_n >= 64 && (c.consumers == 1) == (c.tile_m == 64));
         }),
    rule("more than half of a tile's tokens must exist",
         [](const LinearProblem& p, const WgmmaTf32Config& c) {
             return c.swapped != 0 ? c.tile_n == 16 || c.tile_n < 2 * p.tokens : c.tile_m < 2 * p.tokens;
         }),
    rule("tiles of less than 128 x 96 are for problems that such tiles cover in four rounds",
         [](const LinearProblem& p, const WgmmaTf32Config& c, const DeviceTraits& t) {
             const std::int64_t large = ceil_div(p.tokens, 128) * ceil_div(p.products() * p.out, 96);
             return c.swapped != 0 || c.tile_m * c.tile_n >= 128 * 96 || large <= 4 * t.sm_count;
         }),
    rule("a sum is split where multiprocessors would be idle, into parts of eight steps at least",
         [](const LinearProblem& p, const WgmmaTf32Config& c, const DeviceTraits& t) {
             return c.cluster_k == 1 || (tiles(p, geometry(p, c)) * c.cluster_k <= resident_blocks(c, t) &&
                                         8 * c.cluster_k <= steps(p));
         }),
    rule("the parts of sums that meet in a cluster must fit the rings",
         [](const LinearProblem& p, const WgmmaTf32Config& c) {
             const Geometry g = geometry(p, c);
             return c.cluster_k == 1 || g.exchange_bytes() <= g.barriers_at();
         }),
    rule("larger groups are for more than 8 rows of tiles, worked on in more than one round",
         [](const LinearProblem& p, const WgmmaTf32Config& c, const DeviceTraits& t) {
             const Geometry g = geometry(p, c);
             return c.raster == 8 ||
                    (tiles_across(p, g) > 8 && tiles_along(p, g) > 1 && tiles(p, g) > resident_blocks(c, t));
         }),
    rule("hints are for weights that are read once: up to 256 tokens",
         [](const LinearProblem& p, const WgmmaTf32Config& c) { return c.l2_hint == 0 || p.tokens <= 256; }),
};

/// The best by the cost model of a few shapes of tiles.
std::optional<WgmmaTf32Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p(problem);
    if (p.tokens <= 8) return std::nullopt;  // gemv is faster
    const auto shape = [&](std::int64_t tile_m, std::int64_t tile_n, std::int64_t consumers,
                           std::int64_t swapped) {
        return WgmmaTf32Config{.tile_m = tile_m,
                               .tile_n = tile_n,
                               .consumers = consumers,
                               .swapped = swapped,
                               .l2_hint = p.tokens <= 64 ? 1 : 0,
                               .programmatic = p.tokens <= 128 ? 1 : 0};
    };
    const std::int64_t rows = p.gated ? 256 : 128;  // for 64 results a warpgroup, where the weight is left
    const std::vector<WgmmaTf32Config> configs = combinations(
        {shape(rows, 16, 2, 1), shape(rows, 32, 2, 1), shape(rows, 64, 2, 1), shape(rows, 128, 2, 1),
         shape(128, 64, 2, 0), shape(128, 128, 2, 0), shape(192, 96, 3, 0), shape(256, 128, 2, 0)},
        tunables, {&WgmmaTf32Config::cluster_k});
    return best_of(problem, wgmma_tf32, std::span<const WgmmaTf32Config>(configs), traits);
}

}  // namespace

const Variant wgmma_tf32{
    .name = "wgmma_tf32",
    .summary = "fp32 as pairs of tf32 numbers, three products each on the warpgroup tensor cores",
    .source = "linear/wgmma_tf32/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .kernels = wgmma_tf32_kernels,
    .plan = typed<wgmma_tf32_plan>,
    .fallback = typed<fallback>,
    .access_elements = typed<wgmma_tf32_access_elements>,
    .predict_us = typed<predict>};

}  // namespace hone::linear

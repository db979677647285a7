#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/linear/mma_tiles/rank.h"
#include "kernel_templates/linear/variants.h"

namespace hone::linear {
namespace {

using namespace tiles;

constexpr auto tunables = tunables_of({
    tunable<&MmaTilesConfig::tile_m>("tokens of a block", {32, 64, 128, 256}),
    tunable<&MmaTilesConfig::tile_n>("rows of the weight of a block; gated: of both weights", {64, 128, 256}),
    tunable<&MmaTilesConfig::tile_k>("columns of a stage", {32, 64}),
    tunable<&MmaTilesConfig::warps_m>("warps that share the tokens", {1, 2, 4}),
    tunable<&MmaTilesConfig::warps_n>("warps that share the rows of the weight", {1, 2, 4}),
    tunable<&MmaTilesConfig::stages>(
        "in shared memory; 2: filled through registers, more: by asynchronous copies", {2, 3, 4, 6}),
    tunable<&MmaTilesConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2, 3}),
    tunable<&MmaTilesConfig::split>("parts of a sum, added up by a second launch", {1, 2, 3, 4, 6, 8}),
    tunable<&MmaTilesConfig::raster>("rows of tiles that are worked on together", {8, 16}),
    programmatic_launch<&MmaTilesConfig::programmatic>(),
});

/// As many blocks as shared memory and registers allow, up to three.
std::int64_t resident_blocks(Geometry g, const DeviceTraits& traits) {
    if (g.shared_bytes() > traits.max_shared_bytes_per_block) return 0;
    const std::int64_t reserved = traits.compute_major >= 8 ? 1024 : 0;  // of shared memory, a block
    std::int64_t blocks = 0;
    for (g.blocks_per_sm = 1; g.blocks_per_sm <= 3; ++g.blocks_per_sm) {
        if (g.blocks_per_sm * (g.shared_bytes() + reserved) <= traits.shared_bytes_per_sm &&
            g.blocks_per_sm * g.threads() <= traits.max_threads_per_sm &&
            g.registers() <= g.register_budget())
            blocks = g.blocks_per_sm;
    }
    return blocks;
}

constexpr Constraint constraints[] = {
    rule("tensor cores multiply fp16 and bf16, before sm_80 fp16 alone",
         [](const LinearProblem& p, const DeviceTraits& t) {
             const Dtype dtype = p.dtype;
             return dtype == Dtype::fp16 || (dtype == Dtype::bf16 && t.compute_major >= 8);
         }),
    rule("rows must start at multiples of 16 bytes: in and out are multiples of 8",
         [](const LinearProblem& p) { return p.in % 8 == 0 && p.out % 8 == 0; }),
    rule("up to 16 tokens are mma's, up to 8 gemv's where there is no mma",
         [](const LinearProblem& p, const DeviceTraits& t) { return p.tokens > (runs_on(mma, t) ? 16 : 8); }),
    rule("asynchronous copies need sm_80",
         [](const MmaTilesConfig& c, const DeviceTraits& t) { return c.stages == 2 || t.has_async_copy(); }),
    rule("programmatic dependent launch needs sm_90, and helps up to 512 tokens",
         [](const LinearProblem& p, const MmaTilesConfig& c, const DeviceTraits& t) {
             return c.programmatic == 0 || (t.has_programmatic_launch() && p.tokens <= 512);
         }),
    rule("blocks have 4 or 8 warps, each with 32 or 64 rows of both operands",
         [](const LinearProblem& p, const MmaTilesConfig& c) {
             const Geometry g = geometry(p, c);
             return (g.warps() == 4 || g.warps() == 8) && (g.warp_rows() == 32 || g.warp_rows() == 64) &&
                    (g.warp_columns() == 32 || g.warp_columns() == 64);
         }),
    rule("each operand is copied in whole rounds of 16 bytes a thread",
         [](const LinearProblem& p, const MmaTilesConfig& c) {
             const Geometry g = geometry(p, c);
             return g.tile_m % g.rows_a_round() == 0 && g.result_columns() % g.rows_a_round() == 0;
         }),
    rule("more than half of a tile's tokens must exist",
         [](const LinearProblem& p, const MmaTilesConfig& c) {
             return c.tile_m == 32 || c.tile_m < 2 * p.tokens;
         }),
    rule("tiles of less than 128 x 128 are for problems that such tiles cover in four rounds",
         [](const LinearProblem& p, const MmaTilesConfig& c, const DeviceTraits& t) {
             const std::int64_t large = ceil_div(p.tokens, 128) * ceil_div(p.products() * p.out, 128);
             return c.tile_m * c.tile_n >= 128 * 128 || large <= 4 * t.sm_count;
         }),
    rule("as many blocks are resident as shared memory and registers allow, up to three",
         [](const LinearProblem& p, const MmaTilesConfig& c, const DeviceTraits& t) {
             return c.blocks_per_sm == resident_blocks(geometry(p, c), t);
         }),
    rule("a sum is split where multiprocessors would be idle, into parts of eight steps of 16 columns at "
         "least",
         [](const LinearProblem& p, const MmaTilesConfig& c, const DeviceTraits& t) {
             return c.split == 1 ||
                    (tile_count(p, c) * c.split <= t.sm_count * c.blocks_per_sm && c.split * 128 <= p.in);
         }),
    rule("larger groups are for more than 8 rows of tiles, worked on in more than one round",
         [](const LinearProblem& p, const MmaTilesConfig& c, const DeviceTraits& t) {
             return c.raster == 8 ||
                    (rows_of_tiles(p, c) > 8 && tile_count(p, c) > t.sm_count * c.blocks_per_sm);
         }),
};

/// The best by the cost model of a few proven shapes of tiles.
std::optional<MmaTilesConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p(problem);
    const auto shape = [&](std::int64_t tile_m, std::int64_t tile_n, std::int64_t warps_m,
                           std::int64_t warps_n) {
        return MmaTilesConfig{.tile_m = tile_m,
                              .tile_n = tile_n,
                              .tile_k = 32,
                              .warps_m = warps_m,
                              .warps_n = warps_n,
                              .raster = 8,
                              .programmatic = traits.has_programmatic_launch() && p.tokens <= 128 ? 1 : 0};
    };
    std::vector<MmaTilesConfig> configs;
    for (MmaTilesConfig c :
         combinations({shape(32, 128, 1, 4), shape(64, 64, 2, 2), shape(64, 128, 2, 2), shape(128, 128, 2, 2),
                       shape(128, 256, 2, 4), shape(256, 128, 4, 2)},
                      tunables, {&MmaTilesConfig::split})) {
        for (const std::int64_t ring : {2, 3, 4}) {
            c.stages = ring;
            c.blocks_per_sm = resident_blocks(geometry(p, c), traits);
            configs.push_back(c);
        }
    }
    return best_of(problem, mma_tiles, std::span<const MmaTilesConfig>(configs), traits);
}

}  // namespace

const Variant mma_tiles{.name = "mma_tiles",
                        .summary = "warp tensor cores fed from tiles in shared memory",
                        .source = "linear/mma_tiles/kernel.cu",
                        .min_arch = {7, 5, false},
                        .tunables = tunables,
                        .constraints = constraints,
                        .kernels = mma_tiles_kernels,
                        .plan = typed<mma_tiles_plan>,
                        .fallback = typed<fallback>,
                        .access_elements = typed<mma_tiles_access_elements>,
                        .predict_us = typed<predict>};

}  // namespace hone::linear

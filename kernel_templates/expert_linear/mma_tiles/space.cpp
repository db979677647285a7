#include <algorithm>

#include "kernel_templates/expert_linear/combine_rank.h"
#include "kernel_templates/expert_linear/mma_tiles/plan.h"
#include "kernel_templates/expert_linear/variants.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/linear/mma_tiles/rank.h"

namespace hone::expert_linear {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&MmaTilesConfig::tile_m>("rows of x of a block", {32, 64, 128}),
    tunable<&MmaTilesConfig::tile_n>("rows of the weight of a block; gated: of both weights", {64, 128, 256}),
    tunable<&MmaTilesConfig::tile_k>("columns of a stage", {32, 64}),
    tunable<&MmaTilesConfig::warps_m>("warps that share the rows of x", {1, 2, 4}),
    tunable<&MmaTilesConfig::warps_n>("warps that share the rows of the weight", {1, 2, 4}),
    tunable<&MmaTilesConfig::stages>("in shared memory", {3, 4, 6}),
    tunable<&MmaTilesConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2, 3}),
    programmatic_launch<&MmaTilesConfig::programmatic>(),
});

/// As many blocks as shared memory and registers allow, up to three.
std::int64_t resident_blocks(linear::tiles::Geometry g, const DeviceTraits& traits) {
    if (g.shared_bytes() > traits.max_shared_bytes_per_block) return 0;
    std::int64_t blocks = 0;
    for (g.blocks_per_sm = 1; g.blocks_per_sm <= 3; ++g.blocks_per_sm) {
        if (g.blocks_per_sm * (g.shared_bytes() + 1024) <= traits.shared_bytes_per_sm &&
            g.blocks_per_sm * g.threads() <= traits.max_threads_per_sm &&
            g.registers() <= g.register_budget())
            blocks = g.blocks_per_sm;
    }
    return blocks;
}

constexpr Constraint constraints[] = {
    rule("tensor cores multiply fp16 and bf16",
         [](const ExpertProblem& p) { return p.dtype != Dtype::fp32; }),
    rule("rows must start at multiples of 16 bytes: in and out are multiples of 8",
         [](const ExpertProblem& p) { return p.in % 8 == 0 && p.out % 8 == 0; }),
    rule("blocks have 4 or 8 warps, each with 32 or 64 rows of both operands",
         [](const ExpertProblem& p, const MmaTilesConfig& c) {
             const linear::tiles::Geometry g = geometry(p, c);
             return (g.warps() == 4 || g.warps() == 8) && (g.warp_rows() == 32 || g.warp_rows() == 64) &&
                    (g.warp_columns() == 32 || g.warp_columns() == 64);
         }),
    rule("each operand is copied in whole rounds of 16 bytes a thread",
         [](const ExpertProblem& p, const MmaTilesConfig& c) {
             const linear::tiles::Geometry g = geometry(p, c);
             return g.tile_m % g.rows_a_round() == 0 && g.result_columns() % g.rows_a_round() == 0;
         }),
    rule("more than half of a tile's rows must exist, of more than 2 rows an expert",
         [](const ExpertProblem& p, const MmaTilesConfig& c) {
             return p.rows_an_active() > 2 && (c.tile_m == 32 || c.tile_m < 2 * p.rows_an_active());
         }),
    rule("as many blocks are resident as shared memory and registers allow, up to three",
         [](const ExpertProblem& p, const MmaTilesConfig& c, const DeviceTraits& t) {
             return c.blocks_per_sm == resident_blocks(geometry(p, c), t);
         }),
    programmatic_needs_sm_90<MmaTilesConfig>,
};

/// A dense layer with as many tiles; and the weights of all experts through memory.
double predict(const ExpertProblem& p, const MmaTilesConfig& c, const DeviceTraits& traits) {
    const linear::LinearProblem dense = p.dense(p.tiles(c.tile_m) * c.tile_m);
    const double memory_us = 3.0 + p.weight_bytes() / (0.85e-6 * traits.memory_bytes_per_s);
    return 1.0 + std::max(linear::tiles::predict(dense, dense_config(c), traits), memory_us) +
           combine_us(p, traits, c.programmatic != 0);
}

/// Proven shapes of linear's tiles.
std::optional<MmaTilesConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const ExpertProblem p(problem);
    const std::int64_t programmatic = traits.has_programmatic_launch() ? 1 : 0;
    std::vector<MmaTilesConfig> configs;
    for (MmaTilesConfig c :
         combinations({MmaTilesConfig{.tile_m = 32, .tile_n = 128, .warps_n = 4},
                       MmaTilesConfig{.tile_m = 64, .tile_n = 128, .warps_m = 2, .warps_n = 2},
                       MmaTilesConfig{.tile_m = 128, .tile_n = 128, .warps_m = 2, .warps_n = 2},
                       MmaTilesConfig{.tile_m = 128, .tile_n = 256, .warps_m = 2, .warps_n = 4}},
                      tunables, {&MmaTilesConfig::stages})) {
        c.blocks_per_sm = resident_blocks(geometry(p, c), traits);
        c.programmatic = programmatic;
        configs.push_back(c);
    }
    return best_of(problem, mma_tiles, std::span<const MmaTilesConfig>(configs), traits);
}

}  // namespace

const Variant mma_tiles{.name = "mma_tiles",
                        .summary = "warp tensor cores fed from tiles in shared memory",
                        .source = "expert_linear/mma_tiles/kernel.cu",
                        .min_arch = {8, 0, false},
                        .tunables = tunables,
                        .constraints = constraints,
                        .kernels = mma_tiles_kernels,
                        .plan = typed<mma_tiles_plan>,
                        .fallback = typed<fallback>,
                        .access_elements = typed<mma_tiles_access_elements>,
                        .predict_us = typed<predict>};

}  // namespace hone::expert_linear

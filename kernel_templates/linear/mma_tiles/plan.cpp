#include "kernel_templates/linear/mma_tiles/plan.h"

namespace hone::linear {
namespace tiles {

Geometry geometry(const LinearProblem& p, const MmaTilesConfig& c) {
    return {.tile_m = static_cast<int>(c.tile_m),
            .tile_n = static_cast<int>(c.tile_n),
            .tile_k = static_cast<int>(c.tile_k),
            .warps_m = static_cast<int>(c.warps_m),
            .warps_n = static_cast<int>(c.warps_n),
            .stages = static_cast<int>(c.stages),
            .blocks_per_sm = static_cast<int>(c.blocks_per_sm),
            .gated = p.gated};
}

std::int64_t rows_of_tiles(const LinearProblem& p, const MmaTilesConfig& c) {
    return ceil_div(p.tokens, c.tile_m);
}
std::int64_t tile_count(const LinearProblem& p, const MmaTilesConfig& c) {
    return rows_of_tiles(p, c) * ceil_div(p.out, geometry(p, c).result_columns());
}

}  // namespace tiles

namespace {

/// The second launch, which adds the parts of the sums that the first one has left in the workspace.
void add_combine(Plan& plan, const LinearProblem& p, const MmaTilesConfig& c) {
    constexpr std::int64_t threads = 256;
    constexpr std::int64_t combined = threads * 4;  // results of a block
    const std::int64_t results = p.tokens * p.out;
    plan.workspace_bytes = c.split * p.products() * results * 4;
    plan.launch_count = 2;
    plan.launches[1] = launch(mma_tiles_kernels[1], grid_of(ceil_div(results, combined)), threads);
    plan.launches[1].programmatic = plan.launches[0].programmatic;
}

}  // namespace

Plan mma_tiles_plan(const LinearProblem& p, const MmaTilesConfig& c, const DeviceTraits&) {
    const tiles::Geometry g = tiles::geometry(p, c);
    Launch product = launch(mma_tiles_kernels[0], grid_of(tiles::tile_count(p, c) * c.split), g.threads());
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    Plan plan = plan_of(product);
    if (c.split > 1) add_combine(plan, p, c);
    return normalize_first(p, plan, mma_tiles_kernels[2]);
}

}  // namespace hone::linear

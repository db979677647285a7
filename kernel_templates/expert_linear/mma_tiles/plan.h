// How expert_linear/mma_tiles/kernel.cu is launched.
#pragma once

#include "kernel_templates/expert_linear/combine.h"
#include "kernel_templates/linear/mma_tiles/plan.h"

namespace hone::expert_linear {

struct MmaTilesConfig {
    std::int64_t tile_m = 32;
    std::int64_t tile_n = 64;
    std::int64_t tile_k = 32;
    std::int64_t warps_m = 1;
    std::int64_t warps_n = 1;
    std::int64_t stages = 3;
    std::int64_t blocks_per_sm = 1;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel mma_tiles_kernels[] = {{"expert_linear_mma_tiles", call_args}, combine};

/// Linear's config of the same tiles.
[[nodiscard]] constexpr linear::MmaTilesConfig dense_config(const MmaTilesConfig& c) {
    return {.tile_m = c.tile_m,
            .tile_n = c.tile_n,
            .tile_k = c.tile_k,
            .warps_m = c.warps_m,
            .warps_n = c.warps_n,
            .stages = c.stages,
            .blocks_per_sm = c.blocks_per_sm,
            .split = 1,
            .raster = 8,
            .programmatic = c.programmatic};
}
[[nodiscard]] inline linear::tiles::Geometry geometry(const ExpertProblem& p, const MmaTilesConfig& c) {
    return linear::tiles::geometry(p.dense(1), dense_config(c));
}

[[nodiscard]] constexpr std::int64_t mma_tiles_access_elements(const ExpertProblem&, const MmaTilesConfig&) {
    return 8;
}

[[nodiscard]] Plan mma_tiles_plan(const ExpertProblem&, const MmaTilesConfig&, const DeviceTraits&);

}  // namespace hone::expert_linear

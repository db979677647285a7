// How linear/mma_tiles/kernel.cu is launched: its config, and what follows from it.
#pragma once

#include "kernel_templates/linear/mma_tiles/geometry.cuh"
#include "kernel_templates/linear/normalize.h"

namespace hone::linear {

struct MmaTilesConfig {
    std::int64_t tile_m = 32;
    std::int64_t tile_n = 64;
    std::int64_t tile_k = 32;
    std::int64_t warps_m = 1;
    std::int64_t warps_n = 1;
    std::int64_t stages = 2;
    std::int64_t blocks_per_sm = 1;
    std::int64_t split = 1;
    std::int64_t raster = 8;
    std::int64_t programmatic = 0;
};

namespace tiles {

[[nodiscard]] Geometry geometry(const LinearProblem&, const MmaTilesConfig&);
[[nodiscard]] std::int64_t rows_of_tiles(const LinearProblem&, const MmaTilesConfig&);
[[nodiscard]] std::int64_t tile_count(const LinearProblem&, const MmaTilesConfig&);

}  // namespace tiles

inline constexpr Kernel mma_tiles_kernels[] = {
    {"linear_mma_tiles", call_args}, {"linear_combine", call_args}, normalize};

[[nodiscard]] Plan mma_tiles_plan(const LinearProblem&, const MmaTilesConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t mma_tiles_access_elements(const LinearProblem&, const MmaTilesConfig&) {
    return 8;
}

}  // namespace hone::linear

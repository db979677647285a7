// Tunables of products of experts by warpgroups as linear's device code takes them (linear/wgmma/tile.cuh).
#pragma once

#include "expert_linear/expert_tiles.cuh"

namespace hone::linear::gemm {

/// What linear's product has for tunables: whole sums, tiles that warpgroups share, results through shared
/// memory.
struct Tuned : ::Tuned {
    static constexpr int64 cluster_k = 1;
    static constexpr int64 ping_pong = 0;
    static constexpr int64 tail_split = 0;
    static constexpr int64 staged = 1;
    static constexpr int64 raster = 8;
};

}  // namespace hone::linear::gemm

#include "linear/wgmma/geometry.cuh"

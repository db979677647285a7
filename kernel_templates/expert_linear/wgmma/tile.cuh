// Tunables of variant wgmma as linear's device code takes them (linear/wgmma/tile.cuh), and which rows and
// columns its tiles have.
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
    static constexpr int64 l2_hint = 0;
};

}  // namespace hone::linear::gemm

#include "linear/wgmma/geometry.cuh"

namespace hone::linear::gemm {
inline constexpr Operands operands{};
}

#include "linear/wgmma/consumer.cuh"

namespace hone::expert_linear::wgmma {

namespace gemm = linear::gemm;
using gemm::geometry;
using gemm::swapped;

/// Rows of x of a tile, and its columns of results.
inline constexpr int tile_rows = swapped ? gemm::tile_n : gemm::tile_m;
inline constexpr int tile_columns = swapped ? geometry.result_rows() : geometry.result_columns();
inline constexpr int across = (columns + tile_columns - 1) / tile_columns;
using Tiles = ExpertTiles<tile_rows, across>;

/// Stages of rows that are gathered and still under way while the next one is asked for.
inline constexpr int gathers_ahead = gemm::stages - 2 < 6 ? gemm::stages - 2 : 6;
static_assert(!gathers || gathers_ahead >= 1,
              "a stage is handed over before its place in the ring is needed again");

inline constexpr int x_at_stage = swapped ? geometry.right_at() : geometry.left_at();
inline constexpr int x_bytes = swapped ? geometry.right_bytes() : geometry.left_bytes();

}  // namespace hone::expert_linear::wgmma

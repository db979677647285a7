// Which rows and columns tiles of products of experts by warpgroups have. The .cu that includes this says
// first what a stage of the ring holds (`gemm::operands`), and of its operands (`wgmma::Sources`) where they
// come from.
#pragma once

#include "expert_linear/wgmma/tunables.cuh"
#include "linear/wgmma/consumer.cuh"

namespace hone::expert_linear::wgmma {

namespace gemm = linear::gemm;
using gemm::geometry;
using gemm::swapped;

/// Rows of x of a tile, and its columns of results.
inline constexpr int tile_rows = swapped ? gemm::tile_n : gemm::tile_m;
inline constexpr int tile_columns = swapped ? geometry.result_rows() : geometry.result_columns();
inline constexpr int across = (columns + tile_columns - 1) / tile_columns;
constexpr TilesOf most_tiles = Sources::narrow_rows != 0 ? TilesOf::whole : TilesOf::all;
using Tiles = ExpertTiles<tile_rows, across, most_tiles, Sources::narrow_rows>;
using NarrowTiles = ExpertTiles<tile_rows, across, TilesOf::narrow, Sources::narrow_rows>;

/// Rows of x that a tile multiplies: fewer in a narrow one, which has an expert's last rows where these are
/// so few (`Sources::narrow_rows`, 0: all tiles are alike).
__device__ inline bool is_narrow(const Tile& tile) {
    return Sources::narrow_rows != 0 && tile.end - tile.first <= Sources::narrow_rows;
}
__device__ inline int rows_of(const Tile& tile) { return is_narrow(tile) ? Sources::narrow_rows : tile_rows; }

/// Where the boxes of a tile begin: at its own first row of x or column of results, or so far before it that
/// the box ends with the rows that there are. The copy engine is slow where a box leaves the matrix; what
/// then stands before the tile's own is multiplied too, and not written.
__device__ inline int first_row(const Tile& tile, int places) {
    return Sources::x_by_token ? tile.first : min(tile.first, max(places - rows_of(tile), 0));
}
__device__ inline int first_column(const Tile& tile) {
    constexpr int last = columns > tile_columns ? columns - tile_columns : 0;
    const int own = tile.column * tile_columns;
    return Sources::any_column ? min(own, last) : own;
}
/// Rows of a box of sorted x: fewer than a tile's where the call has fewer places.
__device__ inline int x_box_rows(const Tile& tile, int places) { return min(rows_of(tile), places); }

/// Stages of rows that are gathered and still under way while the next one is asked for. Consumers give a
/// stage back when they have seen `Sources::stages_together` more: that many, and those under way, are in the
/// ring at once beside the one that is asked for.
inline constexpr int most_ahead = gemm::stages - 1 - Sources::stages_together;
inline constexpr int gathers_ahead = most_ahead < 6 ? most_ahead : 6;
static_assert(!Sources::x_by_token || gathers_ahead >= 1,
              "a stage is handed over before its place in the ring is needed again");

inline constexpr int x_at_stage = swapped ? geometry.right_at() : geometry.left_at();
inline constexpr int x_bytes = swapped ? geometry.right_bytes() : geometry.left_bytes();
inline constexpr int x_pitch = swapped ? gemm::operands.right_pitch : gemm::operands.left_pitch;

}  // namespace hone::expert_linear::wgmma

// The tensor-core product (gemm.cuh): its tunables, and which tiles a block works on, in which order.
#pragma once

#include "linear/epilogue.cuh"
#include "linear/gemm_geometry.cuh"
#include "linear/raster.cuh"

namespace hone::linear::gemm {

inline constexpr Geometry geometry{.tile_m = static_cast<int>(Tuned::tile_m),
                                   .tile_n = static_cast<int>(Tuned::tile_n),
                                   .consumers = static_cast<int>(Tuned::consumers),
                                   .blocks_per_sm = static_cast<int>(Tuned::blocks_per_sm),
                                   .cluster_k = static_cast<int>(Tuned::cluster_k),
                                   .gated = gated,
                                   .swapped = Tuned::swapped != 0,
                                   .ping_pong = Tuned::ping_pong != 0,
                                   .staged = Tuned::staged != 0};

inline constexpr int tile_m = geometry.tile_m;
inline constexpr int tile_n = geometry.tile_n;
inline constexpr int stages = geometry.stages();
inline constexpr int consumers = geometry.consumers;
inline constexpr int cluster_k = geometry.cluster_k;
inline constexpr int split = Tuned::split;
inline constexpr bool ping_pong = geometry.ping_pong;
inline constexpr bool swapped = geometry.swapped;
inline constexpr bool programmatic = Tuned::programmatic != 0;
inline constexpr int threads = geometry.threads();
inline constexpr int row_blocks = geometry.row_blocks();
inline constexpr int result_blocks = geometry.result_blocks();
inline constexpr int result_columns = geometry.result_columns();
inline constexpr bool gated_rows = geometry.gated_rows();
inline constexpr bool gated_columns = geometry.gated_columns();
inline constexpr bool whole_columns = out % result_columns == 0;
inline constexpr int k_tiles = (in + stage_columns - 1) / stage_columns;

static_assert(tile_m % (block_rows * geometry.sharers()) == 0, "each consumer takes blocks of 64 rows");
static_assert(tile_n % 8 == 0 && tile_n <= 256, "wgmma's n");
static_assert(geometry.weight_box() % 8 == 0 && geometry.weight_box() <= 256, "whole groups of 8 rows");
static_assert(!gated_rows || row_blocks % 2 == 0, "gate and up rows meet in one warpgroup");
static_assert(!gated_columns || tile_n % 16 == 0, "gate and up columns meet in one thread");
static_assert(!geometry.staged || swapped || result_columns % 16 == 0,
              "a staged row has 16 results at least");
static_assert(split * cluster_k == 1 || !geometry.staged, "parts of sums do not go through the staging");
static_assert(cluster_k == 1 || (split == 1 && !ping_pong), "one way to split a sum");
static_assert(cluster_k == 1 || geometry.exchange_bytes() <= stages * geometry.stage_bytes(),
              "the parts of sums fit the ring");
static_assert(k_tiles >= split * cluster_k, "every part of a sum has terms");
static_assert(!ping_pong || consumers == 2, "ping-pong is between two warpgroups");
static_assert(stages >= 2, "a ring");
static_assert(in % 8 == 0 && out % 8 == 0, "rows start at multiples of 16 bytes");

struct Tile {
    int row;     ///< first left row, in terms of results
    int column;  ///< first right row, in terms of results
    int part;    ///< of the sum
    int first_k;
    int k_count;
};

class Schedule {
  public:
    __device__ explicit Schedule(int tokens) {
        const int left_extent = swapped ? out : tokens;
        const int right_extent = swapped ? tokens : out;
        across_ = (left_extent + geometry.result_rows() - 1) / geometry.result_rows();
        along_ = (right_extent + result_columns - 1) / result_columns;
        count_ = across_ * along_;
    }
    __device__ int total() const { return count_ * split; }

    /// `rank`: of the block in its cluster.
    __device__ Tile tile(int index, int rank) const {
        Tile tile;
        tile.part = cluster_k > 1 ? rank : split == 1 ? 0 : index / count_;
        const int within = split == 1 ? index : index % count_;
        const TilePlace place = raster(within, across_, along_, Tuned::raster);
        tile.row = place.row * geometry.result_rows();
        tile.column = place.column * result_columns;
        constexpr int parts = split * cluster_k;
        tile.first_k = k_tiles * tile.part / parts;
        tile.k_count = k_tiles * (tile.part + 1) / parts - tile.first_k;
        return tile;
    }

  private:
    int across_;
    int along_;
    int count_;
};

}  // namespace hone::linear::gemm

// The fp32 tensor-core product (product.cuh): its tunables, its barriers, and which tiles a block works
// on.
#pragma once

#include "device/mbarrier.cuh"
#include "linear/epilogue.cuh"
#include "linear/raster.cuh"
#include "linear/wgmma_tf32/geometry.cuh"

namespace hone::linear::tf32 {

inline constexpr Geometry geometry{.tile_m = static_cast<int>(Tuned::tile_m),
                                   .tile_n = static_cast<int>(Tuned::tile_n),
                                   .consumers = static_cast<int>(Tuned::consumers),
                                   .blocks_per_sm = static_cast<int>(Tuned::blocks_per_sm),
                                   .cluster_k = static_cast<int>(Tuned::cluster_k),
                                   .gated = gated,
                                   .swapped = Tuned::swapped != 0};

inline constexpr int tile_m = geometry.tile_m;
inline constexpr int tile_n = geometry.tile_n;
inline constexpr int stages = geometry.stages();
inline constexpr int consumers = geometry.consumers;
inline constexpr int cluster_k = geometry.cluster_k;
inline constexpr bool swapped = geometry.swapped;
inline constexpr bool programmatic = Tuned::programmatic != 0;
inline constexpr int threads = geometry.threads();
inline constexpr int row_blocks = geometry.row_blocks();
inline constexpr int result_blocks = geometry.result_blocks();
inline constexpr int result_columns = geometry.result_columns();
inline constexpr bool gated_rows = geometry.gated_rows();
inline constexpr bool gated_columns = geometry.gated_columns();
inline constexpr int k_tiles = (in + stage_columns - 1) / stage_columns;

static_assert(sizeof(Element) == 4, "other types have variant wgmma");
static_assert(tile_m % (block_rows * consumers) == 0, "each consumer takes blocks of 64 rows");
static_assert(tile_n % 8 == 0 && tile_n <= 256, "wgmma's n");
static_assert(geometry.weight_box() % 8 == 0 && geometry.weight_box() <= 256, "whole groups of 8 rows");
static_assert(!gated_rows || row_blocks % 2 == 0, "gate and up rows meet in one warpgroup");
static_assert(!gated_columns || tile_n % 16 == 0, "gate and up columns meet in one thread");
static_assert(cluster_k == 1 || geometry.exchange_bytes() <= geometry.barriers_at(),
              "the parts of sums fit the ring");
static_assert(k_tiles >= cluster_k, "every part of a sum has terms");
static_assert(stages >= 2, "a ring");
static_assert(in % 4 == 0, "rows start at multiples of 16 bytes");

using Ring = RingPosition<stages>;

/// A stage's memory and barriers, from the aligned base of the block's memory.
__device__ inline uint32 stage_at(uint32 shared, int stage) {
    return shared + stage * geometry.stage_bytes();
}
__device__ inline uint32 full_barrier(uint32 shared, int stage) {
    return shared + geometry.barriers_at() + stage * 8;
}
__device__ inline uint32 split_barrier(uint32 shared, int stage) {
    return full_barrier(shared, stages + stage);
}
__device__ inline uint32 empty_barrier(uint32 shared, int stage) {
    return full_barrier(shared, 2 * stages + stage);
}

struct Tile {
    int row;     ///< first left row, in terms of results
    int column;  ///< first right row, in terms of results
    int first_k;
    int k_count;
};

/// The tiles of a block, or of a cluster, which shares the sums of one.
class Schedule {
  public:
    __device__ explicit Schedule(int tokens)
        : across_(tiles(swapped ? out : tokens, geometry.result_rows())),
          along_(tiles(swapped ? tokens : out, result_columns)) {}

    __device__ static int first() { return blockIdx.x / cluster_k; }
    __device__ static int step() { return gridDim.x / cluster_k; }
    __device__ int end() const { return across_ * along_; }

    /// `rank`: of the block in its cluster.
    __device__ Tile tile(int index, int rank) const {
        const TilePlace place = raster_place(index, across_, along_, Tuned::raster);
        const int first_k = k_tiles * rank / cluster_k;
        return {.row = place.row * geometry.result_rows(),
                .column = place.column * result_columns,
                .first_k = first_k,
                .k_count = k_tiles * (rank + 1) / cluster_k - first_k};
    }

  private:
    __device__ static int tiles(int extent, int of) { return (extent + of - 1) / of; }

    int across_;
    int along_;
};

}  // namespace hone::linear::tf32

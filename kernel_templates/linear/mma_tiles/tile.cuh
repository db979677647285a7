// The tiled product (product.cuh): its tunables, and which tile a block works on.
#pragma once

#include "linear/epilogue.cuh"
#include "linear/mma_tiles/geometry.cuh"
#include "linear/raster.cuh"

namespace hone::linear::tiles {

inline constexpr Geometry geometry{.tile_m = static_cast<int>(Tuned::tile_m),
                                   .tile_n = static_cast<int>(Tuned::tile_n),
                                   .tile_k = static_cast<int>(Tuned::tile_k),
                                   .warps_m = static_cast<int>(Tuned::warps_m),
                                   .warps_n = static_cast<int>(Tuned::warps_n),
                                   .stages = static_cast<int>(Tuned::stages),
                                   .blocks_per_sm = static_cast<int>(Tuned::blocks_per_sm),
                                   .gated = gated};

inline constexpr int tile_m = geometry.tile_m;
inline constexpr int tile_k = geometry.tile_k;
inline constexpr int stages = geometry.stages;
inline constexpr int threads = geometry.threads();
inline constexpr int row_blocks = geometry.row_blocks();
inline constexpr int column_blocks = geometry.column_blocks();
inline constexpr int result_columns = geometry.result_columns();
inline constexpr int split = Tuned::split;
inline constexpr bool programmatic = Tuned::programmatic != 0;
inline constexpr bool whole_columns = out % result_columns == 0;
inline constexpr int k_tiles = (in + tile_k - 1) / tile_k;

static_assert(tile_k == 32 || tile_k == 64, "rows of 64 or 128 bytes");
static_assert(geometry.warp_rows() % 16 == 0 && geometry.warp_columns() % (16 * products) == 0,
              "warps multiply blocks of 16 rows with pairs of 8 columns");
static_assert(geometry.rows_a_round() % 8 == 0, "a thread's chunks have one place in their rows");
static_assert(tile_m % geometry.rows_a_round() == 0 && result_columns % geometry.rows_a_round() == 0,
              "each operand is copied in whole rounds");
static_assert(k_tiles >= split, "every part of a sum has terms");
static_assert(in % 8 == 0 && out % 8 == 0, "rows start at multiples of 16 bytes");

struct Tile {
    int token;
    int column;  ///< the result's column
    int part;    ///< which part of the sum
    int first_k;
    int k_count;
};

__device__ inline Tile tile_of_block(int tokens) {
    const int rows = (tokens + tile_m - 1) / tile_m;
    constexpr int columns = (out + result_columns - 1) / result_columns;
    const int part = split == 1 ? 0 : blockIdx.x / (rows * columns);
    const int index = split == 1 ? blockIdx.x : blockIdx.x % (rows * columns);
    const TilePlace place = raster_place(index, rows, columns, Tuned::raster);
    const int first_k = k_tiles * part / split;
    return {.token = place.row * tile_m,
            .column = place.column * result_columns,
            .part = part,
            .first_k = first_k,
            .k_count = k_tiles * (part + 1) / split - first_k};
}

}  // namespace hone::linear::tiles

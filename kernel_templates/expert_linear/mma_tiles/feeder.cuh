// How the ring of variant mma_tiles (kernel.cu) is filled: as linear's by asynchronous copies
// (linear/mma_tiles/feeder.cuh has the three calls and their barriers), of rows of x that may stand anywhere
// and of one expert's weights.
#pragma once

#include "expert_linear/expert_tiles.cuh"
#include "expert_linear/weights.cuh"

namespace hone::linear {

/// Linear's device code has one for its calls; nobody makes one here.
struct Arguments {
    const Element* x;
    const Element* norm_weight;
    const Element* weight;
    const Element* up;
    const Element* bias;
    const Element* residual;
    Element* out;
    float* workspace;
    int64 tokens, x_stride, weight_stride, up_stride, residual_stride, out_stride;
    float epsilon;
};

namespace tiles {

/// What linear's product has for tunables: whole sums.
struct Tuned : ::Tuned {
    static constexpr int64 split = 1;
    static constexpr int64 raster = 8;
};

}  // namespace tiles
}  // namespace hone::linear

#include "linear/mma_tiles/product.cuh"

namespace hone::expert_linear::mma_tiles {

namespace tiles = linear::tiles;
using tiles::geometry;

inline constexpr int across = (columns + tiles::result_columns - 1) / tiles::result_columns;
using Tiles = ExpertTiles<tiles::tile_m, across>;

/// A group of copies a stage. While stage k is multiplied, stage k + stages - 1 is asked for: its slot was
/// stage k - 1's, which nobody reads since the turn to k. A turn to k + 1 leaves stages - 2 groups under way.
class Feeder {
  public:
    __device__ Feeder(uint32 ring, const Tensors& tensors, const Tile& tile)
        : x_(tensors.x), x_stride_(tensors.x_stride) {
        const int row = static_cast<int>(threadIdx.x) / geometry.chunks();
        const int chunk = static_cast<int>(threadIdx.x) % geometry.chunks();
        column_ = chunk * 8;
        to_ = ring + swizzled_offset<tiles::tile_k>(row, chunk);
#pragma unroll
        for (int i = 0; i < tiles::x_rounds; ++i)
            x_rows_[i] = tensors.x_row(min(tile.first + i * tiles::rows_a_round + row, tile.end - 1));
        const int first = tile.column * tiles::result_columns + row;
        weight_rows_ = columns - first;
#pragma unroll
        for (int product = 0; product < products; ++product)
            weight_[product] =
                expert_linear::weight_of(tensors, product, tile.expert) + static_cast<int64>(first) * in;
    }

    __device__ void start() {
#pragma unroll
        for (int stage = 0; stage < ahead; ++stage) {
            copy(0, tiles::rounds, stage, stage * tiles::stage_bytes);
            commit_copies();
        }
        advance(ahead);
        wait_for_copies<tiles::stages - 2>();
        __syncthreads();
    }
    __device__ void feed(int step) {
        copy(tiles::rounds * step / tiles::steps, tiles::rounds * (step + 1) / tiles::steps, 0, slot_);
    }
    __device__ void turn() {
        commit_copies();
        advance(1);
        slot_ = tiles::next_slot(slot_);
        wait_for_copies<tiles::stages - 2>();
        __syncthreads();
    }

  private:
    static constexpr int ahead = tiles::stages - 1;

    __device__ void advance(int count) {
        left_ -= count;
        column_ += count * tiles::tile_k;
    }
    /// Rounds `first` to `end` of the stage `stage` further on. Rows of the weight that the expert does not
    /// have are left out: their products are not stored. Columns past the end of a row become zeros.
    __device__ void copy(int first, int end, int stage, uint32 slot) const {
        const int column = column_ + stage * tiles::tile_k;
        const bool exists = column < in;
        if (left_ <= stage) return;
#pragma unroll
        for (int round = 0; round < tiles::rounds; ++round) {
            if (round < first || round >= end) continue;
            const uint32 to = to_ + slot + round * tiles::rows_a_round * geometry.row_bytes();
            const int i = round < tiles::x_rounds ? 0 : (round - tiles::x_rounds) % geometry.weight_rounds();
            if (i * tiles::rows_a_round >= weight_rows_ && round >= tiles::x_rounds) continue;
            const Element* const from =
                round < tiles::x_rounds ? x_ + x_rows_[round < tiles::x_rounds ? round : 0] * x_stride_
                                        : weight_of(round) + static_cast<int64>(i) * tiles::rows_a_round * in;
            copy_chunk_async_or_zero(to, from + (exists ? column : 0), exists);
        }
    }
    __device__ const Element* weight_of(int round) const {
        return weight_[(round - tiles::x_rounds) / geometry.weight_rounds() % products];
    }

    const Element* x_;
    int64 x_stride_;
    int x_rows_[tiles::x_rounds];
    const Element* weight_[products];
    int weight_rows_;  ///< that exist from this thread's first row on
    int column_;
    int left_ = tiles::k_tiles;  ///< stages that have not been asked for
    uint32 to_;
    uint32 slot_ = ahead * tiles::stage_bytes;
};

}  // namespace hone::expert_linear::mma_tiles

// Scales of variant wgmma_w8 (kernel.cu), as the threads of a warpgroup need them for their accumulators:
// of two rows of each block of 64 in registers; of the tile's columns spread over the lanes of each warp, to
// be had by shuffles.
#pragma once

#include "linear/wgmma/tile.cuh"
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear::w8 {

namespace gemm = linear::gemm;

/// Where scales stand. Rows and columns outside of the tensors get the last one's.
struct Scales {
    const float* x;
    const float* weight;
    const float* up;
    int64 x_stride;
    int64 weight_stride;  ///< 0: one for all rows; not of blocks
    int tokens;

    /// Scales of row `row` of the left tile, and of row `row` of the right one, in step k.
    __device__ float left(const gemm::Work& tile, int row, int k) const {
        return gemm::swapped ? of_weight<gemm::tile_m>(tile.row, row, k) : of_token(tile.row + row, k);
    }
    __device__ float right(const gemm::Work& tile, int row, int k) const {
        return gemm::swapped ? of_token(tile.column + row, k) : of_weight<gemm::tile_n>(tile.column, row, k);
    }

  private:
    __device__ float of_token(int token, int k) const {
        return x[min(token, tokens - 1) * x_stride + (has_blocks ? k : 0)];
    }
    /// The scale of a row of a tile of `rows` rows, where gated those of the gate and of up.
    template <int rows>
    __device__ float of_weight(int first, int row, int k) const {
        const bool is_up = gated && row >= rows / 2;
        const int64 at = min(first + (is_up ? row - rows / 2 : row), out - 1);
        return (is_up ? up : weight)[has_blocks ? at / scaled_block * groups + k : at * weight_stride];
    }
};

/// A thread's scales of a tile, with blocks of one step of it.
class TileScales {
  public:
    __device__ void load(const Scales& scales, const gemm::Work& tile, int warpgroup, int k) {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int b = 0; b < gemm::row_blocks; ++b) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = threadIdx.x / 32 % 4 * 16 + lane / 4 + 8 * half;
                left_[b][half] = scales.left(tile, gemm::block_row(warpgroup, b) + row, k);
            }
        }
#pragma unroll
        for (int i = 0; i < held; ++i) right_[i] = scales.right(tile, column_of(i, lane), k);
    }

    /// Calls visit(i, scale) for the accumulators i of the block of rows b, whose scale is `scale`.
    template <class Visit>
    __device__ void for_each(int b, Visit visit) const {
#pragma unroll
        for (int j = 0; j < gemm::tile_n / 8; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const float scale = right(j, e);
#pragma unroll
                for (int half = 0; half < 2; ++half) visit(4 * j + 2 * half + e, left_[b][half] * scale);
            }
        }
    }

  private:
    /// With blocks the columns of a straight tile have one scale, where gated one each.
    static constexpr bool is_uniform = has_blocks && !gemm::swapped;
    static constexpr int held = is_uniform ? products : (gemm::tile_n + 31) / 32;

    __device__ static int column_of(int i, int lane) {
        return is_uniform ? i * (gemm::tile_n / products) : min(32 * i + lane, gemm::tile_n - 1);
    }
    /// The scale of column 8 * j + 2 * (lane % 4) + e.
    __device__ float right(int j, int e) const {
        if constexpr (is_uniform) return right_[j * 8 / (gemm::tile_n / products)];
        return __shfl_sync(0xffffffffu, right_[j / 4], j % 4 * 8 + threadIdx.x % 4 * 2 + e);
    }

    float left_[gemm::row_blocks][2];
    float right_[held];
};

}  // namespace hone::quantized_linear::w8

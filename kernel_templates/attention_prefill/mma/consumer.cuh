// The warps of variant mma (kernel.cu): each multiplies 16 or 32 queries with the keys and values in the
// ring.
#pragma once

#include "attention_prefill/mma/softmax.cuh"
#include "device/transpose.cuh"

namespace hone::attention_prefill::warp_mma {

inline constexpr int dim_steps = geometry.dim_steps();
inline constexpr int dim_blocks = geometry.chunks();
inline constexpr bool query_in_registers = geometry.query_in_registers;

/// A thread's sums of weights times values.
using Sums = MmaSums[row_blocks][dim_blocks];
/// 16 columns of a warp's queries.
using QueryWords = uint32[row_blocks][4];

class Consumer {
  public:
    /// `base`: of shared memory.
    __device__ Consumer(const Call& call, const Tile& tile, uint32 base)
        : softmax_(call, tile.head),
          tile_(tile),
          row_(tile.row + static_cast<int>(threadIdx.x) / 32 * geometry.warp_rows) {
        const int lane = threadIdx.x % 32;
        query_ = own_rows(base) + lane % 16 * pitch + lane / 16 * 16;
        key_ = (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 16;
        value_ = lane % 16 * pitch + lane / 16 * 16;
    }

    __device__ void take_queries() {
#pragma unroll
        for (int step = 0; step < dim_steps; ++step) load_queries(held_[step], step);
    }

    /// Whether one of the warp's queries sees one of the keys from `column` on.
    __device__ bool sees(int column) const {
        return column < tile_.sequence.end(row_ + geometry.warp_rows - 1) &&
               column + tile_n > tile_.sequence.begin(row_);
    }

    /// The weights of the keys from `column` on, which stand in `stage`.
    __device__ void attend(uint32 stage, int column) {
        multiply_keys(stage);
        if constexpr (has_softcap) softmax_.cap(scores_);
        const bool all_see = column + tile_n <= tile_.sequence.end(row_) &&
                             column >= tile_.sequence.begin(row_ + geometry.warp_rows - 1);
        if (!all_see) Softmax::mask(scores_, tile_.sequence, lane_row(), column);
        RowValues factors;
        if (softmax_.next(scores_, factors)) scale_sums(factors);
    }

    /// Adds the weights' products with the values in `stage`.
    __device__ void multiply_values(uint32 stage) {
        constexpr int groups = (dim_blocks + 1) / 2;
        constexpr int count = tile_n / 16 * groups;
        uint32 values[2][4];
        uint32 weights[row_blocks][4];
        load_matrices_transposed(values[0], stage + value_);
#pragma unroll
        for (int i = 0; i < count; ++i) {
            const int next = i + 1;
            if (next < count)
                load_matrices_transposed(values[next % 2],
                                         stage + value_ + next / groups * 16 * pitch + next % groups * 32);
            const int step = i / groups;
            const int column = i % groups * 2;
            const uint32(&words)[4] = values[i % 2];
#pragma unroll
            for (int b = 0; b < row_blocks; ++b) {
                if (column == 0) round_weights(weights[b], scores_[b][2 * step], scores_[b][2 * step + 1]);
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    if (column + half < dim_blocks)
                        multiply_16<Element>(sums_[b][column + half], weights[b][0], weights[b][1],
                                             weights[b][2], weights[b][3], words[2 * half],
                                             words[2 * half + 1]);
                }
            }
        }
    }

    /// Nobody reads the warp's rows of shared memory any more, which starts at `base`.
    __device__ void store(const Call& call, uint32 base) {
        RowValues inverse, lse;
        softmax_.finish(call, tile_.head, inverse, lse);
        if constexpr (fp8_cache) {
#pragma unroll
            for (int i = 0; i < 2 * row_blocks; ++i) inverse[i / 2][i % 2] *= call.value_scale(tile_.head);
        }
        scale_sums(inverse);
        stage_results(own_rows(base));
        __syncwarp();
        store_rows(call, own_rows(base));
        if constexpr (has_lse) store_lse(call, lse);
    }

  private:
    /// The warp's rows of the queries, later of the results.
    __device__ static uint32 own_rows(uint32 base) {
        return base + threadIdx.x / 32 * geometry.warp_rows * pitch;
    }
    __device__ int lane_row() const { return row_ + threadIdx.x % 32 / 4; }

    __device__ void load_queries(QueryWords& words, int step) const {
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) load_matrices(words[b], query_ + b * 16 * pitch + step * 32);
    }
    __device__ void multiply_keys(uint32 stage) {
        constexpr int groups = key_blocks / 2;
        constexpr int count = dim_steps * groups;
        uint32 keys[2][4];
        QueryWords queries[2];
        if constexpr (!query_in_registers) load_queries(queries[0], 0);
        load_matrices(keys[0], stage + key_);
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int j = 0; j < key_blocks; ++j) scores_[b][j] = {};
        }
#pragma unroll
        for (int i = 0; i < count; ++i) {
            const int next = i + 1;
            const int step = i / groups;
            if (next < count)
                load_matrices(keys[next % 2], stage + key_ + next % groups * 16 * pitch + next / groups * 32);
            if (!query_in_registers && i % groups == 0 && step + 1 < dim_steps)
                load_queries(queries[(step + 1) % 2], step + 1);
            const QueryWords& left = query_in_registers ? held_[step % held_steps] : queries[step % 2];
#pragma unroll
            for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    multiply_16<Element>(scores_[b][i % groups * 2 + half], left[b][0], left[b][1],
                                         left[b][2], left[b][3], keys[i % 2][2 * half],
                                         keys[i % 2][2 * half + 1]);
            }
        }
    }
    __device__ static void round_weights(uint32 (&to)[4], const MmaSums& low, const MmaSums& high) {
        to[0] = pack_pair(Element{}, low.values[0], low.values[1]);
        to[1] = pack_pair(Element{}, low.values[2], low.values[3]);
        to[2] = pack_pair(Element{}, high.values[0], high.values[1]);
        to[3] = pack_pair(Element{}, high.values[2], high.values[3]);
    }
    __device__ void scale_sums(const RowValues& factors) {
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int j = 0; j < dim_blocks; ++j) {
#pragma unroll
                for (int i = 0; i < 4; ++i) sums_[b][j].values[i] *= factors[b][i / 2];
            }
        }
    }

    __device__ void stage_results(uint32 rows) const {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const uint32 to = rows + (16 * b + 8 * half + lane / 4) * pitch + lane % 4 * 4;
#pragma unroll
                for (int j = 0; j < dim_blocks; ++j) {
                    const float(&sum)[4] = sums_[b][j].values;
                    store_shared(to + j * 16, pack_pair(Element{}, sum[2 * half], sum[2 * half + 1]));
                }
            }
        }
    }
    __device__ void store_rows(const Call& call, uint32 rows) const {
        const int lane = threadIdx.x % 32;
        Element* out = call.result(tile_.sequence, tile_.head, row_);
#pragma unroll 4
        for (int i = lane; i < geometry.warp_rows * dim_blocks; i += 32) {
            const int row = i / dim_blocks;
            const int chunk = i % dim_blocks;
            if (row_ + row < tile_.sequence.q_len)
                store_word<StoreHint::normal, 16>(out + row * call.out_token_stride + chunk * 8,
                                                  load_shared_16(rows + row * pitch + chunk * 16));
        }
    }
    __device__ void store_lse(const Call& call, const RowValues& lse) const {
        if (threadIdx.x % 4 != 0) return;
        float* to = call.lse_of(tile_.sequence, tile_.head, 0);
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = lane_row() + 16 * b + 8 * half;
                if (row < tile_.sequence.q_len) to[row] = lse[b][half];
            }
        }
    }

    static constexpr int held_steps = query_in_registers ? dim_steps : 1;

    Softmax softmax_;
    const Tile& tile_;
    int row_;  ///< the warp's first query
    // Addresses that a lane names for the first 16 x 16 of an operand; of a stage: behind its start.
    uint32 query_;
    uint32 key_;
    uint32 value_;
    Scores scores_;
    Sums sums_ = {};
    QueryWords held_[held_steps];
};

}  // namespace hone::attention_prefill::warp_mma

// Softmax of rows that arrive in blocks of columns, for variant wgmma_tf32 (kernel.cu): a thread holds
// tile_n / 4 scores of each of two rows, in the accumulators' map (device/wgmma.cuh); the four lanes of a
// quad share these rows. Weights are exp2(scale * score - reference), the reference being the greatest
// exponent of the row so far, rounded once: what was summed with an earlier one changes by an exact power of
// the difference.
#pragma once

#include "attention_prefill/sink.cuh"
#include "attention_prefill/wgmma_tf32/tile.cuh"

namespace hone::attention_prefill::tf32 {

using Scores = float[tile_n / 2];

__device__ inline float exp2_approximate(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

/// The columns of a block that a row sees, as seen by one thread: its element 4 * j + 2 * half + e is column
/// 8 * j + e of [begin[half], end[half]).
struct Visible {
    int begin[2];
    int end[2];

    /// `row`: the lane's first query, `column`: the block's first key.
    __device__ Visible(const Tile& tile, int row, int column) {
        const int lane_column = column + threadIdx.x % 4 * 2;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            end[half] = tile.sequence.end(row + 8 * half) - lane_column;
            begin[half] = tile.sequence.begin(row + 8 * half) - lane_column;
        }
    }

    __device__ void mask(Scores& scores) const {
#pragma unroll
        for (int i = 0; i < tile_n / 2; ++i) {
            const int column = i / 4 * 8 + i % 2;
            const int half = i / 2 % 2;
            if (column >= end[half] || (windowed && column < begin[half])) scores[i] = minus_infinity();
        }
    }
};

class Softmax {
  public:
    /// Exponents are scale_log2 * score.
    __device__ explicit Softmax(float scale_log2) : scale_(scale_log2) {}

    /// Scores become weights; `factors`: of the rows' sums so far.
    __device__ void next(Scores& scores, float (&factors)[2]) {
        float offsets[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float top = fmaxf(reference_[half], greatest(scores, half) * scale_);
            // A row that has seen nothing: differences from it must not be NaN.
            offsets[half] = top == minus_infinity() ? 0.0f : -top;
            factors[half] = exp2_approximate(reference_[half] + offsets[half]);
            reference_[half] = top;
        }
        float sums[2] = {};
#pragma unroll
        for (int i = 0; i < tile_n / 2; ++i) {
            const int half = i / 2 % 2;
            scores[i] = exp2_approximate(fmaf(scores[i], scale_, offsets[half]));
            sums[half] += scores[i];
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) sum_[half] = fmaf(sum_[half], factors[half], sums[half]);
    }

    /// 1 / sum of a row, 0 where nothing is visible, and the logarithm of the sum of its exponentials.
    __device__ void finish(const Call& call, int head, float (&inverse)[2], float (&lse)[2]) const {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float sum = quad_sum(sum_[half]);
            float top = reference_[half];
            float factor = 1.0f;
            if constexpr (has_sinks) factor = include_sink(call, head, top, sum);
            const bool empty = top == minus_infinity();
            inverse[half] = empty ? 0.0f : factor / sum;
            constexpr float log_2 = 0.693147180559945f;
            lse[half] = empty ? minus_infinity() : top * log_2 + logf(sum);
        }
    }

  private:
    __device__ static float quad_sum(float x) {
        x += __shfl_xor_sync(0xffffffffu, x, 1);
        return x + __shfl_xor_sync(0xffffffffu, x, 2);
    }
    __device__ static float greatest(const Scores& scores, int half) {
        float top = scores[2 * half];
#pragma unroll
        for (int i = 1; i < tile_n / 4; ++i) top = fmaxf(top, scores[i / 2 * 4 + 2 * half + i % 2]);
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        return fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
    }

    float scale_;
    float reference_[2] = {minus_infinity(), minus_infinity()};
    float sum_[2] = {};
};

}  // namespace hone::attention_prefill::tf32

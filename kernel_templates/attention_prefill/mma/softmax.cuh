// Softmax of rows that arrive in blocks of columns, for variant mma (kernel.cu), in mma.sync's map
// (device/mma.cuh): of each 16 rows a thread holds two, g and g + 8, and of these two neighbours in every 8
// columns; the four lanes of a quad share them.
//
// A weight is 2^(scale * (score - reference)), one multiply-add and one exponential. The reference is the
// greatest score so far, or an earlier one that the greatest does not exceed by more than `slack` in the
// exponent: the result is the same, and what was added up before need not be rescaled.
#pragma once

#include "attention_prefill/mma/feeder.cuh"
#include "attention_prefill/sink.cuh"
#include "device/math.cuh"
#include "device/mma.cuh"

namespace hone::attention_prefill::warp_mma {

inline constexpr int row_blocks = geometry.row_blocks();
inline constexpr int key_blocks = geometry.key_blocks();
inline constexpr float slack = 8.0f;

using Scores = MmaSums[row_blocks][key_blocks];
/// A number for each of a thread's rows.
using RowValues = float[row_blocks][2];

class Softmax {
  public:
    __device__ Softmax(const Call& call, int head)
        : scale_((has_softcap ? call.softcap : call.score_scale(head)) * 1.4426950408889634f),
          cap_scale_(has_softcap ? 2.0f * 1.4426950408889634f * call.score_scale(head) / call.softcap
                                 : 0.0f) {
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                reference_[b][half] = minus_infinity();
                sum_[b][half] = 0.0f;
            }
        }
    }

    /// Scores become tanh(scale * score / cap), which is 1 - 2 / (1 + e^(2 x)); the factor `cap` is in
    /// scale_.
    __device__ void cap(Scores& scores) const {
        for_scores(scores, [&](int, int, int, float& score) {
            score = fmaf(-2.0f, fast_reciprocal(1.0f + fast_exp2(score * cap_scale_)), 1.0f);
        });
    }

    /// Scores of keys that their query does not see become minus infinity. `row`: of the lane's first query,
    /// `column`: the block's first key.
    __device__ static void mask(Scores& scores, const Sequence& sequence, int row, int column) {
        const int lane_column = column + threadIdx.x % 4 * 2;
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int query = row + 16 * b + 8 * half;
                const int end = sequence.end(query) - lane_column;
                const int begin = sequence.begin(query) - lane_column;
#pragma unroll
                for (int j = 0; j < key_blocks; ++j) {
#pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        const bool seen = 8 * j + e < end && (!windowed || 8 * j + e >= begin);
                        if (!seen) scores[b][j].values[2 * half + e] = minus_infinity();
                    }
                }
            }
        }
    }

    /// Scores become weights. True when what was added up so far has to be multiplied by `factors`.
    __device__ bool next(Scores& scores, RowValues& factors) {
        RowValues top;
        bool grew = false;
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                top[b][half] = fmaxf(reference_[b][half], greatest(scores[b], half));
                grew |= (top[b][half] - reference_[b][half]) * scale_ > slack;
            }
        }
        grew = __any_sync(0xffffffffu, grew);
        if (grew) {
#pragma unroll
            for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    factors[b][half] = fast_exp2((reference_[b][half] - finite(top[b][half])) * scale_);
                    reference_[b][half] = top[b][half];
                    sum_[b][half] *= factors[b][half];
                }
            }
        }
        exponentiate(scores);
        return grew;
    }

    /// 1 / sum of each row, 0 where nothing is visible, and the logarithm of the sum of its exponentials.
    __device__ void finish(const Call& call, int head, RowValues& inverse, RowValues& lse) const {
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float sum = sum_[b][half];
                sum += __shfl_xor_sync(0xffffffffu, sum, 1);
                sum += __shfl_xor_sync(0xffffffffu, sum, 2);
                const float reference = reference_[b][half];
                if constexpr (has_sinks) {
                    float top = reference * scale_;
                    const float factor = include_sink(call, head, top, sum);
                    const bool empty = top == minus_infinity();
                    inverse[b][half] = empty ? 0.0f : factor * fast_reciprocal(sum);
                    lse[b][half] = empty ? top : (top + fast_log2(sum)) * 0.6931471805599453f;
                    continue;
                }
                const bool empty = reference == minus_infinity();
                inverse[b][half] = empty ? 0.0f : fast_reciprocal(sum);
                lse[b][half] =
                    empty ? reference : (reference * scale_ + fast_log2(sum)) * 0.6931471805599453f;
            }
        }
    }

  private:
    /// Calls visit(b, j, half, score) for every score that a thread holds.
    template <class Visit>
    __device__ static void for_scores(Scores& scores, Visit visit) {
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int j = 0; j < key_blocks; ++j) {
#pragma unroll
                for (int i = 0; i < 4; ++i) visit(b, j, i / 2, scores[b][j].values[i]);
            }
        }
    }
    /// A row that has seen nothing: differences from it must not be NaN.
    __device__ static float finite(float x) { return x == minus_infinity() ? 0.0f : x; }
    __device__ static float greatest(const MmaSums (&scores)[key_blocks], int half) {
        float top = scores[0].values[2 * half];
#pragma unroll
        for (int j = 0; j < key_blocks; ++j)
            top = fmaxf(top, fmaxf(scores[j].values[2 * half], scores[j].values[2 * half + 1]));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        return fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
    }
    __device__ void exponentiate(Scores& scores) {
        RowValues offset;
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int half = 0; half < 2; ++half) offset[b][half] = -finite(reference_[b][half]) * scale_;
        }
        for_scores(scores, [&](int b, int, int half, float& score) {
            score = fast_exp2(fmaf(score, scale_, offset[b][half]));
            sum_[b][half] += score;
        });
    }

    float scale_;
    float cap_scale_;
    RowValues reference_;
    RowValues sum_;
};

}  // namespace hone::attention_prefill::warp_mma

// Softmax of rows that arrive in blocks of columns, for variant wgmma (kernel.cu): a thread holds tile_n / 4
// scores of each of two rows, in the accumulators' map (device/wgmma.cuh); the four lanes of a quad share
// these rows.
//
// p = exp2(scale_log2 * (score - reference)): one fused multiply-add and one exponential. `reference` is the
// greatest score so far, or any earlier one that the greatest does not exceed by more than `slack` in the
// exponent: the result is the same, and the sums of products hardly ever have to be rescaled.
//
// Late maxima: a block's p are made with the reference that its row has, and their sums, which are needed
// anyway, tell whether some are too large. The reference rises only then, by a power of two that p are
// divided by; where they have overflowed, nothing is known of them, and the scores are needed again.
#pragma once

#include "attention_prefill/sink.cuh"
#include "attention_prefill/wgmma/schedule.cuh"

namespace hone::attention_prefill::warpgroup {

inline constexpr float slack = 8.0f;
/// A thread's sum of a block's p with which all of them are finite as operands, and what p may be so that a
/// power of two brings them down to 1.
inline constexpr float largest_sum = 0x1p14f;
inline constexpr float largest_p = 0x1p120f;
inline constexpr float log2_e = 1.4426950408889634f;

using Scores = float[tile_n / 2];

__device__ inline float exp2_approximate(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
__device__ inline float log2_approximate(float x) {
    float result;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

/// The columns of a block that a row sees, as seen by one thread: its element 4 * j + 2 * half + e is column
/// 8 * j + e of [begin[half], end[half]).
struct Visible {
    int begin[2];
    int end[2];

    /// `row`: the lane's first row of the sequence, `column`: first key of the block.
    __device__ Visible(const Sequence& sequence, int row, int column) {
        const int lane_column = column + threadIdx.x % 4 * 2;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            end[half] = sequence.end(row + 8 * half) - lane_column;
            begin[half] = sequence.begin(row + 8 * half) - lane_column;
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

/// Scores become tanh(scale * score / softcap), which is 1 - 2 / (1 + e^(2 x)); the factor `softcap` is in
/// scale_log2. `factor` is 2 * log2(e) * scale / softcap.
__device__ inline void cap_scores(Scores& scores, float factor) {
#pragma unroll
    for (int i = 0; i < tile_n / 2; ++i)
        scores[i] = fmaf(-2.0f, __fdividef(1.0f, 1.0f + exp2_approximate(scores[i] * factor)), 1.0f);
}

class Softmax {
  public:
    __device__ explicit Softmax(const Call& call)
        : scale_((has_softcap ? call.softcap : call.scale) * log2_e) {}

    /// Codes have a scale for each head, and converted queries one for each warp and tile.
    __device__ void start(const Call& call, int head, float query_scale) {
        if constexpr (fp8_cache && !has_softcap) scale_ = call.score_scale(head) * query_scale * log2_e;
    }

    /// The row's first block: scores become p.
    __device__ void begin(Scores& scores) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            reference_[half] = greatest(scores, half);
            sum_[half] = 0.0f;
        }
        exponentiate(scores);
        if constexpr (late_maxima) settle();
    }

    /// A further block. True when the sums of products so far have to be multiplied by `factors`.
    __device__ bool next(Scores& scores, float (&factors)[2]) {
        const bool grew = raise(scores, factors);
        exponentiate(scores);
        return grew;
    }

    /// Late maxima: after references have changed, what further blocks need of them.
    __device__ void settle() {
        known_ = __all_sync(0xffffffffu, fminf(reference_[0], reference_[1]) > minus_infinity());
        offset_[0] = -finite(reference_[0]) * scale_;
        offset_[1] = -finite(reference_[1]) * scale_;
    }
    /// Whether all rows of the warp have a reference.
    __device__ bool known() const { return known_; }

    /// Scores [begin, end) of a thread's become p by the references that there are, counted in `own`.
    template <int begin, int end>
    __device__ void weigh(Scores& scores, float (&own)[2]) const {
#pragma unroll
        for (int i = begin; i < end; ++i) {
            const int half = i / 2 % 2;
            scores[i] = exp2_approximate(fmaf(scores[i], scale_, offset_[half]));
            own[half] += scores[i];
        }
    }
    /// Further exponentials stay behind whatever calls this: for all that the compiler (NVRTC 13.0) knows, it
    /// changes them. Exclusive or with a zero that it cannot know to be one.
    __device__ void hold(const Call& call) {
        const uint32 zero = static_cast<uint32>(call.q_len >> 31);
#pragma unroll
        for (float& offset : offset_) offset = __uint_as_float(__float_as_uint(offset) ^ zero);
    }
    /// Whether no p of the warp's is too large, or NaN.
    __device__ static bool fit(const float (&own)[2]) {
        return __all_sync(0xffffffffu, own[0] + own[1] <= largest_sum);
    }
    __device__ void count(const float (&own)[2]) {
        sum_[0] += own[0];
        sum_[1] += own[1];
    }
    __device__ void count(const Scores& p) {
#pragma unroll
        for (int i = 0; i < tile_n / 2; ++i) sum_[i / 2 % 2] += p[i];
    }
    /// References rise behind p that are too large, which are counted then. False where p are so large that
    /// only scores help.
    __device__ bool lower(Scores& p, const float (&own)[2], float (&factors)[2]) {
        const float top[2] = {greatest(p, 0), greatest(p, 1)};
        if (__any_sync(0xffffffffu, fmaxf(top[0], top[1]) > largest_p)) return false;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            constexpr int bias = 127;
            const int up = max(0, static_cast<int>(__float_as_uint(top[half]) >> 23) - bias);
            factors[half] = __uint_as_float(static_cast<uint32>(bias - up) << 23);
            reference_[half] += __fdividef(static_cast<float>(up), scale_);
            sum_[half] = (sum_[half] + own[half]) * factors[half];
        }
#pragma unroll
        for (int i = 0; i < tile_n / 2; ++i) p[i] *= factors[i / 2 % 2];
        return true;
    }

    /// References rise to what scores need. True when the sums of products have to be multiplied by
    /// `factors`.
    __device__ bool raise(const Scores& scores, float (&factors)[2]) {
        float top[2];
        bool grew = false;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            top[half] = fmaxf(reference_[half], greatest(scores, half));
            grew |= (top[half] - reference_[half]) * scale_ > slack;
        }
        grew = __any_sync(0xffffffffu, grew);
        if (grew) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                factors[half] = exp2_approximate((reference_[half] - finite(top[half])) * scale_);
                reference_[half] = top[half];
                sum_[half] *= factors[half];
            }
        }
        return grew;
    }
    __device__ void exponentiate(Scores& scores) { exponentiate(scores, sum_); }

    /// 1 / sum of a row, 0 where nothing is visible, and the logarithm of the sum of its exponentials.
    __device__ void finish(const Call& call, int head, float (&inverse)[2], float (&lse)[2]) {
        constexpr float log_2 = 0.693147180559945f;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float sum = quad_sum(sum_[half]);
            if constexpr (has_sinks) {
                float top = reference_[half] * scale_;
                const float factor = include_sink(call, head, top, sum);
                inverse[half] = top == minus_infinity() ? 0.0f : __fdividef(factor, sum);
                lse[half] = top == minus_infinity() ? top : (top + log2_approximate(sum)) * log_2;
                continue;
            }
            const bool empty = reference_[half] == minus_infinity();
            inverse[half] = empty ? 0.0f : __fdividef(1.0f, sum);
            lse[half] =
                empty ? minus_infinity() : (reference_[half] * scale_ + log2_approximate(sum)) * log_2;
        }
    }

    /// Nothing, or so the compiler cannot know before all exponentials are there: the sign of their sum.
    __device__ uint32 finished() const { return __float_as_uint(sum_[0] + sum_[1]) >> 31; }

  private:
    /// A row that has seen nothing: differences from it must not be NaN.
    __device__ static float finite(float x) { return x == minus_infinity() ? 0.0f : x; }
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
    __device__ void exponentiate(Scores& scores, float (&sums)[2]) const {
        const float offsets[2] = {-finite(reference_[0]) * scale_, -finite(reference_[1]) * scale_};
#pragma unroll
        for (int i = 0; i < tile_n / 2; ++i) {
            const int half = i / 2 % 2;
            scores[i] = exp2_approximate(fmaf(scores[i], scale_, offsets[half]));
            sums[half] += scores[i];
        }
    }

    float scale_;
    float reference_[2];
    float sum_[2];
    float offset_[2];     ///< -reference * scale_, 0 where there is none
    bool known_ = false;  ///< none is missing
};

}  // namespace hone::attention_prefill::warpgroup

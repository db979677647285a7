// Online softmax of one warp. Scores stand as mma.sync leaves S^T = K q^T: of 16 tokens, with g = lane / 4
// and t = lane % 4, values 0 and 1 are token g, rows 2t and 2t + 1; values 2 and 3 are token g + 8. What the
// product with V^T wants as its right operand are pairs of tokens of row g: 8 x 8 transposes across lanes.
//
// Everything is in powers of two: a weight is 2^(score * scale * log2 e - max). The sums of weights stay
// apart for the tokens of each lane until the end; the maximum is the warp's. Beside codes, where
// instructions are scarce, it is not the maximum of all scores yet, but no score is more than 2^8 times
// larger: lanes ask each other for theirs where one's is.
#pragma once

#include "attention_decode/scores.cuh"
#include "device/mma.cuh"
#include "device/transpose.cuh"

namespace hone::attention_decode {

/// What tensor cores multiply. Codes are numbers of fp16, too, and one instruction makes two of them.
using Operand = Conditional<fp8_cache, fp16, Element>::type;
/// How far, log2, weights may grow before the maximum follows them.
inline constexpr float slack = fp8_cache ? 8.0f : 0.0f;

/// Rows of a block come in columns of 8 of an mma instruction.
inline constexpr int row_blocks = (block_rows + 7) / 8;

template <int token_blocks>
struct Scores {
    MmaSums sums[token_blocks][row_blocks];
};

/// Right operands of the product with V^T.
template <int token_blocks>
struct Weights {
    uint32 words[token_blocks][row_blocks][2];
};

class Softmax {
  public:
    /// Rows 8 n + 2 t + e; log2.
    float max[row_blocks][2];
    float sum[row_blocks][2];
    /// By which sums over earlier tokens shrank in the last step.
    float factor[row_blocks][2];

    __device__ explicit Softmax(const Tensors& tensors) : tensors_(tensors) {}

    /// Scores are `query_factor` times what products of queries are; a power of two.
    __device__ void start(int list, float query_factor) {
        scale_ = scale_of(tensors_, list);
        if constexpr (fp8_cache) scale_ = fmaxf(scale_ * query_factor, 0x1p-126f);
        first_row_ = first_row_of(list);
#pragma unroll
        for (int i = 0; i < 2 * row_blocks; ++i) {
            max[i / 2][i % 2] = -infinity;
            sum[i / 2][i % 2] = 0.0f;
        }
    }

    /// Takes the scores of 16 * token_blocks tokens from `token` on, makes weights. False: no maximum grew,
    /// and all factors are 1.
    template <int token_blocks>
    __device__ bool step(Scores<token_blocks>& scores, Weights<token_blocks>& weights, int token,
                         int length) {
        if constexpr (has_softcap) cap(scores);
        if (is_masked(token, 16 * token_blocks, length)) mask(scores, token, length);
        const float to_log2 = has_softcap ? 1.0f : scale_ * log2_e;
        if constexpr (fp8_cache) {
            if (!__any_sync(0xffffffffu, grows(scores, to_log2))) {
                exponentiate(scores, weights, to_log2);
                return false;
            }
        }
        bool grew = false;
#pragma unroll
        for (int n = 0; n < row_blocks; ++n) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                float top = top_of(scores, n, e);
#pragma unroll
                for (int distance = 4; distance < 32; distance *= 2)
                    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, distance));
                const float next = fmaxf(max[n][e], top * to_log2);
                factor[n][e] = fast_exp2(max[n][e] - finite_max(next));
                grew |= next > max[n][e];
                max[n][e] = next;
                sum[n][e] *= factor[n][e];
            }
        }
        exponentiate(scores, weights, to_log2);
        return __any_sync(0xffffffffu, grew);
    }

    /// Makes the sums those of all lanes of a row.
    __device__ void finish() {
#pragma unroll
        for (int i = 0; i < 2 * row_blocks; ++i) {
#pragma unroll
            for (int distance = 4; distance < 32; distance *= 2)
                sum[i / 2][i % 2] += __shfl_xor_sync(0xffffffffu, sum[i / 2][i % 2], distance);
        }
    }

  private:
    /// The largest of this lane's scores of row 8 n + 2 t + e.
    template <int token_blocks>
    __device__ static float top_of(const Scores<token_blocks>& scores, int n, int e) {
        float top = -infinity;
#pragma unroll
        for (int b = 0; b < token_blocks; ++b)
            top = fmaxf(top, fmaxf(scores.sums[b][n].values[e], scores.sums[b][n].values[2 + e]));
        return top;
    }

    /// Whether a score of this lane is further above the maximum than weights may be.
    template <int token_blocks>
    __device__ bool grows(const Scores<token_blocks>& scores, float to_log2) const {
        bool grows = false;
#pragma unroll
        for (int i = 0; i < 2 * row_blocks; ++i)
            grows |= fmaf(top_of(scores, i / 2, i % 2), to_log2, -slack) > max[i / 2][i % 2];
        return grows;
    }

    /// Whether some row does not see one of the tokens.
    __device__ bool is_masked(int token, int count, int length) const {
        const int last = causal ? length - tensors_.queries() + 1 : length;
        return token + count > last || (window > 0 && token < length - window);
    }

    template <int token_blocks>
    __device__ void mask(Scores<token_blocks>& scores, int token, int length) const {
        const int g = threadIdx.x % 32 / 4;
        const int t = threadIdx.x % 4;
#pragma unroll
        for (int n = 0; n < row_blocks; ++n) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int row = first_row_ + n * 8 + 2 * t + e;
                const Visible visible = tensors_.visible_to(token_of(row), length);
#pragma unroll
                for (int i = 0; i < 2 * token_blocks; ++i) {
                    const int position = token + 8 * i + g;
                    if (position < visible.first || position >= visible.last)
                        scores.sums[i / 2][n].values[i % 2 * 2 + e] = -infinity;
                }
            }
        }
    }

    template <int token_blocks>
    __device__ void cap(Scores<token_blocks>& scores) const {
#pragma unroll
        for (int i = 0; i < 4 * token_blocks * row_blocks; ++i) {
            float& score = scores.sums[i / 4 / row_blocks][i / 4 % row_blocks].values[i % 4];
            score = capped(score * scale_, tensors_.softcap);
        }
    }

    template <int token_blocks>
    __device__ void exponentiate(const Scores<token_blocks>& scores, Weights<token_blocks>& weights,
                                 float to_log2) {
#pragma unroll
        for (int n = 0; n < row_blocks; ++n) {
            const float low = finite_max(max[n][0]);
            const float high = finite_max(max[n][1]);
#pragma unroll
            for (int i = 0; i < 2 * token_blocks; ++i) {
                const float(&s)[4] = scores.sums[i / 2][n].values;
                const float a = fast_exp2(fmaf(s[i % 2 * 2], to_log2, -low));
                const float b = fast_exp2(fmaf(s[i % 2 * 2 + 1], to_log2, -high));
                sum[n][0] += a;
                sum[n][1] += b;
                weights.words[i / 2][n][i % 2] = transpose_matrix(pack_pair(Operand{}, a, b));
            }
        }
    }

    const Tensors& tensors_;
    float scale_ = 0.0f;
    int first_row_ = 0;
};

}  // namespace hone::attention_decode

// What a call of attention_prefill asks, for all kernels of the family: static dimensions, the arguments, the
// sequences, and which keys a query sees.
//
// Query i of a sequence stands at key i + kv_len - q_len (bottom-right aligned). Causal, it sees the keys up
// to there; with a window, the last `window` of these. A row that sees nothing has zeros for a result and
// -infinity for lse. What stands in a tensor outside of [first_key(), kv_len) of a sequence, or behind its
// queries, nobody may see: a NaN there must not reach a result.
#pragma once

#include "hone_constants.h"

namespace hone::attention_prefill {

using Element = DtypeOf<Shape::dtype>::type;

/// none: all sequences have q_len queries and kv_len keys. kv: kv_lengths[sequence] keys. cumulative: tensors
/// are packed [tokens, heads, head_dim], sequence i has tokens starts[i] to starts[i + 1].
enum class Lengths : int { none = 0, kv = 1, cumulative = 2 };

inline constexpr int heads = static_cast<int>(Shape::heads);
inline constexpr int kv_heads = static_cast<int>(Shape::kv_heads);
/// Query heads that share a head of keys and values.
inline constexpr int group_size = heads / kv_heads;
inline constexpr int head_dim = static_cast<int>(Shape::head_dim);
inline constexpr bool causal = Shape::causal != 0;
/// Keys that a query sees at most.
inline constexpr int window = static_cast<int>(Shape::window);
inline constexpr bool windowed = window != 0;
/// Scores become cap * tanh(score / cap) before they are masked.
inline constexpr bool has_softcap = Shape::softcap != 0;
inline constexpr bool has_lse = Shape::lse != 0;
inline constexpr Lengths lengths = static_cast<Lengths>(Shape::lengths);
inline constexpr bool packed = lengths == Lengths::cumulative;

static_assert(heads % kv_heads == 0, "each head of keys serves as many query heads");
static_assert(!windowed || causal, "a window ends at the query's own key");

/// In elements; a row of head_dim elements is contiguous.
struct Strides {
    int64 batch;  ///< unused where tensors are packed
    int64 token;
    int64 head;
};

/// One sequence of a call.
struct Sequence {
    int index;
    int q_len;
    int kv_len;
    int q_start;  ///< its first token in a packed tensor, else 0
    int kv_start;

    /// Keys before a query's own; negative where there are more queries than keys.
    __device__ int shift() const { return kv_len - q_len; }
    /// Query `i` sees the keys [begin(i), end(i)), none where that is empty.
    __device__ int begin(int i) const {
        if constexpr (!windowed) return 0;
        return max(0, i + shift() + 1 - window);
    }
    __device__ int end(int i) const { return causal ? max(0, min(kv_len, i + shift() + 1)) : kv_len; }
    /// The first key that some query sees.
    __device__ int first_key() const { return begin(0); }
};

/// The arguments of a call, which all kernels take. q, k, v and out are [batch, tokens, heads, head_dim] by
/// strides; packed ones have no batch stride.
struct Call : Arguments {
    Strides q_strides{q_batch_stride, q_token_stride, q_head_stride};
    Strides k_strides{k_batch_stride, k_token_stride, k_head_stride};
    Strides v_strides{v_batch_stride, v_token_stride, v_head_stride};
    Strides out_strides{out_batch_stride, out_token_stride, out_head_stride};

    /// Lengths from the device are brought into the range that the call promises.
    __device__ Sequence sequence(int index) const {
        if constexpr (lengths == Lengths::cumulative) {
            const int q_start = q_starts[index];
            const int kv_start = kv_starts[index];
            return {index, min(max(q_starts[index + 1] - q_start, 0), q_len),
                    min(max(kv_starts[index + 1] - kv_start, 0), kv_len), q_start, kv_start};
        } else if constexpr (lengths == Lengths::kv) {
            return {index, q_len, min(max(kv_lengths[index], 0), kv_len), 0, 0};
        } else {
            return {index, q_len, kv_len, 0, 0};
        }
    }

    /// The row of query `i` of a head.
    __device__ const Element* query(const Sequence& s, int head, int i) const {
        return q + offset(q_strides, s.index, s.q_start, head, i);
    }
    /// The row of key `j` that the head sees, and that of its value.
    __device__ const Element* key(const Sequence& s, int head, int j) const {
        return k + offset(k_strides, s.index, s.kv_start, head / group_size, j);
    }
    __device__ const Element* value(const Sequence& s, int head, int j) const {
        return v + offset(v_strides, s.index, s.kv_start, head / group_size, j);
    }
    __device__ auto* result(const Sequence& s, int head, int i) const {
        return out + offset(out_strides, s.index, s.q_start, head, i);
    }
    __device__ float* lse_of(const Sequence& s, int head, int i) const { return lse + lse_index(s, head, i); }
    __device__ int64 lse_index(const Sequence& s, int head, int i) const {
        if constexpr (packed) return head * q_tokens + s.q_start + i;
        return (static_cast<int64>(s.index) * heads + head) * q_len + i;
    }

  private:
    __device__ static int64 offset(const Strides& strides, int sequence, int start, int head, int token) {
        const int64 first = packed ? start * strides.token : sequence * strides.batch;
        return first + token * strides.token + head * strides.head;
    }
};

__device__ inline float minus_infinity() { return __uint_as_float(0xff800000u); }

}  // namespace hone::attention_prefill

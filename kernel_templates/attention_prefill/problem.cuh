// What a call of attention_prefill asks, for all kernels of the family: static dimensions, the arguments, the
// sequences, and which keys a query sees.
//
// Query i of a sequence stands at key i + kv_len - q_len (bottom-right aligned). Causal, it sees the keys up
// to there; with a window, the last `window` of these. A row that sees nothing has zeros for a result and
// -infinity for lse. What stands in a tensor outside of [first_key(), kv_len) of a sequence, or behind its
// queries, nobody may see: a NaN there must not reach a result. Nor is the page table read for keys outside.
#pragma once

#include "hone_constants.h"

namespace hone::attention_prefill {

using Element = DtypeOf<Shape::dtype>::type;
/// Keys and values are codes, worth code * k_scale[head of keys] and code * v_scale[head of keys].
inline constexpr bool fp8_cache = Shape::kv_dtype != 0;
using CacheElement = Conditional<fp8_cache, fp8, Element>::type;

/// none: all sequences have q_len queries and kv_len keys. kv: kv_lengths[sequence] keys. cumulative: tensors
/// are packed [tokens, heads, head_dim], sequence i has tokens starts[i] to starts[i + 1]. paged: queries are
/// packed, and keys are kv_lengths[sequence] in pages; sequences with fewer than least_queries have none
/// here.
enum class Lengths : int { none = 0, kv = 1, cumulative = 2, paged = 3 };

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
/// A logit a head counts in the sum of exponentials, and has no value (sink.cuh).
inline constexpr bool has_sinks = Shape::sinks != 0;
inline constexpr Lengths lengths = static_cast<Lengths>(Shape::lengths);
/// Keys and values are packed.
inline constexpr bool packs_keys = lengths == Lengths::cumulative;
/// Queries and results are.
inline constexpr bool packed = packs_keys || lengths == Lengths::paged;
/// Keys and values are [pool_pages, page_size, kv_heads, head_dim], by strides as if a page were a sequence.
inline constexpr bool paged = Shape::page_size != 0;
inline constexpr int page_size = paged ? static_cast<int>(Shape::page_size) : 1;

static_assert(paged || lengths != Lengths::paged, "pages have a size");
static_assert(!paged || !packs_keys, "keys are packed, or come in pages");
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
        if constexpr (lengths == Lengths::paged) {
            const int q_start = q_starts[index];
            const int queries = min(max(q_starts[index + 1] - q_start, 0), q_len);
            return {index, queries < least_queries ? 0 : queries, min(max(kv_lengths[index], 0), most_keys()),
                    q_start, 0};
        } else if constexpr (lengths == Lengths::cumulative) {
            const int q_start = q_starts[index];
            const int kv_start = kv_starts[index];
            return {index, min(max(q_starts[index + 1] - q_start, 0), q_len),
                    min(max(kv_starts[index + 1] - kv_start, 0), kv_len), q_start, kv_start};
        } else if constexpr (lengths == Lengths::kv) {
            return {index, q_len, min(max(kv_lengths[index], 0), most_keys()), 0, 0};
        } else {
            return {index, q_len, most_keys(), 0, 0};
        }
    }

    /// The page of token `token`, which is one of the sequence; one of the pool, whatever the table says.
    __device__ int64 page_of(const Sequence& s, int token) const {
        const int64 page = page_table[s.index * page_table_stride + token / page_size];
        return min(max(page, int64{0}), pool_pages - 1);
    }

    /// The row of query `i` of a head.
    __device__ const Element* query(const Sequence& s, int head, int i) const {
        return q + offset(q_strides, s.index, s.q_start, head, i);
    }
    /// The row of key `j` that the head sees, and that of its value.
    __device__ const CacheElement* key(const Sequence& s, int head, int j) const {
        return k + kv_offset(k_strides, s, head / group_size, j);
    }
    __device__ const CacheElement* value(const Sequence& s, int head, int j) const {
        return v + kv_offset(v_strides, s, head / group_size, j);
    }
    __device__ auto* result(const Sequence& s, int head, int i) const {
        return out + offset(out_strides, s.index, s.q_start, head, i);
    }
    __device__ float* lse_of(const Sequence& s, int head, int i) const { return lse + lse_index(s, head, i); }
    __device__ int64 lse_index(const Sequence& s, int head, int i) const {
        if constexpr (packed) return head * q_tokens + s.q_start + i;
        return (static_cast<int64>(s.index) * heads + head) * q_len + i;
    }

    /// By what the products of a head's queries and keys are multiplied. A scale of 0 would make NaN of what
    /// is masked.
    __device__ float score_scale(int head) const {
        return fp8_cache ? scale * fmaxf(k_scale[head / group_size], 0x1p-100f) : scale;
    }
    /// What a code among a head's values counts.
    __device__ float value_scale(int head) const { return fp8_cache ? v_scale[head / group_size] : 1.0f; }

  private:
    /// Never more than there is room for in a row of the page table.
    __device__ int most_keys() const {
        if constexpr (!paged) return kv_len;
        return static_cast<int>(min(static_cast<int64>(kv_len), page_table_stride * page_size));
    }
    __device__ int64 kv_offset(const Strides& strides, const Sequence& s, int kv_head, int j) const {
        if constexpr (paged)
            return page_of(s, j) * strides.batch + j % page_size * strides.token + kv_head * strides.head;
        return offset(strides, s.index, s.kv_start, kv_head, j);
    }
    __device__ static int64 offset(const Strides& strides, int sequence, int start, int head, int token) {
        const int64 first = packed ? start * strides.token : sequence * strides.batch;
        return first + token * strides.token + head * strides.head;
    }
};

__device__ inline float minus_infinity() { return __uint_as_float(0xff800000u); }

}  // namespace hone::attention_prefill

// Attention decode, the part that the reference shares with all variants: the tensors of a call, and which
// tokens a query sees. 1 to 16 query tokens a sequence,
//   out = softmax(scale * q k^T) v   over the tokens of the sequence in the cache,
// all sums in float32.
//
// Query token i of q_len, in a sequence of `length` tokens, stands at position length - q_len + i. Causal, it
// sees positions up to its own; with a window, none more than window - 1 before its own.
#pragma once

#include "hone_constants.h"

namespace hone::attention_decode {

/// The newest token's key and value are not in the cache yet: problems of attention_append, which shares this
/// code. They have fields and arguments of their own, and one query a sequence; what they have not is here.
template <class S>
inline constexpr bool appends_of = requires {
    S::rotary_dim;
};
inline constexpr bool appends = appends_of<Shape>;

template <class S, bool of_append>
struct FieldsOf : S {};
template <class S>
struct FieldsOf<S, true> : S {
    static constexpr long long kv_dtype = 0, causal = 0, lse = 0, sinks = 0, lengths = 1, q_tokens = 1;
};
using Fields = FieldsOf<Shape, appends>;

template <class A, bool of_append>
struct CallOf : A {};
template <class A>
struct CallOf<A, true> : A {
    static constexpr const int* q_starts = nullptr;
    static constexpr const float* k_scale = nullptr;
    static constexpr const float* v_scale = nullptr;
    static constexpr const float* sinks = nullptr;
    static constexpr float* lse = nullptr;
    static constexpr int64 q_len = 1, q_rows = 0, q_token_stride = 0, out_token_stride = 0;
};

using Element = DtypeOf<Fields::dtype>::type;
inline constexpr bool fp8_cache = Fields::kv_dtype != 0;
using CacheElement = Conditional<fp8_cache, fp8, Element>::type;

inline constexpr int heads = static_cast<int>(Fields::heads);
inline constexpr int kv_heads = static_cast<int>(Fields::kv_heads);
inline constexpr int head_dim = static_cast<int>(Fields::head_dim);
/// Room for query tokens; a call has q_len of them.
inline constexpr int q_tokens = static_cast<int>(Fields::q_tokens);
inline constexpr bool causal = Fields::causal != 0 && q_tokens > 1;
/// Tokens up to its own that a query sees; 0: all.
inline constexpr int window = static_cast<int>(Fields::window);
inline constexpr bool has_softcap = Fields::softcap != 0;
/// The cache comes in pages of so many tokens; else it is contiguous.
inline constexpr bool paged = Fields::page_size != 0;
inline constexpr int page_size = paged ? static_cast<int>(Fields::page_size) : 1;
inline constexpr bool has_lengths = Fields::lengths != 0;
/// q, out and lse hold the tokens of all sequences, cut by q_starts. Sequences of a single one are served;
/// others belong to another kernel, and nothing of them is read or written.
inline constexpr bool packed = Fields::lengths == 2;
inline constexpr bool has_lse = Fields::lse != 0;
/// A logit a head counts in the sum of exponentials, and has no value; in lse, too, which is the sink where a
/// row sees nothing.
inline constexpr bool has_sinks = Fields::sinks != 0;
/// Query heads that share a key-value head.
inline constexpr int group = heads / kv_heads;
static_assert(heads % kv_heads == 0, "query heads share key-value heads evenly");
static_assert(!packed || q_tokens == 1, "single tokens among packed ones");

inline constexpr float infinity = __builtin_bit_cast(float, 0x7f800000);
inline constexpr float log2_e = 1.4426950408889634f;

/// Positions [first, last).
struct Visible {
    int first;
    int last;
};

/// The arguments of a call, which all kernels take. Both caches have the same strides.
struct Tensors : CallOf<Arguments, appends> {
    __device__ int queries() const { return q_tokens == 1 ? 1 : static_cast<int>(q_len); }
    /// Query tokens times heads of a group, of this call.
    __device__ int rows() const { return group * queries(); }
    /// Never more than there is room for, whatever the lengths say; -1: the sequence is not served.
    __device__ int length(int sequence) const {
        if constexpr (packed) {
            if (q_starts[sequence + 1] - q_starts[sequence] != 1) return -1;
        }
        const int64 room = paged ? min(kv_len, page_table_stride * page_size) : kv_len;
        if constexpr (!has_lengths) return static_cast<int>(room);
        return max(0, min(kv_lengths[sequence], static_cast<int>(room)));
    }

    /// Seen by some query of a sequence.
    __device__ Visible visible(int length) const {
        return {window > 0 ? max(0, length - queries() - window + 1) : 0, length};
    }
    /// Seen by query token `token`.
    __device__ Visible visible_to(int token, int length) const {
        const int position = length - queries() + token;
        return {window > 0 ? max(0, position - window + 1) : 0, causal ? min(length, position + 1) : length};
    }

    __device__ int page_of(int sequence, int token) const {
        return page_table[sequence * page_table_stride + token / page_size];
    }
    /// Elements from the start of the cache to the first token of `sequence`'s head, or of a page's.
    __device__ int64 cache_offset(int sequence_or_page, int kv_head) const {
        return sequence_or_page * cache_stride + kv_head * cache_head_stride;
    }
    __device__ int64 query_offset(int sequence, int token, int head) const {
        if constexpr (packed) return q_starts[sequence] * q_token_stride + head * q_head_stride;
        return sequence * q_batch_stride + token * q_token_stride + head * q_head_stride;
    }
    __device__ int64 result_offset(int sequence, int token, int head) const {
        if constexpr (packed) return q_starts[sequence] * out_token_stride + head * out_head_stride;
        return sequence * out_batch_stride + token * out_token_stride + head * out_head_stride;
    }
    __device__ int64 lse_offset(int sequence, int token, int head) const {
        if constexpr (packed) return head * q_rows + q_starts[sequence];
        return (static_cast<int64>(sequence) * heads + head) * queries() + token;
    }

    /// What a code of the cache counts.
    __device__ float k_factor(int kv_head) const { return fp8_cache ? k_scale[kv_head] : 1.0f; }
    __device__ float v_factor(int kv_head) const { return fp8_cache ? v_scale[kv_head] : 1.0f; }
};

}  // namespace hone::attention_decode

// What the kernels of rope_kv_append share: the call's tensors, and where a token stands.
//
// cos and sin come from a table [positions, rotary_dim / 2] of float32, not from a base: angles of far
// positions would have to be reduced from numbers that float32 no longer resolves (position 131072 times
// frequency 1: 0.008 apart), every model family scales its frequencies in another way, and a row of the table
// is 2 % of a token's bytes and stays in the caches.
//
// Where a token goes: a sequence's new tokens are the last of its kv_lengths, and stand where the page table
// says or, without pages, at their position; or (slots) every token has a position and a slot = page *
// page_size + place on the page, or sequence * kv_len + position without pages. Tokens whose position is
// negative or has no row in the table are left out altogether; of tokens that the cache has no room for, and
// of those with a slot or page outside of it, only the query is written.
#pragma once

#include "device/packet.cuh"
#include "hone_constants.h"

namespace hone::rope_kv_append {

using Element = DtypeOf<Shape::dtype>::type;
inline constexpr bool quantized = Shape::kv_dtype != 0;
/// Codes of value / scale, where quantized.
using Cached = Conditional<quantized, fp8, Element>::type;

inline constexpr bool interleaved = Shape::style != 0;
inline constexpr bool has_norm = Shape::norm != 0;
inline constexpr bool has_slots = Shape::slots != 0;
inline constexpr bool paged = Shape::page_size != 0;
inline constexpr int page_size = paged ? static_cast<int>(Shape::page_size) : 1;
inline constexpr int heads = static_cast<int>(Shape::heads);
inline constexpr int kv_heads = static_cast<int>(Shape::kv_heads);
/// Of a token: queries, keys, values.
inline constexpr int all_heads = heads + 2 * kv_heads;
inline constexpr int head_dim = static_cast<int>(Shape::head_dim);
inline constexpr int rotary_dim = static_cast<int>(Shape::rotary_dim);

struct Tensors {
    const Element* q;
    const Element* k;
    const Element* v;
    const int*
        kv_lengths;  ///< of each sequence, its new tokens included; with slots: positions of each token
    const int* slots;
    const int* page_table;
    const float* cos;
    const float* sin;
    const Element* q_weight;
    const Element* k_weight;
    const float* k_scale;
    const float* v_scale;
    Element* q_out;  ///< may be q
    Cached* k_cache;
    Cached* v_cache;
    int64 tokens;
    int64 q_tokens;  ///< new tokens of a sequence
    int64 kv_len;    ///< tokens that a sequence has room for
    int64 q_token_stride, q_head_stride;
    int64 k_token_stride, k_head_stride;
    int64 v_token_stride, v_head_stride;
    int64 q_out_token_stride, q_out_head_stride;
    int64 cache_stride, cache_token_stride, cache_head_stride;  ///< cache_stride: of a page, or a sequence
    int64 page_table_stride;
    int64 pool_pages;  ///< pages of the pool, or sequences of the contiguous cache
    int64 positions;   ///< rows of the table
    float epsilon;
};

// Kernels share one signature: the family's pointers and scalars in declared order. The reference's outputs
// are float32.
#define HONE_ROPE_PARAMETERS(Query, Cache)                                                                   \
    const hone::rope_kv_append::Element *q, const hone::rope_kv_append::Element *k,                          \
        const hone::rope_kv_append::Element *v, const int *kv_lengths, const int *slots,                     \
        const int *page_table, const float *cos, const float *sin,                                           \
        const hone::rope_kv_append::Element *q_weight, const hone::rope_kv_append::Element *k_weight,        \
        const float *k_scale, const float *v_scale, Query *q_out, Cache *k_cache, Cache *v_cache,            \
        long long tokens, long long q_tokens, long long kv_len, long long q_token_stride,                    \
        long long q_head_stride, long long k_token_stride, long long k_head_stride,                          \
        long long v_token_stride, long long v_head_stride, long long q_out_token_stride,                     \
        long long q_out_head_stride, long long cache_stride, long long cache_token_stride,                   \
        long long cache_head_stride, long long page_table_stride, long long pool_pages, long long positions, \
        float epsilon
#define HONE_ROPE_TENSORS(q_out, k_cache, v_cache)                                                         \
    hone::rope_kv_append::Tensors {                                                                        \
        q, k, v, kv_lengths, slots, page_table, cos, sin, q_weight, k_weight, k_scale, v_scale, q_out,     \
            k_cache, v_cache, tokens, q_tokens, kv_len, q_token_stride, q_head_stride, k_token_stride,     \
            k_head_stride, v_token_stride, v_head_stride, q_out_token_stride, q_out_head_stride,           \
            cache_stride, cache_token_stride, cache_head_stride, page_table_stride, pool_pages, positions, \
            epsilon                                                                                        \
    }

/// One of a token's heads: queries first, then keys, then values.
struct Head {
    int index;  ///< among those of its kind
    bool is_q;
    bool is_v;

    __device__ explicit Head(int head)
        : index(head - (head < heads              ? 0
                        : head < heads + kv_heads ? heads
                                                  : heads + kv_heads)),
          is_q(head < heads),
          is_v(head >= heads + kv_heads) {}

    __device__ const Element* source(const Tensors& t, int64 token) const {
        if (is_q) return t.q + token * t.q_token_stride + index * t.q_head_stride;
        if (is_v) return t.v + token * t.v_token_stride + index * t.v_head_stride;
        return t.k + token * t.k_token_stride + index * t.k_head_stride;
    }
    __device__ const Element* norm_weight(const Tensors& t) const { return is_q ? t.q_weight : t.k_weight; }
    /// Of keys and values.
    __device__ float scale(const Tensors& t) const { return (is_v ? t.v_scale : t.k_scale)[index]; }
};

/// Position of a token, and its place in the cache.
struct Place {
    int position;
    bool exists;   ///< false: nothing of the token is written
    int64 offset;  ///< elements in the cache; negative: nowhere

    __device__ Place(const Tensors& t, int token) : offset(-1) {
        if constexpr (has_slots) {
            position = rotary_dim == 0 ? 0 : t.kv_lengths[token];
            const int slot = t.slots[token];
            const int inner = paged ? page_size : static_cast<int>(t.kv_len);
            if (slot >= 0 && slot / inner < t.pool_pages) offset = offset_of(t, slot / inner, slot % inner);
        } else {
            const int count = static_cast<int>(t.q_tokens);
            const int sequence = token / count;
            position = t.kv_lengths[sequence] - count + token % count;
            if (position >= 0 && position < t.kv_len) find(t, sequence);
        }
        exists = position >= 0 && (rotary_dim == 0 || position < t.positions);
    }

  private:
    __device__ static int64 offset_of(const Tensors& t, int outer, int inner) {
        return outer * t.cache_stride + inner * t.cache_token_stride;
    }
    __device__ void find(const Tensors& t, int sequence) {
        if constexpr (paged) {
            const int page = t.page_table[sequence * t.page_table_stride + position / page_size];
            if (page >= 0 && page < t.pool_pages) offset = offset_of(t, page, position % page_size);
        } else {
            offset = offset_of(t, sequence, position);
        }
    }
};

}  // namespace hone::rope_kv_append

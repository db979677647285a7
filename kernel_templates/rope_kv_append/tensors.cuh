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
/// What a norm's weight counts as.
template <class T>
__device__ inline T counted(T weight) {
    return Shape::unit_offset != 0 ? T(1) + weight : weight;
}
inline constexpr bool has_slots = Shape::slots != 0;
inline constexpr bool paged = Shape::page_size != 0;
inline constexpr int page_size = paged ? static_cast<int>(Shape::page_size) : 1;
inline constexpr int heads = static_cast<int>(Shape::heads);
inline constexpr int kv_heads = static_cast<int>(Shape::kv_heads);
/// Heads of a token: queries, keys, values.
inline constexpr int all_heads = heads + 2 * kv_heads;
inline constexpr int head_dim = static_cast<int>(Shape::head_dim);
inline constexpr int rotary_dim = static_cast<int>(Shape::rotary_dim);

/// The arguments of a call, which all kernels take. q_out may be q; with slots, kv_lengths are the positions
/// of the tokens.
using Tensors = Arguments;

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
    /// The scale of a head of keys or values.
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

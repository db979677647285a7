// RopeKvAppend. Describe the operator, let Runtime::prepare() make a kernel object of it, call run() as often
// as you like: it is safe from many threads at once and under stream capture, takes no lock, allocates
// nothing and makes no system call of its own. The calling thread needs the device's primary context current,
// as after any call of the CUDA runtime; a thread without a context gets it at its first run(). Generated
// from kernel_templates/rope_kv_append/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "hone/attention_strides.h"
#include "hone/error.h"
#include "hone/prepared_kernel.h"
#include "kernel_templates/dtype.h"
#include "kernel_templates/enums.h"

namespace hone {

/// The rotary embedding of new queries and keys, and the append of keys and values to a KV cache, in one
/// launch: a pair (x, y) of a token at position p becomes (x cos - y sin, y cos + x sin) with row p of the
/// tables. With a norm each head of q and k is normalized first: x * rsqrt(mean(x^2) + epsilon) * weight.
/// With unit_offset, as in Gemma 3, a weight counts as 1 + weight.
///
/// A token whose position is negative, or has no row in the tables, is left out altogether; of one for which
/// the cache has no room, page or slot, only the query is written.
struct RopeKvAppend {
    std::int64_t heads = 0;            ///< heads of q
    std::int64_t kv_heads = 0;         ///< heads of k and v; 0: as many
    std::int64_t head_dim = 0;         ///< 1 to 256
    std::int64_t rotary_dim = -1;      ///< leading elements of a head that turn, even; 0: none; -1: all
    std::int64_t max_tokens = 8192;    ///< most tokens of one call, of all its sequences
    Dtype dtype = Dtype::bf16;         ///< element type of q, k, v and out
    KvDtype kv_dtype = KvDtype::same;  ///< element type of the cache
    RopeStyle style = RopeStyle::half;
    bool norm = false;
    /// each token has its position and its slot in the cache; else every sequence has q_len new tokens, the
    /// last of its kv_lengths
    bool slots = false;
    std::int64_t page_size = 0;  ///< tokens of a page of the cache; 0: not paged
    bool unit_offset = false;    ///< with a norm: its weights count as 1 + weight, which is not rounded
};

/// Device pointers, strides and numbers of one call. Strides are in elements, 0 meaning no gaps, between
/// heads and tokens as in AttentionArgs; 16 bytes always suffice as alignment. `out` may be q itself, with
/// the same strides; other overlaps are not allowed.
struct RopeKvAppendArgs {
    const void* q = nullptr;  ///< [tokens, heads, head_dim]
    const void* k = nullptr;  ///< [tokens, kv_heads, head_dim]
    const void* v = nullptr;  ///< [tokens, kv_heads, head_dim]
    void* out = nullptr;      ///< [tokens, heads, head_dim]; the rotated queries
    /// [sequences, kv_len, kv_heads, head_dim]; or [pages, page_size, kv_heads, head_dim]
    void* k_cache = nullptr;
    void* v_cache = nullptr;     ///< as k_cache, with the same strides
    const float* cos = nullptr;  ///< [table_rows, rotary_dim / 2]; needed when anything turns
    const float* sin = nullptr;  ///< [table_rows, rotary_dim / 2]; needed when anything turns
    /// [tokens / q_len]; without slots: tokens of each sequence, its q_len new ones included
    const std::int32_t* kv_lengths = nullptr;
    const std::int32_t* page_table = nullptr;  ///< [tokens / q_len, page_table_stride]; without slots, paged
    const std::int32_t* positions = nullptr;   ///< [tokens]; with slots, where anything turns
    /// [tokens]; with slots: page * page_size + place on the page, or sequence * kv_len + place; negative:
    /// none
    const std::int32_t* slots = nullptr;
    const float* k_scale = nullptr;  ///< [kv_heads]; needed when the cache is fp8, which gets k / k_scale
    const float* v_scale = nullptr;  ///< [kv_heads]; needed when the cache is fp8
    const void* q_weight = nullptr;  ///< [head_dim], dtype; needed when the operator has a norm
    const void* k_weight = nullptr;  ///< [head_dim], dtype; needed when the operator has a norm
    AttentionStrides q_strides{};
    AttentionStrides k_strides{};
    AttentionStrides v_strides{};
    AttentionStrides out_strides{};
    AttentionStrides cache_strides{};    ///< `batch` of a sequence, or a page
    std::int64_t page_table_stride = 0;  ///< entries of a row; 0: as many pages as kv_len takes
    std::int64_t q_len = 1;              ///< without slots: tokens of each sequence, a divisor of `tokens`
    std::int64_t kv_len = 0;             ///< tokens that a sequence has room for, from 1
    /// pages of the cache, or sequences of one without pages; 0, for that without slots: tokens / q_len
    std::int64_t pool_pages = 0;
    std::int64_t table_rows = 0;  ///< positions that cos and sin know, from 1; needed when anything turns
    float epsilon = 1e-5F;        ///< the norm's, from 0
};

/// A prepared RopeKvAppend.
class RopeKvAppendKernel : public PreparedKernel {
  public:
    RopeKvAppendKernel() = default;

    /// Enqueues the operator for `tokens` (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const RopeKvAppendArgs& args,
                             std::int64_t tokens) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const RopeKvAppendArgs& args, std::int64_t tokens) const;

    /// For Runtime::prepare().
    explicit RopeKvAppendKernel(std::shared_ptr<const runtime::Prepared> prepared)
        : PreparedKernel(std::move(prepared)) {}
};

}  // namespace hone

// Attention, and what goes before it: the rotary embedding with the append to the KV cache. Describe the
// operator, let Runtime::prepare() make a kernel object of it, call run() as often as you like; what norm.h
// says of threads, capture and contexts holds here, too. Lengths, starts, page tables, positions and slots
// are int32 on the device: run() does not look at them, so that a captured graph may be replayed with others.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "hone/error.h"
#include "hone/prepared_kernel.h"
#include "kernel_templates/dtype.h"
#include "kernel_templates/enums.h"

namespace hone {

namespace runtime {
class DeviceSession;
}

/// out = softmax(scale * q k^T + mask) v for each sequence and head, accumulated in fp32. `heads / kv_heads`
/// neighbouring heads of q share one of k and v. Causal is aligned at the end: of a sequence with q_len
/// queries and kv_len keys, query i sees key j <= i + kv_len - q_len. A query that sees no key gets zeros,
/// and -infinity as its log-sum-exp; what stands in k and v beyond a sequence's end, also NaN, changes
/// nothing.
///
/// One operator serves prefill and decode. What is prepared depends on the most queries of a call: calls of
/// up to 16 queries a sequence (not packed) take kernels that read a KV cache at the speed of memory, others
/// those of prefill.
struct Attention {
    std::int64_t heads = 0;     ///< of q and out
    std::int64_t kv_heads = 0;  ///< of k and v, a divisor of `heads`; 0: as many
    std::int64_t head_dim = 0;  ///< 1 to 256
    /// Most sequences of one call, queries of a sequence, and keys of a sequence: its capacity in a cache.
    std::int64_t max_batch = 64;
    std::int64_t max_q_len = 8192;
    std::int64_t max_kv_len = 8192;
    std::int64_t min_q_len = 1;        ///< fewest queries of a call: kernels for fewer are not prepared
    Dtype dtype = Dtype::bf16;         ///< of q and out, and of k and v; fp32, fp16 or bf16
    KvDtype kv_dtype = KvDtype::same;  ///< of k and v; fp8 for max_q_len up to 16, not packed
    bool causal = true;
    bool lengths = false;  ///< kv_lengths says how many keys each sequence has; else all have kv_len
    bool packed = false;   ///< q_starts and kv_starts cut packed tensors into sequences; not with `lengths`
    bool softcap = false;  ///< scores s become softcap * tanh(s / softcap), after scale, before the mask
    bool lse = false;      ///< the log-sum-exp of the scores is written, too
    std::int64_t window = 0;  ///< most keys that a query sees, its own included; needs causal; 0: all
    /// Tokens of a page of the KV cache; 0: not paged. Pages are for max_q_len up to 16, not packed.
    std::int64_t page_size = 0;
};

/// Elements between neighbours of a tensor [batch, tokens, heads, head_dim], whose last dimension is
/// contiguous; 0: `head` is head_dim, `token` all heads of a token, `batch` all tokens of a sequence, `token`
/// apart. [batch, heads, tokens, head_dim] is {heads * tokens * head_dim, head_dim, tokens * head_dim}. Of a
/// paged cache `batch` is the distance of two pages, of packed tensors it means nothing.
struct AttentionStrides {
    std::int64_t batch = 0;
    std::int64_t token = 0;
    std::int64_t head = 0;
};

/// How much one call is of. `q_len` and `kv_len` are those of every sequence; where lengths or starts are on
/// the device, the most that any sequence has. kv_len from 1; with batch or q_len 0 nothing is done.
struct AttentionSizes {
    std::int64_t batch = 0;
    std::int64_t q_len = 0;
    std::int64_t kv_len = 0;
};

/// Device pointers, strides and numbers of one call. 16 bytes always suffice as alignment of pointers and
/// strides. `out` may be q itself, with the same strides; other overlaps are not allowed. k and v may be
/// tensors or caches: a call of up to 16 queries (not packed) needs the same strides for both.
struct AttentionArgs {
    const void* q = nullptr;  ///< [batch, q_len, heads, head_dim]; packed: [q_tokens, heads, head_dim]
    /// [batch, kv_len, kv_heads, head_dim]; packed: [kv_tokens, kv_heads, head_dim]; paged: [pool_pages,
    /// page_size, kv_heads, head_dim]
    const void* k = nullptr;
    const void* v = nullptr;  ///< as k
    void* out = nullptr;      ///< as q
    float* lse = nullptr;     ///< [batch, heads, q_len]; packed: [heads, q_tokens]; natural logarithm
    /// [batch], 0 to kv_len each, the call's own tokens included; needed when the operator has lengths.
    const std::int32_t* kv_lengths = nullptr;
    /// [batch + 1] each, needed when the operator is packed: sequence b has the tokens from starts[b] to
    /// starts[b + 1]. From 0, never decreasing.
    const std::int32_t* q_starts = nullptr;
    const std::int32_t* kv_starts = nullptr;
    /// [batch, page_table_stride]: the pages of each sequence, 0 to pool_pages - 1. Entries beyond a
    /// sequence's length are not used.
    const std::int32_t* page_table = nullptr;
    const float* k_scale = nullptr;  ///< [kv_heads]; needed when the cache is fp8
    const float* v_scale = nullptr;  ///< [kv_heads]; needed when the cache is fp8
    void* workspace = nullptr;       ///< workspace_bytes() of the sizes, aligned to 256; nullptr when 0
    AttentionStrides q_strides{};
    AttentionStrides k_strides{};
    AttentionStrides v_strides{};
    AttentionStrides out_strides{};
    std::int64_t page_table_stride = 0;  ///< entries of a row; 0: as many pages as kv_len takes
    std::int64_t pool_pages = 0;         ///< pages of the cache; needed when it is paged
    std::int64_t q_tokens = 0;           ///< of all sequences of a packed call; 0: nothing is done
    std::int64_t kv_tokens = 0;          ///< the same of k and v, from 1
    float scale = 0.0F;                  ///< of q k^T; 0 or less: 1 / sqrt(head_dim)
    float softcap = 0.0F;                ///< above 0; needed when the operator has a softcap
};

/// A prepared Attention. Small; copies share the loaded kernels and may outlive the Runtime.
class AttentionKernel {
  public:
    AttentionKernel() = default;

    /// Enqueues the operator. Checks fail before anything is enqueued: bad_rows when a size is out of its
    /// range, bad_stride also for k and v of different strides in a call of up to 16 queries, bad_scale,
    /// bad_pages for a paged cache without pages. With RuntimeOptions::check_indices also bad_lengths and
    /// bad_pages for what stands on the device, and `capturing` under stream capture.
    [[nodiscard]] Status run(CUstream_st* stream, const AttentionArgs& args,
                             AttentionSizes sizes) const noexcept;

    /// Bytes of device memory, aligned to 256, that any call of up to these sizes needs; 0: none. Throws
    /// Error for sizes below 0 or above the prepared maximum, and when the object is empty.
    [[nodiscard]] std::int64_t workspace_bytes(AttentionSizes sizes) const;

    /// What prepare() chose: for calls of up to 1, 2, 4, 8, 16 queries, and for more, as far as prepared.
    /// Throws Error when the object is empty.
    [[nodiscard]] std::vector<PrepareReport> reports() const;
    /// False for one that Runtime::prepare() did not make.
    [[nodiscard]] explicit operator bool() const noexcept {
        return prefill_ != nullptr ||
               std::ranges::any_of(decode_, [](const auto& part) { return part != nullptr; });
    }

    /// Kernels for up to 1, 2, 4, 8 and 16 queries a sequence.
    using Decode = std::array<std::shared_ptr<const runtime::PreparedOperator>, 5>;
    /// For Runtime::prepare(). What calls cannot reach is nullptr. With `checking`, the prepared operators'
    /// session, run() looks at the indices first.
    AttentionKernel(Decode decode, std::shared_ptr<const runtime::PreparedOperator> prefill,
                    const Attention& attention, const runtime::DeviceSession* checking)
        : decode_(std::move(decode)),
          prefill_(std::move(prefill)),
          attention_(attention),
          checking_(checking) {}

  private:
    Decode decode_;
    std::shared_ptr<const runtime::PreparedOperator> prefill_;
    Attention attention_;
    const runtime::DeviceSession* checking_ = nullptr;
};

/// The rotary embedding of new queries and keys, and the append of keys and values to a KV cache, in one
/// launch: a pair (x, y) of a token at position p becomes (x cos - y sin, y cos + x sin) with row p of the
/// tables; rope_table.h makes them. With a norm each head of q and k is normalized first:
/// x * rsqrt(mean(x^2) + epsilon) * weight.
///
/// A token whose position is negative, or has no row in the tables, is left out altogether; of one for which
/// the cache has no room, page or slot, only the query is written.
struct RopeKvAppend {
    std::int64_t heads = 0;            ///< of q
    std::int64_t kv_heads = 0;         ///< of k and v; 0: as many
    std::int64_t head_dim = 0;         ///< 1 to 256
    std::int64_t rotary_dim = -1;      ///< leading elements of a head that turn, even; 0: none; -1: all
    std::int64_t max_tokens = 8192;    ///< most tokens of one call, of all its sequences
    Dtype dtype = Dtype::bf16;         ///< of q, k, v and out; fp32, fp16 or bf16
    KvDtype kv_dtype = KvDtype::same;  ///< of the cache
    RopeStyle style = RopeStyle::half;
    bool norm = false;
    /// Each token has its position and its slot in the cache. Else every sequence has q_len new tokens, the
    /// last of its kv_lengths.
    bool slots = false;
    std::int64_t page_size = 0;  ///< tokens of a page of the cache; 0: not paged
};

/// Device pointers, strides and numbers of one call. Strides are in elements, 0 meaning no gaps, between
/// `head`s and `token`s as in AttentionStrides; 16 bytes always suffice as alignment. `out` may be q itself,
/// with the same strides; other overlaps are not allowed.
struct RopeKvAppendArgs {
    const void* q = nullptr;  ///< [tokens, heads, head_dim]
    const void* k = nullptr;  ///< [tokens, kv_heads, head_dim]
    const void* v = nullptr;  ///< [tokens, kv_heads, head_dim]
    void* out = nullptr;      ///< [tokens, heads, head_dim]: the rotated queries
    /// [sequences, kv_len, kv_heads, head_dim], or [pages, page_size, kv_heads, head_dim]
    void* k_cache = nullptr;
    void* v_cache = nullptr;     ///< as k_cache, with the same strides
    const float* cos = nullptr;  ///< [table_rows, rotary_dim / 2]; needed when anything turns
    const float* sin = nullptr;  ///< [table_rows, rotary_dim / 2]; needed when anything turns
    /// Without slots, [tokens / q_len]: tokens of each sequence, its q_len new ones included.
    const std::int32_t* kv_lengths = nullptr;
    const std::int32_t* page_table = nullptr;  ///< without slots, paged: [tokens / q_len, page_table_stride]
    /// With slots, where anything turns: [tokens].
    const std::int32_t* positions = nullptr;
    /// With slots, [tokens]: page * page_size + place on the page, or sequence * kv_len + place; negative:
    /// none.
    const std::int32_t* slots = nullptr;
    const float* k_scale = nullptr;  ///< [kv_heads]; needed when the cache is fp8, which gets k / k_scale
    const float* v_scale = nullptr;  ///< [kv_heads]; needed when the cache is fp8
    const void* q_weight = nullptr;  ///< [head_dim], dtype; needed when the operator has a norm
    const void* k_weight = nullptr;  ///< [head_dim], dtype; needed when the operator has a norm
    AttentionStrides q_strides{};    ///< token and head; so of k, v and out
    AttentionStrides k_strides{};
    AttentionStrides v_strides{};
    AttentionStrides out_strides{};
    AttentionStrides cache_strides{};    ///< `batch` of a sequence, or a page
    std::int64_t page_table_stride = 0;  ///< entries of a row; 0: as many pages as kv_len takes
    std::int64_t q_len = 1;              ///< without slots: tokens of each sequence, a divisor of `tokens`
    std::int64_t kv_len = 0;             ///< tokens that a sequence has room for, from 1
    /// Pages of the cache, or sequences of one without pages; 0, for that without slots: tokens / q_len.
    std::int64_t pool_pages = 0;
    std::int64_t table_rows = 0;  ///< positions that cos and sin know, from 1; needed when anything turns
    float epsilon = 1e-5F;        ///< of the norm, from 0
};

/// A prepared RopeKvAppend.
class RopeKvAppendKernel : public PreparedKernel {
  public:
    RopeKvAppendKernel() = default;

    /// Enqueues the operator for `tokens` tokens (0: does nothing). Checks fail before anything is enqueued:
    /// bad_rows also when q_len does not divide `tokens`. With RuntimeOptions::check_indices also
    /// bad_lengths, bad_pages and `capturing`, as of AttentionKernel::run().
    [[nodiscard]] Status run(CUstream_st* stream, const RopeKvAppendArgs& args,
                             std::int64_t tokens) const noexcept;

    /// For Runtime::prepare().
    RopeKvAppendKernel(std::shared_ptr<const runtime::PreparedOperator> prepared, const RopeKvAppend& rope,
                       const runtime::DeviceSession* checking)
        : PreparedKernel(std::move(prepared)), rope_(rope), checking_(checking) {}

  private:
    RopeKvAppend rope_;
    const runtime::DeviceSession* checking_ = nullptr;
};

}  // namespace hone

// Attention. Describe the operator, let Runtime::prepare() make a kernel object of it, call run() as often as
// you like: it is safe from many threads at once and under stream capture, takes no lock, allocates nothing
// and makes no system call of its own. The calling thread needs the device's primary context current, as
// after any call of the CUDA runtime; a thread without a context gets it at its first run(). Generated from
// kernel_templates/attention_prefill/operators.py by `./hone generate`.
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

/// out = softmax(scale * q k^T + mask) v for each sequence and head, accumulated in fp32. `heads / kv_heads`
/// neighbouring heads of q share one of k and v. Causal is aligned at the end: of a sequence with q_len
/// queries and kv_len keys, query i sees key j <= i + kv_len - q_len. A query that sees no key gets zeros,
/// and -infinity as its log-sum-exp; what stands in k and v beyond a sequence's end, also NaN, changes
/// nothing.
///
/// One operator serves prefill and decode: calls of up to 16 queries a sequence (not packed) take kernels
/// that read a KV cache at the speed of memory, others those of prefill, which read codes of fp8, too. Packed
/// queries over a paged cache are chunks of prompts, prompts behind a cached prefix and single tokens in one
/// call, which enqueues kernels of both kinds, beside each other, where it may have single tokens: of each
/// only what is its own is read. Lengths, starts and page tables are on the device: a captured graph may be
/// replayed with others.
struct Attention {
    std::int64_t heads = 0;          ///< heads of q and out
    std::int64_t kv_heads = 0;       ///< heads of k and v, a divisor of `heads`; 0: as many
    std::int64_t head_dim = 0;       ///< 1 to 256
    std::int64_t max_batch = 64;     ///< most sequences of one call
    std::int64_t max_q_len = 8192;   ///< most queries of a sequence
    std::int64_t max_kv_len = 8192;  ///< most keys of a sequence: its capacity in a cache
    std::int64_t min_q_len = 1;      ///< fewest queries of a call, from 1: kernels for fewer are not prepared
    Dtype dtype = Dtype::bf16;       ///< element type of q and out, and of k and v
    KvDtype kv_dtype = KvDtype::same;  ///< element type of k and v; fp8: codes, with k_scale and v_scale
    bool causal = true;
    bool lengths = false;  ///< kv_lengths says how many keys each sequence has; else all have kv_len
    /// q_starts and kv_starts cut packed tensors into sequences, not with `lengths`; with a page_size only q
    /// is packed, and kv_lengths says how many keys there are in pages
    bool packed = false;
    bool softcap = false;     ///< scores s become softcap * tanh(s / softcap), after scale, before the mask
    bool lse = false;         ///< the log-sum-exp of the scores is written, too
    std::int64_t window = 0;  ///< most keys that a query sees, its own included; needs causal; 0: all
    std::int64_t page_size = 0;  ///< tokens of a page of the KV cache; 0: not paged
    /// a learned logit a head, beside scores times scale, counts in the softmax's sum and in lse, and has no
    /// value
    bool sinks = false;
};

/// How much one call is of.
struct AttentionSizes {
    std::int64_t batch = 0;
    std::int64_t q_len = 0;
    std::int64_t kv_len = 0;
};

/// Device pointers, strides and numbers of one call. Strides are elements between neighbours of a tensor
/// [batch, tokens, heads, head_dim], whose last dimension is contiguous; 0: between heads head_dim, between
/// tokens all heads of a token, between sequences (batch) all tokens of one, that stride apart. Of a paged
/// cache the batch stride is the distance of two pages, of packed tensors it means nothing. 16 bytes always
/// suffice as alignment of pointers and strides. `out` may be q itself, with the same strides; other overlaps
/// are not allowed. k and v may be tensors or caches: a call of up to 16 queries (not packed) needs the same
/// strides for both, and single tokens among packed queries are as fast as such a call where they have them.
struct AttentionArgs {
    const void* q = nullptr;  ///< [batch, q_len, heads, head_dim]; packed: [q_tokens, heads, head_dim]
    /// [batch, kv_len, kv_heads, head_dim]; packed: [kv_tokens, kv_heads, head_dim]; paged: [pool_pages,
    /// page_size, kv_heads, head_dim]
    const void* k = nullptr;
    const void* v = nullptr;  ///< as k
    void* out = nullptr;      ///< as q
    float* lse = nullptr;     ///< [batch, heads, q_len]; packed: [heads, q_tokens]; natural logarithm
    /// [batch]; 0 to kv_len each, the call's own tokens included; needed when the operator has lengths, or is
    /// packed and paged
    const std::int32_t* kv_lengths = nullptr;
    /// [batch + 1]; from 0, never decreasing: sequence b has the tokens from starts[b] to starts[b + 1], or
    /// none; needed when the operator is packed
    const std::int32_t* q_starts = nullptr;
    /// [batch + 1]; as q_starts, of k and v; needed when the operator is packed and not paged
    const std::int32_t* kv_starts = nullptr;
    /// [batch, page_table_stride]; the pages of each sequence, 0 to pool_pages - 1; entries beyond a
    /// sequence's length are not used
    const std::int32_t* page_table = nullptr;
    const float* k_scale = nullptr;  ///< [kv_heads]; needed when the cache is fp8
    const float* v_scale = nullptr;  ///< [kv_heads]; needed when the cache is fp8
    /// [heads]; natural logits, not scaled nor capped; needed when the operator has sinks
    const float* sinks = nullptr;
    void* workspace = nullptr;  ///< workspace_bytes(), aligned to 256; nullptr when that is 0
    AttentionStrides q_strides{};
    AttentionStrides k_strides{};
    AttentionStrides v_strides{};
    AttentionStrides out_strides{};
    std::int64_t page_table_stride = 0;  ///< entries of a row; 0: as many pages as kv_len takes
    std::int64_t pool_pages = 0;         ///< pages of the cache; needed when it is paged
    std::int64_t q_tokens = 0;           ///< tokens of all sequences of a packed call; 0: nothing is done
    std::int64_t kv_tokens = 0;          ///< the same of k and v, from 1; unused when they are paged
    /// sequences of more than one query, where queries are packed over pages and the host knows that so many
    /// stand behind all others, which have one or none; 0: not known, q_starts tells
    std::int64_t prompts = 0;
    float scale = 0.0F;    ///< factor of q k^T; 0 or less: 1 / sqrt(head_dim)
    float softcap = 0.0F;  ///< above 0; needed when the operator has a softcap
};

/// A prepared Attention.
class AttentionKernel : public PreparedKernel {
  public:
    AttentionKernel() = default;

    /// Enqueues the operator for `batch`, `q_len`, `kv_len` (0: does nothing). Checks fail before anything is
    /// enqueued. q_len and kv_len are those of every sequence; where lengths or starts are on the device, the
    /// most that any has. kv_len from 1; with batch or q_len 0 nothing is done.
    [[nodiscard]] Status run(CUstream_st* stream, const AttentionArgs& args,
                             AttentionSizes sizes) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const AttentionArgs& args, AttentionSizes sizes) const;
    /// Bytes of device memory, aligned to 256, that any call of up to these sizes needs; 0: none. Throws
    /// Error for sizes below 0 or above the prepared maximum, and when the object is empty.
    [[nodiscard]] std::int64_t workspace_bytes(AttentionSizes sizes) const;

    /// For Runtime::prepare().
    explicit AttentionKernel(std::shared_ptr<const runtime::Prepared> prepared)
        : PreparedKernel(std::move(prepared)) {}
};

}  // namespace hone

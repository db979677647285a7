// AttentionAppend. Describe the operator, let Runtime::prepare() make a kernel object of it, call run() as
// often as you like: it is safe from many threads at once and under stream capture, takes no lock, allocates
// nothing and makes no system call of its own. The calling thread needs the device's primary context current,
// as after any call of the CUDA runtime; a thread without a context gets it at its first run(). Generated
// from kernel_templates/attention_append/operators.py by `./hone generate`.
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

/// A decoding step's attention of one new token a sequence, with what goes before it, in one launch: what
/// RopeKvAppend does with q, k and v, and Attention of the rotated query over the cache, the new key and
/// value included. Queries and keys are rounded to dtype between rotation and product, as there. q, k and v
/// may be parts of one row, as a projection of all three leaves them; q is not written.
///
/// What is not q, k or v may be read before the kernels enqueued ahead of this one have ended: older rows of
/// the cache, lengths, pages, tables and weights must not be written by those, but by work that ended before
/// them, such as the launch of another graph.
///
/// Fast is the kernel of sm_90 for 16-bit elements, heads of multiples of 8 elements and rotations of
/// multiples of 16. The other one is right everywhere, and slower than the two operators.
struct AttentionAppend {
    std::int64_t heads = 0;          ///< heads of q and out
    std::int64_t kv_heads = 0;       ///< heads of k and v, a divisor of `heads`; 0: as many
    std::int64_t head_dim = 0;       ///< 1 to 256
    std::int64_t rotary_dim = -1;    ///< leading elements of a head that turn, even; 0: none; -1: all
    std::int64_t max_batch = 64;     ///< most sequences of one call
    std::int64_t max_kv_len = 8192;  ///< most keys of a sequence: its capacity in the cache
    Dtype dtype = Dtype::bf16;       ///< element type of q, k, v, the cache, the norms' weights and out
    RopeStyle style = RopeStyle::half;
    bool norm = false;  ///< each head of q and k is normalized first: x * rsqrt(mean(x^2) + epsilon) * weight
    bool softcap = false;        ///< scores s become softcap * tanh(s / softcap), after scale
    std::int64_t window = 0;     ///< most keys that a query sees, its own included; 0: all
    std::int64_t page_size = 0;  ///< tokens of a page of the cache; 0: not paged
    bool unit_offset = false;    ///< with a norm: its weights count as 1 + weight, which is not rounded
};

/// How much one call is of.
struct AttentionAppendSizes {
    std::int64_t batch = 0;
    std::int64_t kv_len = 0;
};

/// Device pointers, strides and numbers of one call. Strides are in elements, 0 meaning no gaps, as in
/// AttentionArgs; 16 bytes always suffice as alignment. `out` overlaps nothing else.
struct AttentionAppendArgs {
    const void* q = nullptr;  ///< [batch, heads, head_dim]
    const void* k = nullptr;  ///< [batch, kv_heads, head_dim]
    const void* v = nullptr;  ///< [batch, kv_heads, head_dim]
    void* out = nullptr;      ///< [batch, heads, head_dim]
    /// [batch, kv_len, kv_heads, head_dim]; or [pool_pages, page_size, kv_heads, head_dim]
    void* k_cache = nullptr;
    void* v_cache = nullptr;     ///< as k_cache, with the same strides
    const float* cos = nullptr;  ///< [table_rows, rotary_dim / 2]; needed when anything turns
    const float* sin = nullptr;  ///< [table_rows, rotary_dim / 2]; needed when anything turns
    /// [batch]; keys of each sequence, 0 to kv_len, the new one included; 0: nothing is appended, and out
    /// gets zeros
    const std::int32_t* kv_lengths = nullptr;
    /// [batch, page_table_stride]; needed when the cache is paged: the pages of each sequence
    const std::int32_t* page_table = nullptr;
    const void* q_weight = nullptr;  ///< [head_dim], dtype; needed when the operator has a norm
    const void* k_weight = nullptr;  ///< [head_dim], dtype; needed when the operator has a norm
    void* workspace = nullptr;       ///< workspace_bytes(), aligned to 256; nullptr when that is 0
    AttentionStrides q_strides{};
    AttentionStrides k_strides{};
    AttentionStrides v_strides{};
    AttentionStrides out_strides{};
    AttentionStrides cache_strides{};    ///< `batch` of a sequence, or a page
    std::int64_t page_table_stride = 0;  ///< entries of a row; 0: as many pages as kv_len takes
    std::int64_t pool_pages = 0;         ///< pages of the cache; needed when it is paged
    /// positions that cos and sin know, kv_len at least; needed when anything turns
    std::int64_t table_rows = 0;
    float scale = 0.0F;     ///< factor of q k^T; 0 or less: 1 / sqrt(head_dim)
    float softcap = 0.0F;   ///< above 0; needed when the operator has a softcap
    float epsilon = 1e-5F;  ///< the norms', from 0
};

/// A prepared AttentionAppend.
class AttentionAppendKernel : public PreparedKernel {
  public:
    AttentionAppendKernel() = default;

    /// Enqueues the operator for `batch`, `kv_len` (0: does nothing). Checks fail before anything is
    /// enqueued. kv_len is the most that any sequence has, from 1; with batch 0 nothing is done.
    [[nodiscard]] Status run(CUstream_st* stream, const AttentionAppendArgs& args,
                             AttentionAppendSizes sizes) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const AttentionAppendArgs& args, AttentionAppendSizes sizes) const;
    /// Bytes of device memory, aligned to 256, that any call of up to these sizes needs; 0: none. Throws
    /// Error for sizes below 0 or above the prepared maximum, and when the object is empty.
    [[nodiscard]] std::int64_t workspace_bytes(AttentionAppendSizes sizes) const;

    /// For Runtime::prepare().
    explicit AttentionAppendKernel(std::shared_ptr<const runtime::Prepared> prepared)
        : PreparedKernel(std::move(prepared)) {}
};

}  // namespace hone

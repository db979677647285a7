// Arguments of attention and of its append become calls, in the order that their families declare.
#pragma once

#include "hone/attention.h"
#include "hone/rope_kv_append.h"
#include "kernel_templates/plan.h"

namespace hone::runtime {

/// Extents of a tensor [batch, tokens, heads, head_dim].
struct TensorExtents {
    std::int64_t tokens = 0;
    std::int64_t heads = 0;
    std::int64_t head_dim = 0;
};
/// Strides with numbers in place of 0.
[[nodiscard]] AttentionStrides filled_in(AttentionStrides given, const TensorExtents& extents) noexcept;

/// Descriptions are filled in, sizes within what was prepared, from 1.
[[nodiscard]] Call decode_call(const Attention& attention, const AttentionArgs& args,
                               AttentionSizes sizes) noexcept;
[[nodiscard]] Call prefill_call(const Attention& attention, const AttentionArgs& args,
                                AttentionSizes sizes) noexcept;
[[nodiscard]] Call rope_call(const RopeKvAppend& rope, const RopeKvAppendArgs& args,
                             std::int64_t tokens) noexcept;

/// The strides of k or v, or of the cache.
[[nodiscard]] AttentionStrides kv_strides(const Attention& attention, const AttentionStrides& given,
                                          std::int64_t kv_len) noexcept;

/// Entries of a row of the page table; `given` 0: as many pages as kv_len takes.
[[nodiscard]] std::int64_t page_table_stride(std::int64_t given, std::int64_t page_size,
                                             std::int64_t kv_len) noexcept;

}  // namespace hone::runtime

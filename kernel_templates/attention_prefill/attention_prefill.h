// Attention of many queries on the host: the problem as plain numbers. A variant has a folder: plan.h and
// plan.cpp (how its kernel is launched), space.cpp (its configs, and which of them to prefer), kernel.cu.
#pragma once

#include <array>

#include "kernel_templates/attention_prefill/declaration.h"
#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/kit/launches.h"

namespace hone::attention_prefill {

/// A problem as numbers.
struct AttentionProblem : Fields {
    AttentionProblem() = default;
    explicit AttentionProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    /// Queries are packed, and keys and values, too.
    [[nodiscard]] bool packed() const { return packs_keys() || lengths == Lengths::paged; }
    [[nodiscard]] bool packs_keys() const { return lengths == Lengths::cumulative; }
    [[nodiscard]] bool has_kv_lengths() const { return lengths == Lengths::kv || lengths == Lengths::paged; }
    [[nodiscard]] bool paged() const { return page_size > 0; }
    /// Pages that hold kv_len tokens; without pages 1.
    [[nodiscard]] std::int64_t pages() const { return paged() ? ceil_div(kv_len, page_size) : 1; }
    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    [[nodiscard]] bool fp8_cache() const { return kv_dtype == KvDtype::fp8; }
    /// Element type of keys and values.
    [[nodiscard]] Dtype cache_dtype() const { return fp8_cache() ? Dtype::fp8_e4m3 : dtype; }
    [[nodiscard]] std::int64_t cache_element_bytes() const { return size_bytes(cache_dtype()); }
    /// Heads of all sequences.
    [[nodiscard]] std::int64_t slots() const { return batch * heads; }
    /// Whether causal tiles differ in length: a window makes them equal.
    [[nodiscard]] bool has_ramp() const { return causal && window == 0; }

    // When tuning, packed tensors have one sequence behind the other, and pages are shuffled.
    [[nodiscard]] std::int64_t tensors() const { return packed() ? 1 : batch; }
    [[nodiscard]] std::int64_t tensor_tokens(std::int64_t tokens) const {
        return packed() ? batch * tokens : tokens;
    }
    [[nodiscard]] std::int64_t kv_tensors() const {
        if (paged()) return batch * pages();
        return packs_keys() ? 1 : batch;
    }
    [[nodiscard]] std::int64_t kv_tensor_tokens() const {
        if (paged()) return page_size;
        return packs_keys() ? batch * kv_len : kv_len;
    }
    /// By how many keys a sequence is shorter than the one before it, when tuning with lengths: from kv_len
    /// down, but by no more than a half and not below q_len.
    [[nodiscard]] std::int64_t tuning_step() const {
        return (kv_len - (q_len < kv_len ? q_len : kv_len)) / 2 / batch;
    }
};

/// What says where pages are, what codes count and what sinks are comes behind all other parameters of a
/// kernel: so that those of problems without stand where they stood, and the kernels' machine code is the
/// same, before there were any.
inline constexpr KernelArg later_args[] = {
    pointer_arg(page_table, "page_table"),     scalar_arg(page_table_stride, "page_table_stride"),
    scalar_arg(pool_pages, "pool_pages"),      pointer_arg(k_scale, "k_scale"),
    pointer_arg(v_scale, "v_scale"),           pointer_arg(sinks, "sinks"),
    narrow_arg(least_queries, "least_queries")};
template <std::size_t count>
[[nodiscard]] consteval auto later_last(const std::array<KernelArg, count>& args) {
    return with_last(args, later_args);
}

}  // namespace hone::attention_prefill

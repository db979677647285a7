// Attention decode on the host: the problem as plain numbers. A variant's plan stands in <variant>_plan.cpp,
// its configs and which of them to prefer in <variant>.cpp, beside <variant>.cu; ring has a folder.
#pragma once

#include <algorithm>
#include <array>

#include "kernel_templates/attention_decode/declaration.h"
#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/kit/launches.h"

namespace hone::attention_decode {

/// A problem as numbers.
struct DecodeProblem : Fields {
    DecodeProblem() = default;
    explicit DecodeProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] bool fp8_cache() const { return kv_dtype == KvDtype::fp8; }
    [[nodiscard]] Dtype cache_dtype() const { return fp8_cache() ? Dtype::fp8_e4m3 : dtype; }
    [[nodiscard]] std::int64_t cache_element_bytes() const { return size_bytes(cache_dtype()); }
    [[nodiscard]] std::int64_t group() const { return heads / kv_heads; }
    [[nodiscard]] std::int64_t rows() const { return group() * q_tokens; }
    [[nodiscard]] bool has_lengths() const { return lengths != Lengths::no; }
    [[nodiscard]] bool packed() const { return lengths == Lengths::packed; }
    [[nodiscard]] bool paged() const { return page_size > 0; }
    /// Pages that hold kv_len tokens; 1 of a contiguous cache.
    [[nodiscard]] std::int64_t pages() const { return paged() ? ceil_div(kv_len, page_size) : 1; }
    /// Pages of the cache, or sequences of a contiguous one, and the tokens of one.
    [[nodiscard]] std::int64_t cache_rows() const { return batch * pages(); }
    [[nodiscard]] std::int64_t cache_row_tokens() const { return paged() ? page_size : kv_len; }
    // When tuning, packed tensors have a token of one sequence behind that of the other.
    [[nodiscard]] std::int64_t tensors() const { return packed() ? 1 : batch; }
    [[nodiscard]] std::int64_t tensor_tokens() const { return packed() ? batch * q_len : q_len; }
    /// Tokens of a sequence that some query sees.
    [[nodiscard]] std::int64_t tokens_seen() const {
        return window == 0 ? kv_len : std::min(kv_len, window + q_tokens - 1);
    }
};

/// Elements of an access of 16 bytes of the cache, of which heads must be whole; 8 at least: accesses to q.
[[nodiscard]] inline std::int64_t wide_access(const DecodeProblem& p) { return p.fp8_cache() ? 16 : 8; }

/// What sinks are, and where packed queries begin, comes behind all other parameters of a kernel: so that
/// those of problems without stand where they stood, and the kernels' machine code is the same, before there
/// were any.
inline constexpr KernelArg later_args[] = {pointer_arg(sinks, "sinks"), pointer_arg(q_starts, "q_starts"),
                                           scalar_arg(q_rows, "q_rows")};
template <std::size_t count>
[[nodiscard]] consteval auto later_last(const std::array<KernelArg, count>& args) {
    return with_last(args, later_args);
}
inline constexpr auto kernel_args = later_last(std::to_array(call_args));

}  // namespace hone::attention_decode

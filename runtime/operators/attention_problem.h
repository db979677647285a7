// Which problems the calls of an Attention can reach: those of decode, of prefill, or both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "hone/attention.h"
#include "kernel_templates/problem.h"

namespace hone::runtime {

/// Queries of a sequence that the kernels of decode take at once.
inline constexpr std::int64_t most_decode_queries = 16;

/// Whether calls of so many queries a sequence take the kernels of decode.
[[nodiscard]] bool is_decode(const Attention& attention, std::int64_t q_len) noexcept;
/// Index, in AttentionProblems::decode, of what serves so many queries.
[[nodiscard]] std::size_t decode_index(std::int64_t q_len) noexcept;

/// What the calls of an operator can reach: problems of the largest call.
struct AttentionProblems {
    /// For up to 1, 2, 4, 8, 16 queries, where there are calls; the first also for single tokens among
    /// queries that are packed over pages.
    std::array<std::optional<Problem>, 5> decode;
    std::optional<Problem> prefill;
    std::int64_t least_prefill = 1;  ///< fewest queries of a call that prefill serves
};

/// Throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] AttentionProblems attention_problems(const Attention& attention);

/// The description with a number in place of 0 for kv_heads, and with lengths where pages of packed calls
/// need them.
[[nodiscard]] Attention filled_in(Attention attention);

}  // namespace hone::runtime

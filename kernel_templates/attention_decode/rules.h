// Constraints that several variants share. C is the config's struct, for which cut(p, c) says how it cuts.
#pragma once

#include "kernel_templates/attention_decode/cut.h"
#include "kernel_templates/kit/typed.h"

namespace hone::attention_decode {

/// Whether `rows` are the fewest that a block may have, `fewest`, or less than twice as many as there are.
[[nodiscard]] inline bool rows_exist(const DecodeProblem& p, std::int64_t rows, std::int64_t fewest) {
    return rows == fewest || p.rows() > rows / 2;
}

/// Whether blocks with so much shared memory and so many threads may share a multiprocessor.
template <class C>
[[nodiscard]] bool blocks_fit(const C& c, std::int64_t bytes, const DeviceTraits& traits) {
    return bytes <= traits.max_shared_bytes_per_block &&
           c.blocks_per_sm * (bytes + 1024) <= traits.shared_bytes_per_sm &&
           c.blocks_per_sm * c.warps * 32 <= traits.max_threads_per_sm;
}

/// For variants on tensor cores.
inline constexpr Constraint rows_are_wide =
    rule("tensor cores multiply fp16 and bf16, in heads of whole accesses of 16 bytes",
         [](const DecodeProblem& p) { return p.dtype != Dtype::fp32 && p.head_dim % wide_access(p) == 0; });

template <class C>
inline constexpr Constraint has_rows_of_8_or_16 = rule("a block has 16 rows where there are more than 8",
                                                       [](const DecodeProblem& p, const C& c) {
                                                           return rows_exist(p, c.rows, 8);
                                                       });

template <class C>
inline constexpr Constraint sums_fit_shared_memory =
    rule("the warps' sums must fit shared memory, as often as blocks are resident",
         [](const DecodeProblem& p, const C& c, const DeviceTraits& t) {
             return blocks_fit(c, cut(p, c).geometry.join_bytes(), t);
         });

template <class C>
inline constexpr Constraint lists_fit_side_by_side =
    rule("lists stand side by side where there are several, each with a block",
         [](const DecodeProblem& p, const C& c, const DeviceTraits& t) {
             return c.side_by_side == 0 ||
                    (p.kv_heads > 1 && cut(p, c).geometry.lists() <= t.sm_count * c.blocks_per_sm);
         });

template <class C>
inline constexpr Constraint units_are_filled =
    rule("units of more than 16 tokens are for sequences that have more than half of them",
         [](const DecodeProblem& p, const C& c) { return c.unit == 16 || c.unit < 2 * p.tokens_seen(); });

}  // namespace hone::attention_decode

// What the variants gemv, mma and strips obey alike, and what a stream of weights costs (few_tokens.h has
// their plan).
#pragma once

#include <algorithm>

#include "kernel_templates/kit/rules.h"
#include "kernel_templates/linear/few_tokens.h"

namespace hone::linear::few_tokens {

/// Bytes of shared memory in which a block's warps leave their sums.
[[nodiscard]] std::int64_t partial_bytes(const LinearProblem&, const FewTokensConfig&);
/// Whether the config's tokens are the least of the tunable's values that holds the problem's, or the
/// largest.
[[nodiscard]] bool holds_tokens(const LinearProblem&, const FewTokensConfig&, const Tunable& tokens);

/// What the cost model needs of a candidate.
struct Stream {
    std::int64_t registers = 0;  ///< a thread
    double loads = 1;            ///< loads of 16 bytes that a thread keeps in flight
    double latency_us = 1;       ///< time of a batch of loads, and of what the thread then does with it
    double instructions = 1;     ///< for each 16 bytes of a weight
    double x_bytes = 0;          ///< through level 1, for each byte of a weight
    double bandwidth = 1;        ///< share of the memory's that such streams reach
    double rest_us = 0;          ///< for adding up the warps' sums
};
/// Modelled microseconds: the weights over the bandwidth, over what the loads in flight can draw and over
/// issue slots, joined by a soft maximum, plus what a launch costs. Fitted with wgmma's (wgmma/rank.cpp).
[[nodiscard]] double predict_us(const LinearProblem&, const FewTokensConfig&, const Stream&,
                                const DeviceTraits&);

inline constexpr Constraint elements_of_tensor_cores = rule(
    "tensor cores multiply fp16 and bf16", [](const LinearProblem& p) { return p.dtype != Dtype::fp32; });
inline constexpr Constraint rows_are_aligned =
    rule("rows must start at multiples of 16 bytes: in is a multiple of 8",
         [](const LinearProblem& p) { return p.in % 8 == 0; });
inline constexpr Constraint more_than_a_token =
    rule("one token is gemv's", [](const LinearProblem& p) { return p.tokens > 1; });
/// `tunables`: those of the variant.
template <const auto& tunables>
inline constexpr Constraint holds_up_to_8_tokens =
    rule("a block holds all tokens, up to 8", [](const LinearProblem& p, const FewTokensConfig& c) {
        return p.tokens <= 8 && holds_tokens(p, c, tunables[index_of(&FewTokensConfig::tokens)]);
    });
/// `loads`: of 16 bytes that a thread has under way.
template <std::int64_t (*loads)(const LinearProblem&, const FewTokensConfig&)>
inline constexpr Constraint two_to_eight_loads = rule(
    "a thread keeps two to eight loads in flight", [](const LinearProblem& p, const FewTokensConfig& c) {
        return loads(p, c) >= 2 && loads(p, c) <= 8;
    });
inline constexpr Constraint resident_blocks_have_work =
    rule("resident blocks walk where there is work for most of them, and accesses have 16 bytes: narrow ones "
         "spill",
         [](const LinearProblem& p, const FewTokensConfig& c, const DeviceTraits& t) {
             if (c.blocks_per_sm == 0) return true;
             return access_elements(p) * p.element_bytes() == 16 && 2 * steps(p, c) * groups(p, c) > t.sm_count * c.blocks_per_sm;
         });
/// `registers`: what a thread needs.
template <std::int64_t (*registers)(const LinearProblem&, const FewTokensConfig&)>
inline constexpr Constraint registers_fit = rule(
    "loads and sums must fit a thread's registers", [](const LinearProblem& p, const FewTokensConfig& c) {
        const std::int64_t share = 65536 / (c.threads() * std::max<std::int64_t>(c.blocks_per_sm, 1));
        return registers(p, c) <= std::min<std::int64_t>(204, share);
    });
/// Whether a variant's norm can be part of its products.
[[nodiscard]] constexpr bool gemv_can_fold_norm(const LinearProblem&) { return true; }
[[nodiscard]] constexpr bool mma_can_fold_norm(const LinearProblem& p) { return p.dtype == Dtype::bf16; }
/// `can_fold`: whether the variant can.
template <bool (*can_fold)(const LinearProblem&)>
inline constexpr Constraint norm_is_folded =
    rule("a norm is folded where it can be, or from 5 tokens on may have a launch of its own",
         [](const LinearProblem& p, const FewTokensConfig& c) {
             const bool possible = p.norm && can_fold(p);
             return c.fold_norm != 0 ? possible : !possible || p.tokens > 4;
         });
inline constexpr Constraint rows_exist =
    rule("a warp's rows must exist",
         [](const LinearProblem& p, const FewTokensConfig& c) { return p.out >= c.rows; });
inline constexpr Constraint partials_fit =
    rule("the warps' partial sums must fit 48 KiB",
         [](const LinearProblem& p, const FewTokensConfig& c) { return partial_bytes(p, c) <= 48 * 1024; });
inline constexpr Constraint hint_needs_sm_90 = rule(
    "the hint of what leaves level 2 first needs sm_90",
    [](const FewTokensConfig& c, const DeviceTraits& t) { return c.load_hint != 3 || t.compute_major >= 9; });

}  // namespace hone::linear::few_tokens

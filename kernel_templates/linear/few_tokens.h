// What the variants gemv and mma share on the host (few_tokens.cuh on the device): tunables, plan,
// constraints and the cost of a stream of weights.
#pragma once

#include <algorithm>

#include "kernel_templates/linear/linear.h"

namespace hone::linear::few_tokens {

/// Index of each tunable of either variant.
enum Index : std::size_t {
    block_tokens,
    rows,
    k_warps,
    row_warps,
    unroll,
    load_hint,
    blocks_per_sm,
    programmatic,
    fold_norm
};

[[nodiscard]] std::int64_t threads(const Config&);
/// Groups of tokens, a block each, and steps over the weight's rows.
[[nodiscard]] std::int64_t groups(const LinearProblem&, const Config&);
[[nodiscard]] std::int64_t steps(const LinearProblem&, const Config&);
[[nodiscard]] std::int64_t partial_bytes(const LinearProblem&, const Config&);
/// Whether `tokens` is the least of the declared values that holds the problem's tokens, or the largest.
[[nodiscard]] bool holds_tokens(const LinearProblem&, const Config&, const Tunable& tokens);
[[nodiscard]] Plan plan(const char* kernel, const Problem&, const Config&, const DeviceTraits&);

/// What the cost model needs of a candidate.
struct Stream {
    std::int64_t registers = 0;  ///< a thread
    double loads = 1;            ///< of 16 bytes, that a thread keeps in flight
    double latency_us = 1;       ///< of a batch of them, and of what the thread then does with it
    double instructions = 1;     ///< for each 16 bytes of a weight
    double x_bytes = 0;          ///< through level 1, for each byte of a weight
    double bandwidth = 1;        ///< share of the memory's that such streams reach
    double rest_us = 0;          ///< for adding up the warps' sums
};
/// Modelled microseconds: the weights over the bandwidth, over what the loads in flight can draw and over
/// issue slots, joined by a soft maximum, plus what a launch costs. Fitted with wgmma's (wgmma/rank.cpp).
[[nodiscard]] double predict_us(const Problem&, const Config&, const Stream&, const DeviceTraits&);

// Constraints of both.
inline constexpr Constraint resident_blocks_have_work{
    "resident blocks walk where there is work for most of them",
    [](const Problem& p, const Config& c, const DeviceTraits& t) {
        const LinearProblem problem = linear_problem(p);
        return c[blocks_per_sm] == 0 ||
               2 * steps(problem, c) * groups(problem, c) > t.sm_count * c[blocks_per_sm];
    }};
/// `registers`: what a thread needs, of a LinearProblem and a Config.
template <auto registers>
inline constexpr Constraint registers_fit{
    "loads and sums must fit a thread's registers",
    [](const Problem& p, const Config& c, const DeviceTraits&) {
        const std::int64_t of_block = 65536 / (threads(c) * std::max<std::int64_t>(c[blocks_per_sm], 1));
        return registers(linear_problem(p), c) <= std::min<std::int64_t>(204, of_block);
    }};
/// `can_fold`: whether the variant can, of a LinearProblem.
template <auto can_fold>
inline constexpr Constraint norm_is_folded{
    "a norm is folded where it can be, or from 5 tokens on may have a launch of its own",
    [](const Problem& problem, const Config& c, const DeviceTraits&) {
        const LinearProblem p = linear_problem(problem);
        const bool possible = p.norm && can_fold(p);
        return c[fold_norm] != 0 ? possible : !possible || p.tokens > 4;
    }};
inline constexpr Constraint rows_exist{
    "a warp's rows must exist",
    [](const Problem& p, const Config& c, const DeviceTraits&) { return linear_problem(p).out >= c[rows]; }};
inline constexpr Constraint partials_fit{"the warps' partial sums must fit 48 KiB",
                                         [](const Problem& p, const Config& c, const DeviceTraits&) {
                                             return partial_bytes(linear_problem(p), c) <= 48 * 1024;
                                         }};
inline constexpr Constraint hint_needs_sm_90{"the hint of what leaves level 2 first needs sm_90",
                                             [](const Problem&, const Config& c, const DeviceTraits& t) {
                                                 return c[load_hint] != 3 || t.compute_major >= 9;
                                             }};

}  // namespace hone::linear::few_tokens

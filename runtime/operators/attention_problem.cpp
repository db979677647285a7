#include "runtime/operators/attention_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "runtime/operators/attention.h"
#include "runtime/operators/words.h"

namespace hone::runtime {
namespace {

void check_description(const Attention& attention) {
    static_cast<void>(word(attention.kv_dtype));
    if (attention.max_q_len < 1)
        throw std::invalid_argument(fmt::format("max_q_len is {}; allowed: from 1", attention.max_q_len));
    if (attention.min_q_len < 1 || attention.min_q_len > attention.max_q_len) {
        throw std::invalid_argument(fmt::format("min_q_len is {}; allowed: 1 to max_q_len, {}",
                                                attention.min_q_len, attention.max_q_len));
    }
    if (attention.window != 0 && !attention.causal) {
        throw std::invalid_argument(
            fmt::format("window is {}; allowed without causal: 0; a window ends at the query's own key",
                        attention.window));
    }
    if (packs_keys(attention) && attention.lengths) {
        throw std::invalid_argument(
            "lengths is true; allowed with packed and no page_size: false; q_starts and kv_starts tell the "
            "lengths");
    }
}

/// A single query stands behind all keys: causal or not is the same problem, but for where a window begins.
Problem problem_of_single(Attention attention) {
    if (attention.window == 0) attention.causal = false;
    return decode_problem(attention, 1);
}

}  // namespace

bool is_decode(const Attention& attention, std::int64_t q_len) noexcept {
    return !attention.packed && q_len <= most_decode_queries;
}

std::size_t decode_index(std::int64_t q_len) noexcept {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(q_len - 1)));
}

AttentionProblems attention_problems(const Attention& given) {
    const Attention attention = filled_in(given);
    check_description(attention);
    AttentionProblems problems;
    if (!is_decode(attention, attention.max_q_len)) problems.prefill = prefill_problem(attention);
    problems.least_prefill =
        attention.packed ? attention.min_q_len : std::max(attention.min_q_len, most_decode_queries + 1);
    if (attention.packed && attention.page_size != 0) problems.decode[0] = problem_of_single(attention);
    if (!is_decode(attention, attention.min_q_len)) return problems;
    const std::int64_t most = std::min(attention.max_q_len, most_decode_queries);
    for (std::size_t i = decode_index(attention.min_q_len); i <= decode_index(most); ++i) {
        problems.decode[i] =
            i == 0 ? problem_of_single(attention) : decode_problem(attention, std::int64_t{1} << i);
    }
    return problems;
}

Attention filled_in(Attention attention) {
    if (attention.kv_heads == 0) attention.kv_heads = attention.heads;
    if (attention.packed && attention.page_size != 0) attention.lengths = true;
    return attention;
}

}  // namespace hone::runtime

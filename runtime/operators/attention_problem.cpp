#include "runtime/operators/attention_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string_view>

#include "kernel_templates/catalog.h"
#include "kernel_templates/family.h"
#include "runtime/operators/describe_problem.h"

namespace hone::runtime {
namespace {

/// A single query stands behind all keys: causal or not is the same problem, but for where a window begins.
Problem decode_problem(Attention attention, std::int64_t q_tokens) {
    if (q_tokens == 1 && attention.window == 0) attention.causal = false;
    return describe_problem(
        "attention_decode",
        {{"dtype", dtype_name(attention.dtype)},
         {"kv_dtype", word(attention.kv_dtype)},
         {"causal", yes_no(attention.causal)},
         {"window", attention.window},
         {"softcap", yes_no(attention.softcap)},
         {"lse", yes_no(attention.lse)},
         {"lengths", yes_no(attention.lengths)},
         {"page_size", attention.page_size},
         {"heads", attention.heads},
         {"kv_heads", attention.kv_heads},
         {"head_dim", attention.head_dim},
         {"q_tokens", q_tokens}},
        {{"max_batch", attention.max_batch}, {"max_kv_len", attention.max_kv_len}, {"q_len", q_tokens}});
}

Problem prefill_problem(const Attention& attention) {
    const std::string_view lengths = attention.packed ? "cumulative" : attention.lengths ? "kv" : "none";
    return describe_problem("attention_prefill",
                            {{"dtype", dtype_name(attention.dtype)},
                             {"causal", yes_no(attention.causal)},
                             {"window", attention.window},
                             {"softcap", yes_no(attention.softcap)},
                             {"lse", yes_no(attention.lse)},
                             {"lengths", lengths},
                             {"heads", attention.heads},
                             {"kv_heads", attention.kv_heads},
                             {"head_dim", attention.head_dim}},
                            {{"max_batch", attention.max_batch},
                             {"max_q_len", attention.max_q_len},
                             {"max_kv_len", attention.max_kv_len}});
}

/// Prefill reads tensors: caches in pages or in codes are decode's alone.
void check_cache(const Attention& attention) {
    if (attention.page_size == 0 && attention.kv_dtype == KvDtype::same) return;
    const std::string_view cache = attention.page_size != 0 ? "a paged cache" : "an fp8 cache";
    if (attention.packed) {
        throw std::invalid_argument(fmt::format(
            "packed is true; allowed with {}: false; packed calls read k and v themselves", cache));
    }
    if (attention.max_q_len <= most_decode_queries) return;
    throw std::invalid_argument(fmt::format(
        "max_q_len is {}; allowed with {}: 1 to {}; prepare another operator, which reads k and v before "
        "they go into the cache, for longer calls",
        attention.max_q_len, cache, most_decode_queries));
}

void check_description(const Attention& attention) {
    static_cast<void>(word(attention.kv_dtype));
    check_cache(attention);
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
    if (attention.packed && attention.lengths) {
        throw std::invalid_argument(
            "lengths is true; allowed with packed: false; q_starts and kv_starts tell the lengths");
    }
}

std::int64_t largest_of(std::string_view family, std::string_view field) {
    const Family* found = find_family(family);
    if (found == nullptr) throw std::invalid_argument(fmt::format("this build has no family {}", family));
    return found->fields[static_cast<std::size_t>(field_index(*found, field))].max;
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
    if (!is_decode(attention, attention.min_q_len)) return problems;
    const std::int64_t most = std::min(attention.max_q_len, most_decode_queries);
    for (std::size_t i = decode_index(attention.min_q_len); i <= decode_index(most); ++i)
        problems.decode[i] = decode_problem(attention, std::int64_t{1} << i);
    return problems;
}

Problem rope_problem(const RopeKvAppend& given) {
    const RopeKvAppend rope = filled_in(given);
    return describe_problem("rope_kv_append",
                            {{"dtype", dtype_name(rope.dtype)},
                             {"kv_dtype", word(rope.kv_dtype)},
                             {"style", word(rope.style)},
                             {"norm", yes_no(rope.norm)},
                             {"slots", yes_no(rope.slots)},
                             {"page_size", rope.page_size},
                             {"heads", rope.heads},
                             {"kv_heads", rope.kv_heads},
                             {"head_dim", rope.head_dim},
                             {"rotary_dim", rope.rotary_dim}},
                            {{"max_tokens", rope.max_tokens},
                             {"q_len", rope.max_tokens},
                             {"kv_len", largest_of("rope_kv_append", "kv_len")}});
}

Attention filled_in(Attention attention) {
    if (attention.kv_heads == 0) attention.kv_heads = attention.heads;
    return attention;
}

RopeKvAppend filled_in(RopeKvAppend rope) {
    if (rope.kv_heads == 0) rope.kv_heads = rope.heads;
    if (rope.rotary_dim == -1) rope.rotary_dim = rope.head_dim;
    return rope;
}

}  // namespace hone::runtime

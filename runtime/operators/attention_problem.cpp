#include "runtime/operators/attention_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string_view>

#include "kernel_templates/attention_decode/attention_decode.h"
#include "kernel_templates/attention_prefill/attention_prefill.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/rope_kv_append/rope_kv_append.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/operators/describe_problem.h"

namespace hone::runtime {
namespace {

namespace decode = attention_decode;
namespace prefill = attention_prefill;
namespace rope_append = rope_kv_append;

constexpr RowStride strides_of_decode[] = {
    {decode::q_batch_stride, decode::q},         {decode::q_token_stride, decode::q},
    {decode::q_head_stride, decode::q},          {decode::out_batch_stride, decode::out},
    {decode::out_token_stride, decode::out},     {decode::out_head_stride, decode::out},
    {decode::cache_stride, decode::k_cache},     {decode::cache_token_stride, decode::k_cache},
    {decode::cache_head_stride, decode::k_cache}};

constexpr RowStride strides_of_prefill[] = {
    {prefill::q_batch_stride, prefill::q},     {prefill::q_token_stride, prefill::q},
    {prefill::q_head_stride, prefill::q},      {prefill::k_batch_stride, prefill::k},
    {prefill::k_token_stride, prefill::k},     {prefill::k_head_stride, prefill::k},
    {prefill::v_batch_stride, prefill::v},     {prefill::v_token_stride, prefill::v},
    {prefill::v_head_stride, prefill::v},      {prefill::out_batch_stride, prefill::out},
    {prefill::out_token_stride, prefill::out}, {prefill::out_head_stride, prefill::out}};

constexpr RowStride strides_of_rope[] = {{rope_append::q_token_stride, rope_append::q},
                                         {rope_append::q_head_stride, rope_append::q},
                                         {rope_append::k_token_stride, rope_append::k},
                                         {rope_append::k_head_stride, rope_append::k},
                                         {rope_append::v_token_stride, rope_append::v},
                                         {rope_append::v_head_stride, rope_append::v},
                                         {rope_append::q_out_token_stride, rope_append::q_out},
                                         {rope_append::q_out_head_stride, rope_append::q_out},
                                         {rope_append::cache_stride, rope_append::k_cache},
                                         {rope_append::cache_token_stride, rope_append::k_cache},
                                         {rope_append::cache_head_stride, rope_append::k_cache}};

std::string_view kv_dtype_name(KvDtype dtype) {
    switch (dtype) {
        case KvDtype::same: return "same";
        case KvDtype::fp8: return "fp8_e4m3";
    }
    throw std::invalid_argument(fmt::format("kv_dtype is {}; allowed: same, fp8", static_cast<int>(dtype)));
}

std::string_view style_name(RopeStyle style) {
    switch (style) {
        case RopeStyle::half: return "half";
        case RopeStyle::interleaved: return "interleaved";
    }
    throw std::invalid_argument(
        fmt::format("style is {}; allowed: half, interleaved", static_cast<int>(style)));
}

/// The fields that both families have.
std::string common_fields(const Attention& attention) {
    return fmt::format("dtype={} causal={} window={} softcap={} lse={} heads={} kv_heads={} head_dim={}",
                       dtype_name(attention.dtype), yes_no(attention.causal), attention.window,
                       yes_no(attention.softcap), yes_no(attention.lse), attention.heads, attention.kv_heads,
                       attention.head_dim);
}

/// A single query stands behind all keys: causal or not is the same problem, but for where a window begins.
Problem decode_problem(Attention attention, std::int64_t q_tokens) {
    if (q_tokens == 1 && attention.window == 0) attention.causal = false;
    return describe_problem(
        "attention_decode",
        fmt::format("{} kv_dtype={} lengths={} page_size={} q_tokens={}", common_fields(attention),
                    kv_dtype_name(attention.kv_dtype), yes_no(attention.lengths), attention.page_size,
                    q_tokens),
        {{"max_batch", attention.max_batch}, {"max_kv_len", attention.max_kv_len}, {"q_len", q_tokens}});
}

Problem prefill_problem(const Attention& attention) {
    const char* const lengths = attention.packed ? "cumulative" : attention.lengths ? "kv" : "none";
    return describe_problem("attention_prefill",
                            fmt::format("{} lengths={}", common_fields(attention), lengths),
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
    static_cast<void>(kv_dtype_name(attention.kv_dtype));
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

AttentionKernel prepare_attention(Dispatcher& dispatcher, const Attention& attention,
                                  const DeviceSession* checking) {
    const AttentionProblems problems = attention_problems(attention);
    AttentionKernel::Decode decode;
    for (std::size_t i = 0; i < decode.size(); ++i) {
        if (problems.decode[i]) decode[i] = dispatcher.prepare(*problems.decode[i], strides_of_decode);
    }
    std::shared_ptr<const PreparedOperator> prefill;
    if (problems.prefill) {
        const Sizes least = prefill_sizes({.q_len = problems.least_prefill});
        prefill = dispatcher.prepare(*problems.prefill, strides_of_prefill, least);
    }
    return {std::move(decode), std::move(prefill), filled_in(attention), checking};
}

Problem rope_problem(const RopeKvAppend& given) {
    const RopeKvAppend rope = filled_in(given);
    return describe_problem(
        "rope_kv_append",
        fmt::format("dtype={} kv_dtype={} style={} norm={} slots={} page_size={} heads={} kv_heads={} "
                    "head_dim={} rotary_dim={}",
                    dtype_name(rope.dtype), kv_dtype_name(rope.kv_dtype), style_name(rope.style),
                    yes_no(rope.norm), yes_no(rope.slots), rope.page_size, rope.heads, rope.kv_heads,
                    rope.head_dim, rope.rotary_dim),
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

std::span<const RowStride> rope_strides() { return strides_of_rope; }

}  // namespace hone::runtime

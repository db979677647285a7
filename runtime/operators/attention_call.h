// What the calls of attention and of its append are made with, beside what their declarations say.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "hone/attention.h"

namespace hone::runtime {

/// Extents of a tensor [batch, tokens, heads, head_dim].
struct TensorExtents {
    std::int64_t tokens = 0;
    std::int64_t heads = 0;
    std::int64_t head_dim = 0;
};

/// Strides with numbers in place of 0.
[[nodiscard]] inline AttentionStrides filled_in(AttentionStrides given,
                                                const TensorExtents& extents) noexcept {
    if (given.head == 0) given.head = extents.head_dim;
    if (given.token == 0) given.token = extents.heads * given.head;
    if (given.batch == 0) given.batch = extents.tokens * given.token;
    return given;
}

/// The strides of k or v, or of the cache.
[[nodiscard]] inline AttentionStrides kv_strides(const Attention& attention, const AttentionStrides& given,
                                                 std::int64_t kv_len) noexcept {
    const std::int64_t tokens = attention.page_size != 0 ? attention.page_size : kv_len;
    return filled_in(given, {tokens, attention.kv_heads, attention.head_dim});
}

/// Entries of a row of the page table; `given` 0: as many pages as kv_len takes.
[[nodiscard]] constexpr std::int64_t page_table_stride(std::int64_t given, std::int64_t page_size,
                                                       std::int64_t kv_len) noexcept {
    return given != 0 || page_size == 0 ? given : (kv_len + page_size - 1) / page_size;
}

[[nodiscard]] inline float scale_of(std::int64_t head_dim, float given) noexcept {
    return given > 0 ? given : 1.0F / std::sqrt(static_cast<float>(head_dim));
}
[[nodiscard]] inline float scale_of(const Attention& attention, float given) noexcept {
    return scale_of(attention.head_dim, given);
}

/// Kernels without a softcap do not read it.
[[nodiscard]] constexpr float softcap_of(const Attention& attention, float given) noexcept {
    return attention.softcap ? given : 1.0F;
}

/// Whether k and v are packed as q is: pages hold them otherwise.
[[nodiscard]] constexpr bool packs_keys(const Attention& attention) noexcept {
    return attention.packed && attention.page_size == 0;
}

[[nodiscard]] constexpr bool same_strides(const AttentionStrides& a, const AttentionStrides& b) noexcept {
    return a.batch == b.batch && a.token == b.token && a.head == b.head;
}

/// Whether k and v have the same strides, as the kernels of decode read them.
[[nodiscard]] inline bool strides_agree(const Attention& attention, const AttentionArgs& args,
                                        std::int64_t kv_len) noexcept {
    return same_strides(kv_strides(attention, args.k_strides, kv_len),
                        kv_strides(attention, args.v_strides, kv_len));
}

/// Sequences in front of a call's prompts, where the host knows these; all, where it does not.
[[nodiscard]] constexpr std::int64_t sequences_in_front(const AttentionArgs& args,
                                                        const AttentionSizes& sizes) noexcept {
    return sizes.batch - args.prompts;
}

/// Whether sequences of a single query, packed beside others over pages, are left to the kernels of decode:
/// not where the host knows that there are none, or as many tokens as there are say that all have more.
[[nodiscard]] inline bool sets_singles_apart(const Attention& attention, const AttentionArgs& args,
                                             const AttentionSizes& sizes) noexcept {
    const bool may_have =
        args.prompts > 0 ? sequences_in_front(args, sizes) > 0 : args.q_tokens != sizes.batch * sizes.q_len;
    return attention.packed && attention.page_size != 0 && strides_agree(attention, args, sizes.kv_len) &&
           (sizes.q_len == 1 || may_have);
}

/// The same call without its first sequences; packed queries stay where they are, as starts say.
[[nodiscard]] inline AttentionArgs behind(AttentionArgs args, std::int64_t sequences,
                                          const Attention& attention, const AttentionSizes& sizes) noexcept {
    args.q_starts += sequences;
    args.kv_lengths += sequences;
    args.page_table +=
        sequences * page_table_stride(args.page_table_stride, attention.page_size, sizes.kv_len);
    return args;
}

/// How decode learns the sequences' lengths, and prefill.
[[nodiscard]] constexpr std::string_view decode_lengths_of(const Attention& attention) noexcept {
    if (attention.packed) return "packed";
    return attention.lengths ? "yes" : "no";
}
[[nodiscard]] constexpr std::string_view lengths_of(const Attention& attention) noexcept {
    if (attention.packed) return packs_keys(attention) ? "cumulative" : "paged";
    return attention.lengths ? "kv" : "none";
}

}  // namespace hone::runtime

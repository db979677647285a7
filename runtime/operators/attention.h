// Attention as problems and calls of families. Generated from kernel_templates/attention_prefill/operators.py
// by `./hone generate`.
#pragma once

#include "hone/attention.h"
#include "kernel_templates/attention_decode/attention_decode.h"
#include "kernel_templates/attention_prefill/attention_prefill.h"
#include "runtime/dispatch/call_text.h"
#include "runtime/operators/attention_call.h"
#include "runtime/operators/call_arguments.h"

namespace hone::runtime {

/// Problems of the largest call. Each throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem decode_problem(const Attention& description, std::int64_t q_tokens);
[[nodiscard]] Problem prefill_problem(const Attention& description);

/// A call's sizes in the order of the family.
[[nodiscard]] constexpr Sizes decode_sizes(AttentionSizes sizes) noexcept {
    return {sizes.batch, sizes.kv_len, sizes.q_len};
}

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call decode_call(const Attention& description, const AttentionArgs& args,
                                      AttentionSizes sizes) noexcept {
    const auto q = filled_in(args.q_strides, {sizes.q_len, description.heads, description.head_dim});
    const auto out = filled_in(args.out_strides, {sizes.q_len, description.heads, description.head_dim});
    const auto cache = kv_strides(description, args.k_strides, sizes.kv_len);
    Call call;
    call.pointers[attention_decode::q] = pointer(args.q);
    call.pointers[attention_decode::k_cache] = pointer(args.k);
    call.pointers[attention_decode::v_cache] = pointer(args.v);
    call.pointers[attention_decode::kv_lengths] = pointer(args.kv_lengths);
    call.pointers[attention_decode::q_starts] = pointer(args.q_starts);
    call.pointers[attention_decode::page_table] = pointer(args.page_table);
    call.pointers[attention_decode::k_scale] = pointer(args.k_scale);
    call.pointers[attention_decode::v_scale] = pointer(args.v_scale);
    call.pointers[attention_decode::sinks] = pointer(args.sinks);
    call.pointers[attention_decode::out] = pointer(args.out);
    call.pointers[attention_decode::lse] = pointer(args.lse);
    call.pointers[attention_decode::workspace] = pointer(args.workspace);
    call.scalars[attention_decode::batch] = Scalar::of(sizes.batch);
    call.scalars[attention_decode::kv_len] = Scalar::of(sizes.kv_len);
    call.scalars[attention_decode::q_len] = Scalar::of(sizes.q_len);
    call.scalars[attention_decode::q_rows] =
        Scalar::of(description.packed ? args.q_tokens : sizes.batch * sizes.q_len);
    call.scalars[attention_decode::q_batch_stride] = Scalar::of(q.batch);
    call.scalars[attention_decode::q_token_stride] = Scalar::of(q.token);
    call.scalars[attention_decode::q_head_stride] = Scalar::of(q.head);
    call.scalars[attention_decode::out_batch_stride] = Scalar::of(out.batch);
    call.scalars[attention_decode::out_token_stride] = Scalar::of(out.token);
    call.scalars[attention_decode::out_head_stride] = Scalar::of(out.head);
    call.scalars[attention_decode::cache_stride] = Scalar::of(cache.batch);
    call.scalars[attention_decode::cache_token_stride] = Scalar::of(cache.token);
    call.scalars[attention_decode::cache_head_stride] = Scalar::of(cache.head);
    call.scalars[attention_decode::page_table_stride] =
        Scalar::of(page_table_stride(args.page_table_stride, description.page_size, sizes.kv_len));
    call.scalars[attention_decode::pool_pages] =
        Scalar::of(description.page_size != 0 ? args.pool_pages : sizes.batch);
    call.scalars[attention_decode::scale] = Scalar::of(scale_of(description, args.scale));
    call.scalars[attention_decode::softcap] = Scalar::of(softcap_of(description, args.softcap));
    return call;
}

/// What a caller calls otherwise than the family.
inline constexpr CallName decode_names[] = {{"k_cache", "k"},
                                            {"v_cache", "v"},
                                            {"cache_stride", "k_batch_stride"},
                                            {"cache_token_stride", "k_token_stride"},
                                            {"cache_head_stride", "k_head_stride"}};

/// A call's sizes in the order of the family.
[[nodiscard]] constexpr Sizes prefill_sizes(AttentionSizes sizes) noexcept {
    return {sizes.batch, sizes.q_len, sizes.kv_len};
}

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call prefill_call(const Attention& description, const AttentionArgs& args,
                                       AttentionSizes sizes) noexcept {
    const auto queries = description.packed ? args.q_tokens : sizes.q_len;
    const auto keys = packs_keys(description) ? args.kv_tokens : sizes.kv_len;
    const auto q = filled_in(args.q_strides, {queries, description.heads, description.head_dim});
    const auto k = kv_strides(description, args.k_strides, keys);
    const auto v = kv_strides(description, args.v_strides, keys);
    const auto out = filled_in(args.out_strides, {queries, description.heads, description.head_dim});
    Call call;
    call.pointers[attention_prefill::q] = pointer(args.q);
    call.pointers[attention_prefill::k] = pointer(args.k);
    call.pointers[attention_prefill::v] = pointer(args.v);
    call.pointers[attention_prefill::q_starts] = pointer(args.q_starts);
    call.pointers[attention_prefill::kv_starts] = pointer(args.kv_starts);
    call.pointers[attention_prefill::kv_lengths] = pointer(args.kv_lengths);
    call.pointers[attention_prefill::page_table] = pointer(args.page_table);
    call.pointers[attention_prefill::k_scale] = pointer(args.k_scale);
    call.pointers[attention_prefill::v_scale] = pointer(args.v_scale);
    call.pointers[attention_prefill::sinks] = pointer(args.sinks);
    call.pointers[attention_prefill::out] = pointer(args.out);
    call.pointers[attention_prefill::lse] = pointer(args.lse);
    call.pointers[attention_prefill::workspace] = pointer(args.workspace);
    call.scalars[attention_prefill::batch] = Scalar::of(sizes.batch);
    call.scalars[attention_prefill::q_len] = Scalar::of(sizes.q_len);
    call.scalars[attention_prefill::kv_len] = Scalar::of(sizes.kv_len);
    call.scalars[attention_prefill::q_tokens] =
        Scalar::of(description.packed ? queries : sizes.batch * queries);
    call.scalars[attention_prefill::kv_tokens] =
        Scalar::of(packs_keys(description) ? keys : sizes.batch * keys);
    call.scalars[attention_prefill::page_table_stride] =
        Scalar::of(page_table_stride(args.page_table_stride, description.page_size, sizes.kv_len));
    call.scalars[attention_prefill::pool_pages] = Scalar::of(args.pool_pages);
    call.scalars[attention_prefill::least_queries] = Scalar::of(std::int64_t{1});
    call.scalars[attention_prefill::q_batch_stride] = Scalar::of(q.batch);
    call.scalars[attention_prefill::q_token_stride] = Scalar::of(q.token);
    call.scalars[attention_prefill::q_head_stride] = Scalar::of(q.head);
    call.scalars[attention_prefill::k_batch_stride] = Scalar::of(k.batch);
    call.scalars[attention_prefill::k_token_stride] = Scalar::of(k.token);
    call.scalars[attention_prefill::k_head_stride] = Scalar::of(k.head);
    call.scalars[attention_prefill::v_batch_stride] = Scalar::of(v.batch);
    call.scalars[attention_prefill::v_token_stride] = Scalar::of(v.token);
    call.scalars[attention_prefill::v_head_stride] = Scalar::of(v.head);
    call.scalars[attention_prefill::out_batch_stride] = Scalar::of(out.batch);
    call.scalars[attention_prefill::out_token_stride] = Scalar::of(out.token);
    call.scalars[attention_prefill::out_head_stride] = Scalar::of(out.head);
    call.scalars[attention_prefill::scale] = Scalar::of(scale_of(description, args.scale));
    call.scalars[attention_prefill::softcap] = Scalar::of(softcap_of(description, args.softcap));
    return call;
}

}  // namespace hone::runtime

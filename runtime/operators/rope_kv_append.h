// RopeKvAppend as problems and calls of families. Generated from kernel_templates/rope_kv_append/operators.py
// by `./hone generate`.
#pragma once

#include "hone/rope_kv_append.h"
#include "kernel_templates/rope_kv_append/rope_kv_append.h"
#include "runtime/dispatch/call_text.h"
#include "runtime/operators/attention_call.h"
#include "runtime/operators/call_arguments.h"

namespace hone::runtime {

/// Problems of the largest call. Each throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem append_problem(const RopeKvAppend& description);

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call append_call(const RopeKvAppend& description, const RopeKvAppendArgs& args,
                                      std::int64_t tokens) noexcept {
    const auto q = filled_in(args.q_strides, {tokens, description.heads, description.head_dim});
    const auto k = filled_in(args.k_strides, {tokens, description.kv_heads, description.head_dim});
    const auto v = filled_in(args.v_strides, {tokens, description.kv_heads, description.head_dim});
    const auto q_out = filled_in(args.out_strides, {tokens, description.heads, description.head_dim});
    const auto room = description.page_size != 0 ? description.page_size : args.kv_len;
    const auto cache = filled_in(args.cache_strides, {room, description.kv_heads, description.head_dim});
    Call call;
    call.pointers[rope_kv_append::q] = pointer(args.q);
    call.pointers[rope_kv_append::k] = pointer(args.k);
    call.pointers[rope_kv_append::v] = pointer(args.v);
    call.pointers[rope_kv_append::kv_lengths] = pointer(description.slots ? args.positions : args.kv_lengths);
    call.pointers[rope_kv_append::slots] = pointer(args.slots);
    call.pointers[rope_kv_append::page_table] = pointer(args.page_table);
    call.pointers[rope_kv_append::cos] = pointer(args.cos);
    call.pointers[rope_kv_append::sin] = pointer(args.sin);
    call.pointers[rope_kv_append::q_weight] = pointer(args.q_weight);
    call.pointers[rope_kv_append::k_weight] = pointer(args.k_weight);
    call.pointers[rope_kv_append::k_scale] = pointer(args.k_scale);
    call.pointers[rope_kv_append::v_scale] = pointer(args.v_scale);
    call.pointers[rope_kv_append::q_out] = pointer(args.out);
    call.pointers[rope_kv_append::k_cache] = pointer(args.k_cache);
    call.pointers[rope_kv_append::v_cache] = pointer(args.v_cache);
    call.scalars[rope_kv_append::tokens] = Scalar::of(tokens);
    call.scalars[rope_kv_append::q_tokens] = Scalar::of(args.q_len);
    call.scalars[rope_kv_append::kv_len] = Scalar::of(args.kv_len);
    call.scalars[rope_kv_append::q_token_stride] = Scalar::of(q.token);
    call.scalars[rope_kv_append::q_head_stride] = Scalar::of(q.head);
    call.scalars[rope_kv_append::k_token_stride] = Scalar::of(k.token);
    call.scalars[rope_kv_append::k_head_stride] = Scalar::of(k.head);
    call.scalars[rope_kv_append::v_token_stride] = Scalar::of(v.token);
    call.scalars[rope_kv_append::v_head_stride] = Scalar::of(v.head);
    call.scalars[rope_kv_append::q_out_token_stride] = Scalar::of(q_out.token);
    call.scalars[rope_kv_append::q_out_head_stride] = Scalar::of(q_out.head);
    call.scalars[rope_kv_append::cache_stride] = Scalar::of(cache.batch);
    call.scalars[rope_kv_append::cache_token_stride] = Scalar::of(cache.token);
    call.scalars[rope_kv_append::cache_head_stride] = Scalar::of(cache.head);
    call.scalars[rope_kv_append::page_table_stride] =
        Scalar::of(page_table_stride(args.page_table_stride, description.page_size, args.kv_len));
    call.scalars[rope_kv_append::pool_pages] =
        Scalar::of(args.pool_pages == 0 ? tokens / args.q_len : args.pool_pages);
    call.scalars[rope_kv_append::positions] = Scalar::of(args.table_rows);
    call.scalars[rope_kv_append::epsilon] = Scalar::of(args.epsilon);
    return call;
}

/// What a caller calls otherwise than the family.
inline constexpr CallName append_names[] = {{"q_out", "out"},
                                            {"q_out_token_stride", "out_token_stride"},
                                            {"q_out_head_stride", "out_head_stride"},
                                            {"cache_stride", "cache_batch_stride"}};

}  // namespace hone::runtime

// AttentionAppend as problems and calls of families. Generated from
// kernel_templates/attention_append/operators.py by `./hone generate`.
#pragma once

#include "hone/attention_append.h"
#include "kernel_templates/attention_append/attention_append.h"
#include "runtime/dispatch/call_text.h"
#include "runtime/operators/attention_call.h"
#include "runtime/operators/call_arguments.h"

namespace hone::runtime {

/// Problems of the largest call. Each throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem attention_append_problem(const AttentionAppend& description);

/// A call's sizes in the order of the family.
[[nodiscard]] constexpr Sizes attention_append_sizes(AttentionAppendSizes sizes) noexcept {
    return {sizes.batch, sizes.kv_len};
}

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call attention_append_call(const AttentionAppend& description,
                                                const AttentionAppendArgs& args,
                                                AttentionAppendSizes sizes) noexcept {
    const auto q = filled_in(args.q_strides, {1, description.heads, description.head_dim});
    const auto k = filled_in(args.k_strides, {1, description.kv_heads, description.head_dim});
    const auto v = filled_in(args.v_strides, {1, description.kv_heads, description.head_dim});
    const auto out = filled_in(args.out_strides, {1, description.heads, description.head_dim});
    const auto room = description.page_size != 0 ? description.page_size : sizes.kv_len;
    const auto cache = filled_in(args.cache_strides, {room, description.kv_heads, description.head_dim});
    Call call;
    call.pointers[attention_append::q] = pointer(args.q);
    call.pointers[attention_append::k_cache] = pointer(args.k_cache);
    call.pointers[attention_append::v_cache] = pointer(args.v_cache);
    call.pointers[attention_append::k] = pointer(args.k);
    call.pointers[attention_append::v] = pointer(args.v);
    call.pointers[attention_append::kv_lengths] = pointer(args.kv_lengths);
    call.pointers[attention_append::page_table] = pointer(args.page_table);
    call.pointers[attention_append::cos] = pointer(args.cos);
    call.pointers[attention_append::sin] = pointer(args.sin);
    call.pointers[attention_append::q_weight] = pointer(args.q_weight);
    call.pointers[attention_append::k_weight] = pointer(args.k_weight);
    call.pointers[attention_append::out] = pointer(args.out);
    call.pointers[attention_append::workspace] = pointer(args.workspace);
    call.scalars[attention_append::batch] = Scalar::of(sizes.batch);
    call.scalars[attention_append::kv_len] = Scalar::of(sizes.kv_len);
    call.scalars[attention_append::q_batch_stride] = Scalar::of(q.token);
    call.scalars[attention_append::q_head_stride] = Scalar::of(q.head);
    call.scalars[attention_append::k_batch_stride] = Scalar::of(k.token);
    call.scalars[attention_append::k_head_stride] = Scalar::of(k.head);
    call.scalars[attention_append::v_batch_stride] = Scalar::of(v.token);
    call.scalars[attention_append::v_head_stride] = Scalar::of(v.head);
    call.scalars[attention_append::out_batch_stride] = Scalar::of(out.token);
    call.scalars[attention_append::out_head_stride] = Scalar::of(out.head);
    call.scalars[attention_append::cache_stride] = Scalar::of(cache.batch);
    call.scalars[attention_append::cache_token_stride] = Scalar::of(cache.token);
    call.scalars[attention_append::cache_head_stride] = Scalar::of(cache.head);
    call.scalars[attention_append::page_table_stride] =
        Scalar::of(page_table_stride(args.page_table_stride, description.page_size, sizes.kv_len));
    call.scalars[attention_append::pool_pages] = Scalar::of(args.pool_pages);
    call.scalars[attention_append::positions] = Scalar::of(args.table_rows);
    call.scalars[attention_append::scale] = Scalar::of(scale_of(description.head_dim, args.scale));
    call.scalars[attention_append::softcap] = Scalar::of(description.softcap ? args.softcap : 1.0F);
    call.scalars[attention_append::epsilon] = Scalar::of(args.epsilon);
    return call;
}

/// What a caller calls otherwise than the family.
inline constexpr CallName attention_append_names[] = {{"q_batch_stride", "q_token_stride"},
                                                      {"k_batch_stride", "k_token_stride"},
                                                      {"v_batch_stride", "v_token_stride"},
                                                      {"out_batch_stride", "out_token_stride"},
                                                      {"cache_stride", "cache_batch_stride"}};

}  // namespace hone::runtime

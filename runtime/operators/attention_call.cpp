#include "runtime/operators/attention_call.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/attention_decode/attention_decode.h"
#include "kernel_templates/attention_prefill/attention_prefill.h"
#include "kernel_templates/rope_kv_append/rope_kv_append.h"
#include "runtime/operators/call_arguments.h"

namespace hone::runtime {
namespace {

/// The families declare them in this order.
void put_strides(Call& call, int first, const AttentionStrides& strides) noexcept {
    const auto at = static_cast<std::size_t>(first);
    call.scalars[at] = Scalar::of(strides.batch);
    call.scalars[at + 1] = Scalar::of(strides.token);
    call.scalars[at + 2] = Scalar::of(strides.head);
}

void put_token_strides(Call& call, int first, const AttentionStrides& strides) noexcept {
    const auto at = static_cast<std::size_t>(first);
    call.scalars[at] = Scalar::of(strides.token);
    call.scalars[at + 1] = Scalar::of(strides.head);
}

Scalar scale_of(const Attention& attention, float given) noexcept {
    return Scalar::of(given > 0 ? given : 1.0F / std::sqrt(static_cast<float>(attention.head_dim)));
}

/// Kernels without a softcap do not read it.
Scalar softcap_of(const Attention& attention, float given) noexcept {
    return Scalar::of(attention.softcap ? given : 1.0F);
}

}  // namespace

AttentionStrides filled_in(AttentionStrides given, const TensorExtents& extents) noexcept {
    if (given.head == 0) given.head = extents.head_dim;
    if (given.token == 0) given.token = extents.heads * given.head;
    if (given.batch == 0) given.batch = extents.tokens * given.token;
    return given;
}

AttentionStrides kv_strides(const Attention& attention, const AttentionStrides& given,
                            std::int64_t kv_len) noexcept {
    const std::int64_t tokens = attention.page_size != 0 ? attention.page_size : kv_len;
    return filled_in(given, {tokens, attention.kv_heads, attention.head_dim});
}

std::int64_t page_table_stride(std::int64_t given, std::int64_t page_size, std::int64_t kv_len) noexcept {
    return given != 0 || page_size == 0 ? given : (kv_len + page_size - 1) / page_size;
}

Call decode_call(const Attention& attention, const AttentionArgs& args, AttentionSizes sizes) noexcept {
    namespace family = attention_decode;
    const TensorExtents queries{sizes.q_len, attention.heads, attention.head_dim};
    const std::int64_t pages = attention.page_size != 0 ? args.pool_pages : sizes.batch;
    Call call;
    call.pointers[family::q] = pointer(args.q);
    call.pointers[family::k_cache] = pointer(args.k);
    call.pointers[family::v_cache] = pointer(args.v);
    call.pointers[family::kv_lengths] = pointer(args.kv_lengths);
    call.pointers[family::page_table] = pointer(args.page_table);
    call.pointers[family::k_scale] = pointer(args.k_scale);
    call.pointers[family::v_scale] = pointer(args.v_scale);
    call.pointers[family::out] = args.out;
    call.pointers[family::lse] = args.lse;
    call.pointers[family::workspace] = args.workspace;
    call.scalars[family::batch] = Scalar::of(sizes.batch);
    call.scalars[family::kv_len] = Scalar::of(sizes.kv_len);
    call.scalars[family::q_len] = Scalar::of(sizes.q_len);
    put_strides(call, family::q_batch_stride, filled_in(args.q_strides, queries));
    put_strides(call, family::out_batch_stride, filled_in(args.out_strides, queries));
    put_strides(call, family::cache_stride, kv_strides(attention, args.k_strides, sizes.kv_len));
    call.scalars[family::page_table_stride] =
        Scalar::of(page_table_stride(args.page_table_stride, attention.page_size, sizes.kv_len));
    call.scalars[family::pool_pages] = Scalar::of(pages);
    call.scalars[family::scale] = scale_of(attention, args.scale);
    call.scalars[family::softcap] = softcap_of(attention, args.softcap);
    return call;
}

Call prefill_call(const Attention& attention, const AttentionArgs& args, AttentionSizes sizes) noexcept {
    namespace family = attention_prefill;
    const bool packed = attention.packed;
    const std::int64_t q_tokens = packed ? args.q_tokens : sizes.batch * sizes.q_len;
    const std::int64_t kv_tokens = packed ? args.kv_tokens : sizes.batch * sizes.kv_len;
    const TensorExtents queries{packed ? q_tokens : sizes.q_len, attention.heads, attention.head_dim};
    const std::int64_t keys = packed ? kv_tokens : sizes.kv_len;
    Call call;
    call.pointers[family::q] = pointer(args.q);
    call.pointers[family::k] = pointer(args.k);
    call.pointers[family::v] = pointer(args.v);
    call.pointers[family::q_starts] = pointer(args.q_starts);
    call.pointers[family::kv_starts] = pointer(args.kv_starts);
    call.pointers[family::kv_lengths] = pointer(args.kv_lengths);
    call.pointers[family::out] = args.out;
    call.pointers[family::lse] = args.lse;
    call.pointers[family::workspace] = args.workspace;
    call.scalars[family::batch] = Scalar::of(sizes.batch);
    call.scalars[family::q_len] = Scalar::of(sizes.q_len);
    call.scalars[family::kv_len] = Scalar::of(sizes.kv_len);
    call.scalars[family::q_tokens] = Scalar::of(q_tokens);
    call.scalars[family::kv_tokens] = Scalar::of(kv_tokens);
    put_strides(call, family::q_batch_stride, filled_in(args.q_strides, queries));
    put_strides(call, family::k_batch_stride, kv_strides(attention, args.k_strides, keys));
    put_strides(call, family::v_batch_stride, kv_strides(attention, args.v_strides, keys));
    put_strides(call, family::out_batch_stride, filled_in(args.out_strides, queries));
    call.scalars[family::scale] = scale_of(attention, args.scale);
    call.scalars[family::softcap] = softcap_of(attention, args.softcap);
    return call;
}

Call rope_call(const RopeKvAppend& rope, const RopeKvAppendArgs& args, std::int64_t tokens) noexcept {
    namespace family = rope_kv_append;
    const TensorExtents queries{tokens, rope.heads, rope.head_dim};
    const TensorExtents keys{tokens, rope.kv_heads, rope.head_dim};
    const std::int64_t room = rope.page_size != 0 ? rope.page_size : args.kv_len;
    const std::int64_t sequences = args.pool_pages == 0 ? tokens / args.q_len : args.pool_pages;
    Call call;
    call.pointers[family::q] = pointer(args.q);
    call.pointers[family::k] = pointer(args.k);
    call.pointers[family::v] = pointer(args.v);
    call.pointers[family::kv_lengths] = pointer(rope.slots ? args.positions : args.kv_lengths);
    call.pointers[family::slots] = pointer(args.slots);
    call.pointers[family::page_table] = pointer(args.page_table);
    call.pointers[family::cos] = pointer(args.cos);
    call.pointers[family::sin] = pointer(args.sin);
    call.pointers[family::q_weight] = pointer(args.q_weight);
    call.pointers[family::k_weight] = pointer(args.k_weight);
    call.pointers[family::k_scale] = pointer(args.k_scale);
    call.pointers[family::v_scale] = pointer(args.v_scale);
    call.pointers[family::q_out] = args.out;
    call.pointers[family::k_cache] = args.k_cache;
    call.pointers[family::v_cache] = args.v_cache;
    call.scalars[family::tokens] = Scalar::of(tokens);
    call.scalars[family::q_tokens] = Scalar::of(args.q_len);
    call.scalars[family::kv_len] = Scalar::of(args.kv_len);
    put_token_strides(call, family::q_token_stride, filled_in(args.q_strides, queries));
    put_token_strides(call, family::k_token_stride, filled_in(args.k_strides, keys));
    put_token_strides(call, family::v_token_stride, filled_in(args.v_strides, keys));
    put_token_strides(call, family::q_out_token_stride, filled_in(args.out_strides, queries));
    put_strides(call, family::cache_stride,
                filled_in(args.cache_strides, {room, rope.kv_heads, rope.head_dim}));
    call.scalars[family::page_table_stride] =
        Scalar::of(page_table_stride(args.page_table_stride, rope.page_size, args.kv_len));
    call.scalars[family::pool_pages] = Scalar::of(sequences);
    call.scalars[family::positions] = Scalar::of(args.table_rows);
    call.scalars[family::epsilon] = Scalar::of(args.epsilon);
    return call;
}

}  // namespace hone::runtime

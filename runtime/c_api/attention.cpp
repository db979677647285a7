#include "runtime/c_api/operator.h"

namespace hone::c_api {
namespace {

KvDtype kv_dtype_from(std::int32_t given) {
    switch (given) {
        case HONE_KV_SAME: return KvDtype::same;
        case HONE_KV_FP8: return KvDtype::fp8;
        default: refuse("kv_dtype", given, "HONE_KV_SAME (0), HONE_KV_FP8 (1)");
    }
}

RopeStyle style_from(std::int32_t given) {
    switch (given) {
        case HONE_ROPE_HALF: return RopeStyle::half;
        case HONE_ROPE_INTERLEAVED: return RopeStyle::interleaved;
        default: refuse("style", given, "HONE_ROPE_HALF (0), HONE_ROPE_INTERLEAVED (1)");
    }
}

Attention attention_from(const hone_attention& given) {
    return {.heads = given.heads,
            .kv_heads = given.kv_heads,
            .head_dim = given.head_dim,
            .max_batch = given.max_batch,
            .max_q_len = given.max_q_len,
            .max_kv_len = given.max_kv_len,
            .min_q_len = given.min_q_len,
            .dtype = dtype_from(given.dtype),
            .kv_dtype = kv_dtype_from(given.kv_dtype),
            .causal = flag_from("causal", given.causal),
            .lengths = flag_from("lengths", given.lengths),
            .packed = flag_from("packed", given.packed),
            .softcap = flag_from("softcap", given.softcap),
            .lse = flag_from("lse", given.lse),
            .window = given.window,
            .page_size = given.page_size};
}

RopeKvAppend rope_from(const hone_rope_kv_append& given) {
    return {.heads = given.heads,
            .kv_heads = given.kv_heads,
            .head_dim = given.head_dim,
            .rotary_dim = given.rotary_dim,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from(given.dtype),
            .kv_dtype = kv_dtype_from(given.kv_dtype),
            .style = style_from(given.style),
            .norm = flag_from("norm", given.norm),
            .slots = flag_from("slots", given.slots),
            .page_size = given.page_size};
}

AttentionArgs args_from(const hone_attention_args& args) {
    return {.q = args.q,
            .k = args.k,
            .v = args.v,
            .out = args.out,
            .lse = args.lse,
            .kv_lengths = args.kv_lengths,
            .q_starts = args.q_starts,
            .kv_starts = args.kv_starts,
            .page_table = args.page_table,
            .k_scale = args.k_scale,
            .v_scale = args.v_scale,
            .workspace = args.workspace,
            .q_strides = {args.q_batch_stride, args.q_token_stride, args.q_head_stride},
            .k_strides = {args.k_batch_stride, args.k_token_stride, args.k_head_stride},
            .v_strides = {args.v_batch_stride, args.v_token_stride, args.v_head_stride},
            .out_strides = {args.out_batch_stride, args.out_token_stride, args.out_head_stride},
            .page_table_stride = args.page_table_stride,
            .pool_pages = args.pool_pages,
            .q_tokens = args.q_tokens,
            .kv_tokens = args.kv_tokens,
            .scale = args.scale,
            .softcap = args.softcap};
}

RopeKvAppendArgs args_from(const hone_rope_kv_append_args& args) {
    return {.q = args.q,
            .k = args.k,
            .v = args.v,
            .out = args.out,
            .k_cache = args.k_cache,
            .v_cache = args.v_cache,
            .cos = args.cos,
            .sin = args.sin,
            .kv_lengths = args.kv_lengths,
            .page_table = args.page_table,
            .positions = args.positions,
            .slots = args.slots,
            .k_scale = args.k_scale,
            .v_scale = args.v_scale,
            .q_weight = args.q_weight,
            .k_weight = args.k_weight,
            .q_strides = {0, args.q_token_stride, args.q_head_stride},
            .k_strides = {0, args.k_token_stride, args.k_head_stride},
            .v_strides = {0, args.v_token_stride, args.v_head_stride},
            .out_strides = {0, args.out_token_stride, args.out_head_stride},
            .cache_strides = {args.cache_batch_stride, args.cache_token_stride, args.cache_head_stride},
            .page_table_stride = args.page_table_stride,
            .q_len = args.q_len,
            .kv_len = args.kv_len,
            .pool_pages = args.pool_pages,
            .table_rows = args.table_rows,
            .epsilon = args.epsilon};
}

}  // namespace
}  // namespace hone::c_api

using namespace hone::c_api;

hone_status hone_attention_prepare(hone_runtime* runtime, const hone_attention* attention,
                                   hone_operator** op) {
    return prepare(runtime, attention, op, "hone_attention_prepare", attention_from);
}

hone_status hone_attention_run(const hone_operator* op, void* stream, const hone_attention_args* args,
                               int64_t batch, int64_t q_len, int64_t kv_len) {
    return run_given(op, args, hone_attention_args HONE_ATTENTION_ARGS_INIT,
                     [&](const hone_attention_args& given) {
                         if (given.reserved != 0) return fail(HONE_BAD_STRUCT);
                         const hone::AttentionSizes sizes{batch, q_len, kv_len};
                         return run_as<hone::AttentionKernel>(*op, stream, args_from(given), sizes);
                     });
}

hone_status hone_attention_workspace(const hone_operator* op, int64_t batch, int64_t q_len, int64_t kv_len,
                                     size_t* bytes) {
    if (bytes == nullptr) return fail(HONE_NULL_POINTER);
    *bytes = 0;
    if (const hone_status status = check_handle(op); status != HONE_OK) return status;
    const auto* kernel = std::get_if<hone::AttentionKernel>(&op->kernel);
    if (kernel == nullptr) return fail(HONE_BAD_HANDLE);
    return guarded("hone_attention_workspace", [&] {
        *bytes = static_cast<std::size_t>(kernel->workspace_bytes({batch, q_len, kv_len}));
        return HONE_OK;
    });
}

hone_status hone_attention_explain(const hone_runtime* runtime, const hone_attention* attention,
                                   int64_t batch, int64_t q_len, int64_t kv_len, hone_text_format format,
                                   char* text, size_t capacity, size_t* length) {
    return explain(runtime, attention, hone::AttentionSizes{batch, q_len, kv_len},
                   {format, text, capacity, length}, "hone_attention_explain", attention_from);
}

hone_status hone_rope_kv_append_prepare(hone_runtime* runtime, const hone_rope_kv_append* rope,
                                        hone_operator** op) {
    return prepare(runtime, rope, op, "hone_rope_kv_append_prepare", rope_from);
}

hone_status hone_rope_kv_append_run(const hone_operator* op, void* stream,
                                    const hone_rope_kv_append_args* args, int64_t tokens) {
    return run_given(op, args, hone_rope_kv_append_args HONE_ROPE_KV_APPEND_ARGS_INIT,
                     [&](const hone_rope_kv_append_args& given) {
                         return run_as<hone::RopeKvAppendKernel>(*op, stream, args_from(given), tokens);
                     });
}

hone_status hone_rope_kv_append_explain(const hone_runtime* runtime, const hone_rope_kv_append* rope,
                                        int64_t tokens, hone_text_format format, char* text, size_t capacity,
                                        size_t* length) {
    return explain(runtime, rope, tokens, {format, text, capacity, length}, "hone_rope_kv_append_explain",
                   rope_from);
}

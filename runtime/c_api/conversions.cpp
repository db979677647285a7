// Generated from the declarations, kernel_templates/*/operators.py and generate/enums.py, by `./hone
// generate`.
#include "runtime/c_api/conversions.h"

#include "runtime/c_api/operator.h"

namespace hone::c_api {

Dtype dtype_from(const char* field, std::int32_t given) {
    if (given < 0 || given >= 3) refuse(field, given, "HONE_FP32 (0), HONE_FP16 (1), HONE_BF16 (2)");
    return static_cast<Dtype>(given);
}

NormOutput norm_output_from(const char* field, std::int32_t given) {
    if (given < 0 || given >= 3)
        refuse(field, given, "HONE_OUTPUT_SAME (0), HONE_OUTPUT_INT8 (1), HONE_OUTPUT_FP8 (2)");
    return static_cast<NormOutput>(given);
}

Activation activation_from(const char* field, std::int32_t given) {
    if (given < 0 || given >= 6)
        refuse(field, given,
               "HONE_ACTIVATION_NONE (0), HONE_GELU_TANH (1), HONE_GELU_ERF (2), HONE_SILU (3), HONE_RELU "
               "(4), HONE_SWIGLU_OAI (5)");
    return static_cast<Activation>(given);
}

QuantFormat quant_format_from(const char* field, std::int32_t given) {
    if (given < 0 || given >= 4)
        refuse(field, given,
               "HONE_QUANT_W4A16 (0), HONE_QUANT_W8A16 (1), HONE_QUANT_W8A8 (2), HONE_QUANT_FP8 (3)");
    return static_cast<QuantFormat>(given);
}

KvDtype kv_dtype_from(const char* field, std::int32_t given) {
    if (given < 0 || given >= 2) refuse(field, given, "HONE_KV_SAME (0), HONE_KV_FP8 (1)");
    return static_cast<KvDtype>(given);
}

RopeStyle rope_style_from(const char* field, std::int32_t given) {
    if (given < 0 || given >= 2) refuse(field, given, "HONE_ROPE_HALF (0), HONE_ROPE_INTERLEAVED (1)");
    return static_cast<RopeStyle>(given);
}

IndexType index_type_from(const char* field, std::int32_t given) {
    if (given < 0 || given >= 2) refuse(field, given, "HONE_INDEX_INT32 (0), HONE_INDEX_INT64 (1)");
    return static_cast<IndexType>(given);
}

AttentionAppend from_c(const hone_attention_append& given) {
    check_reserved(given.reserved);
    return {.heads = given.heads,
            .kv_heads = given.kv_heads,
            .head_dim = given.head_dim,
            .rotary_dim = given.rotary_dim,
            .max_batch = given.max_batch,
            .max_kv_len = given.max_kv_len,
            .dtype = dtype_from("dtype", given.dtype),
            .style = rope_style_from("style", given.style),
            .norm = flag_from("norm", given.norm),
            .softcap = flag_from("softcap", given.softcap),
            .window = given.window,
            .page_size = given.page_size,
            .unit_offset = flag_from("unit_offset", given.unit_offset)};
}

Attention from_c(const hone_attention& given) {
    return {.heads = given.heads,
            .kv_heads = given.kv_heads,
            .head_dim = given.head_dim,
            .max_batch = given.max_batch,
            .max_q_len = given.max_q_len,
            .max_kv_len = given.max_kv_len,
            .min_q_len = given.min_q_len,
            .dtype = dtype_from("dtype", given.dtype),
            .kv_dtype = kv_dtype_from("kv_dtype", given.kv_dtype),
            .causal = flag_from("causal", given.causal),
            .lengths = flag_from("lengths", given.lengths),
            .packed = flag_from("packed", given.packed),
            .softcap = flag_from("softcap", given.softcap),
            .lse = flag_from("lse", given.lse),
            .window = given.window,
            .page_size = given.page_size,
            .sinks = flag_from("sinks", given.sinks)};
}

Embedding from_c(const hone_embedding& given) {
    check_reserved(given.reserved);
    return {.hidden = given.hidden,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from("dtype", given.dtype),
            .index = index_type_from("index", given.index),
            .scale = flag_from("scale", given.scale),
            .positions = flag_from("positions", given.positions)};
}

ExpertLinear from_c(const hone_expert_linear& given) {
    check_reserved(given.reserved);
    return {.in = given.in,
            .out = given.out,
            .experts = given.experts,
            .top_k = given.top_k,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from("dtype", given.dtype),
            .activation = activation_from("activation", given.activation),
            .gated = flag_from("gated", given.gated),
            .bias = flag_from("bias", given.bias),
            .gather = flag_from("gather", given.gather),
            .combine = flag_from("combine", given.combine)};
}

ExpertRouting from_c(const hone_expert_routing& given) {
    check_reserved(given.reserved);
    return {.experts = given.experts,
            .top_k = given.top_k,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from("dtype", given.dtype),
            .renormalize = flag_from("renormalize", given.renormalize)};
}

Linear from_c(const hone_linear& given) {
    return {.in = given.in,
            .out = given.out,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from("dtype", given.dtype),
            .activation = activation_from("activation", given.activation),
            .bias = flag_from("bias", given.bias),
            .residual = flag_from("residual", given.residual),
            .norm = flag_from("norm", given.norm)};
}

FusedFfn from_c(const hone_fused_ffn& given) {
    return {.hidden = given.hidden,
            .intermediate = given.intermediate,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from("dtype", given.dtype),
            .activation = activation_from("activation", given.activation),
            .gated = flag_from("gated", given.gated),
            .bias = flag_from("bias", given.bias),
            .residual = flag_from("residual", given.residual),
            .norm = flag_from("norm", given.norm)};
}

RmsNorm from_c(const hone_rms_norm& given) {
    return {.hidden = given.hidden,
            .max_rows = given.max_rows,
            .dtype = dtype_from("dtype", given.dtype),
            .output = norm_output_from("output", given.output),
            .residual = flag_from("residual", given.residual),
            .unit_offset = flag_from("unit_offset", given.unit_offset)};
}

LayerNorm from_c(const hone_layer_norm& given) {
    check_reserved(given.reserved);
    return {.hidden = given.hidden,
            .max_rows = given.max_rows,
            .dtype = dtype_from("dtype", given.dtype),
            .output = norm_output_from("output", given.output),
            .residual = flag_from("residual", given.residual),
            .bias = flag_from("bias", given.bias),
            .unit_offset = flag_from("unit_offset", given.unit_offset)};
}

QuantizeWeights from_c(const hone_quantize_weights& given) {
    check_reserved(given.reserved);
    return {.in = given.in,
            .max_out = given.max_out,
            .dtype = dtype_from("dtype", given.dtype),
            .format = quant_format_from("format", given.format),
            .group = given.group,
            .zeros = flag_from("zeros", given.zeros),
            .one_scale = flag_from("one_scale", given.one_scale),
            .scale_dtype = dtype_from("scale_dtype", given.scale_dtype),
            .search = flag_from("search", given.search)};
}

QuantizedExpertLinear from_c(const hone_quantized_expert_linear& given) {
    check_reserved(given.reserved);
    return {.in = given.in,
            .out = given.out,
            .experts = given.experts,
            .top_k = given.top_k,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from("dtype", given.dtype),
            .format = quant_format_from("format", given.format),
            .group = given.group,
            .zeros = flag_from("zeros", given.zeros),
            .activation = activation_from("activation", given.activation),
            .gated = flag_from("gated", given.gated),
            .bias = flag_from("bias", given.bias),
            .gather = flag_from("gather", given.gather),
            .combine = flag_from("combine", given.combine)};
}

QuantizedLinear from_c(const hone_quantized_linear& given) {
    check_reserved(given.reserved);
    return {.in = given.in,
            .out = given.out,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from("dtype", given.dtype),
            .format = quant_format_from("format", given.format),
            .group = given.group,
            .zeros = flag_from("zeros", given.zeros),
            .one_scale = flag_from("one_scale", given.one_scale),
            .quantized_x = flag_from("quantized_x", given.quantized_x),
            .one_x_scale = flag_from("one_x_scale", given.one_x_scale),
            .activation = activation_from("activation", given.activation),
            .bias = flag_from("bias", given.bias),
            .residual = flag_from("residual", given.residual),
            .norm = flag_from("norm", given.norm)};
}

QuantizedFfn from_c(const hone_quantized_ffn& given) {
    return {.hidden = given.hidden,
            .intermediate = given.intermediate,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from("dtype", given.dtype),
            .format = quant_format_from("format", given.format),
            .group = given.group,
            .zeros = flag_from("zeros", given.zeros),
            .one_scale = flag_from("one_scale", given.one_scale),
            .quantized_x = flag_from("quantized_x", given.quantized_x),
            .one_x_scale = flag_from("one_x_scale", given.one_x_scale),
            .activation = activation_from("activation", given.activation),
            .gated = flag_from("gated", given.gated),
            .bias = flag_from("bias", given.bias),
            .residual = flag_from("residual", given.residual),
            .norm = flag_from("norm", given.norm)};
}

RmsNormBackward from_c(const hone_rms_norm_backward& given) {
    check_reserved(given.reserved);
    return {.hidden = given.hidden,
            .max_rows = given.max_rows,
            .dtype = dtype_from("dtype", given.dtype),
            .residual = flag_from("residual", given.residual)};
}

RopeKvAppend from_c(const hone_rope_kv_append& given) {
    return {.heads = given.heads,
            .kv_heads = given.kv_heads,
            .head_dim = given.head_dim,
            .rotary_dim = given.rotary_dim,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from("dtype", given.dtype),
            .kv_dtype = kv_dtype_from("kv_dtype", given.kv_dtype),
            .style = rope_style_from("style", given.style),
            .norm = flag_from("norm", given.norm),
            .slots = flag_from("slots", given.slots),
            .page_size = given.page_size,
            .unit_offset = flag_from("unit_offset", given.unit_offset)};
}

Sample from_c(const hone_sample& given) {
    return {.vocabulary = given.vocabulary,
            .max_rows = given.max_rows,
            .dtype = dtype_from("dtype", given.dtype),
            .filters = flag_from("filters", given.filters),
            .log_probability = flag_from("log_probability", given.log_probability),
            .softcap = given.softcap};
}

hone_status to_c(Status status) noexcept {
    switch (status) {
        case Status::ok: return HONE_OK;
        case Status::bad_rows: return HONE_BAD_ROWS;
        case Status::null_pointer: return HONE_NULL_POINTER;
        case Status::misaligned: return HONE_MISALIGNED;
        case Status::bad_stride: return HONE_BAD_STRIDE;
        case Status::not_prepared: return HONE_BAD_HANDLE;
        case Status::launch_failed: return HONE_LAUNCH_FAILED;
        case Status::bad_epsilon: return HONE_BAD_EPSILON;
        case Status::bad_scale: return HONE_BAD_SCALE;
        case Status::bad_lengths: return HONE_BAD_LENGTHS;
        case Status::bad_pages: return HONE_BAD_PAGES;
        case Status::capturing: return HONE_CAPTURING;
        case Status::bad_indices: return HONE_BAD_INDICES;
    }
    return HONE_FAILED;
}

}  // namespace hone::c_api

const char* hone_status_string(hone_status status) {
    switch (status) {
        case HONE_OK: return "ok";
        case HONE_BAD_ROWS:
            return "the number of rows, or a size of the call, is negative or above the prepared maximum";
        case HONE_NULL_POINTER: return "a tensor that this operator needs is a null pointer";
        case HONE_MISALIGNED:
            return "a pointer or row stride is not a multiple of the kernel's access width; 16 bytes always "
                   "are";
        case HONE_BAD_STRIDE:
            return "a row stride is smaller than a row, or those of k and v differ in a call that needs them "
                   "alike";
        case HONE_BAD_HANDLE: return "a handle is null, or of another operator than the function's";
        case HONE_BAD_STRUCT:
            return "struct_size is not one that this library knows, or a field that it does not know is set: "
                   "start from the header's _INIT macro";
        case HONE_FORKED: return "the handle was made before fork(): a child must make its own";
        case HONE_LAUNCH_FAILED: return "the driver refused the launch";
        case HONE_BAD_EPSILON: return "epsilon is negative, infinite or NaN";
        case HONE_BAD_SCALE: return "scale is infinite or NaN, or softcap is not above 0";
        case HONE_BAD_LENGTHS:
            return "a length or position is negative or beyond what there is room for, or starts decrease";
        case HONE_BAD_PAGES: return "the cache has no pages, or a page or slot is not within it";
        case HONE_CAPTURING:
            return "neither can indices be checked nor weights quantized while a stream is captured";
        case HONE_BAD_INDICES:
            return "an id or position has no row in its table, or the rows of a routing are not each pair "
                   "once";
        case HONE_BAD_ARGUMENT: return "a size, dtype or option that the operator does not take";
        case HONE_NO_GPU: return "no driver, too old a driver, or no such device";
        case HONE_COMPILE_FAILED: return "NVRTC is missing or refused the kernel";
        case HONE_FROZEN: return "a compile was needed that is not allowed";
        case HONE_OUT_OF_MEMORY: return "out of host memory";
        case HONE_FAILED: return "failed";
    }
    return "unknown status";
}

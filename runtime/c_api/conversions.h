// The structs and numbers of C as the types of C++. Internal to the C interface. Generated from the
// declarations, kernel_templates/*/operators.py and generate/enums.py, by `./hone generate`.
#pragma once

#include "hone/hone.h"
#include "runtime/hone.h"

namespace hone::c_api {

/// Each throws Error (bad_argument) for a number that is none: "dtype is 7; allowed: ...".
[[nodiscard]] bool flag_from(const char* field, std::int32_t given);
[[nodiscard]] Dtype dtype_from(const char* field, std::int32_t given);
[[nodiscard]] NormOutput norm_output_from(const char* field, std::int32_t given);
[[nodiscard]] Activation activation_from(const char* field, std::int32_t given);
[[nodiscard]] QuantFormat quant_format_from(const char* field, std::int32_t given);
[[nodiscard]] KvDtype kv_dtype_from(const char* field, std::int32_t given);
[[nodiscard]] RopeStyle rope_style_from(const char* field, std::int32_t given);
[[nodiscard]] IndexType index_type_from(const char* field, std::int32_t given);
[[nodiscard]] AttentionAppend from_c(const hone_attention_append& given);
[[nodiscard]] Attention from_c(const hone_attention& given);
[[nodiscard]] Embedding from_c(const hone_embedding& given);
[[nodiscard]] ExpertLinear from_c(const hone_expert_linear& given);
[[nodiscard]] ExpertRouting from_c(const hone_expert_routing& given);
[[nodiscard]] Linear from_c(const hone_linear& given);
[[nodiscard]] FusedFfn from_c(const hone_fused_ffn& given);
[[nodiscard]] RmsNorm from_c(const hone_rms_norm& given);
[[nodiscard]] LayerNorm from_c(const hone_layer_norm& given);
[[nodiscard]] QuantizeWeights from_c(const hone_quantize_weights& given);
[[nodiscard]] QuantizedExpertLinear from_c(const hone_quantized_expert_linear& given);
[[nodiscard]] QuantizedLinear from_c(const hone_quantized_linear& given);
[[nodiscard]] QuantizedFfn from_c(const hone_quantized_ffn& given);
[[nodiscard]] RmsNormBackward from_c(const hone_rms_norm_backward& given);
[[nodiscard]] RopeKvAppend from_c(const hone_rope_kv_append& given);
[[nodiscard]] Sample from_c(const hone_sample& given);

[[nodiscard]] inline AttentionAppendArgs from_c(const hone_attention_append_args& args) noexcept {
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
            .q_weight = args.q_weight,
            .k_weight = args.k_weight,
            .workspace = args.workspace,
            .q_strides = {0, args.q_token_stride, args.q_head_stride},
            .k_strides = {0, args.k_token_stride, args.k_head_stride},
            .v_strides = {0, args.v_token_stride, args.v_head_stride},
            .out_strides = {0, args.out_token_stride, args.out_head_stride},
            .cache_strides = {args.cache_batch_stride, args.cache_token_stride, args.cache_head_stride},
            .page_table_stride = args.page_table_stride,
            .pool_pages = args.pool_pages,
            .table_rows = args.table_rows,
            .scale = args.scale,
            .softcap = args.softcap,
            .epsilon = args.epsilon};
}

[[nodiscard]] inline AttentionArgs from_c(const hone_attention_args& args) noexcept {
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
            .sinks = args.sinks,
            .workspace = args.workspace,
            .q_strides = {args.q_batch_stride, args.q_token_stride, args.q_head_stride},
            .k_strides = {args.k_batch_stride, args.k_token_stride, args.k_head_stride},
            .v_strides = {args.v_batch_stride, args.v_token_stride, args.v_head_stride},
            .out_strides = {args.out_batch_stride, args.out_token_stride, args.out_head_stride},
            .page_table_stride = args.page_table_stride,
            .pool_pages = args.pool_pages,
            .q_tokens = args.q_tokens,
            .kv_tokens = args.kv_tokens,
            .prompts = args.prompts,
            .scale = args.scale,
            .softcap = args.softcap};
}

[[nodiscard]] inline EmbeddingArgs from_c(const hone_embedding_args& args) noexcept {
    return {.ids = args.ids,
            .table = args.table,
            .position_ids = args.position_ids,
            .position_table = args.position_table,
            .out = args.out,
            .vocabulary = args.vocabulary,
            .position_rows = args.position_rows,
            .table_stride = args.table_stride,
            .position_table_stride = args.position_table_stride,
            .out_stride = args.out_stride,
            .scale = args.scale};
}

[[nodiscard]] inline ExpertLinearArgs from_c(const hone_expert_linear_args& args) noexcept {
    return {.x = args.x,
            .starts = args.starts,
            .rows = args.rows,
            .routing_weights = args.routing_weights,
            .weight = args.weight,
            .up = args.up,
            .bias = args.bias,
            .up_bias = args.up_bias,
            .out = args.out,
            .workspace = args.workspace,
            .x_stride = args.x_stride,
            .out_stride = args.out_stride};
}

[[nodiscard]] inline ExpertRoutingArgs from_c(const hone_expert_routing_args& args) noexcept {
    return {.logits = args.logits,
            .routing_weights = args.routing_weights,
            .starts = args.starts,
            .rows = args.rows,
            .workspace = args.workspace,
            .logits_stride = args.logits_stride};
}

[[nodiscard]] inline LinearArgs from_c(const hone_linear_args& args) noexcept {
    return {.x = args.x,
            .weight = args.weight,
            .bias = args.bias,
            .residual = args.residual,
            .out = args.out,
            .workspace = args.workspace,
            .x_stride = args.x_stride,
            .weight_stride = args.weight_stride,
            .residual_stride = args.residual_stride,
            .out_stride = args.out_stride,
            .norm_weight = args.norm_weight,
            .epsilon = args.epsilon};
}

[[nodiscard]] inline FusedFfnArgs from_c(const hone_fused_ffn_args& args) noexcept {
    return {.x = args.x,
            .gate = args.gate,
            .up = args.up,
            .up_bias = args.up_bias,
            .down = args.down,
            .down_bias = args.down_bias,
            .residual = args.residual,
            .out = args.out,
            .workspace = args.workspace,
            .x_stride = args.x_stride,
            .residual_stride = args.residual_stride,
            .out_stride = args.out_stride,
            .norm_weight = args.norm_weight,
            .epsilon = args.epsilon};
}

[[nodiscard]] inline NormArgs from_c(const hone_norm_args& args) noexcept {
    return {.x = args.x,
            .residual = args.residual,
            .weight = args.weight,
            .bias = args.bias,
            .out = args.out,
            .sum = args.sum,
            .scale = args.scale,
            .x_stride = args.x_stride,
            .residual_stride = args.residual_stride,
            .out_stride = args.out_stride,
            .sum_stride = args.sum_stride,
            .epsilon = args.epsilon};
}

[[nodiscard]] inline QuantizeWeightsArgs from_c(const hone_quantize_weights_args& args) noexcept {
    return {.weight = args.weight,
            .codes = args.codes,
            .scales = args.scales,
            .zeros = args.zeros,
            .workspace = args.workspace,
            .weight_stride = args.weight_stride};
}

[[nodiscard]] inline QuantizedExpertLinearArgs from_c(
    const hone_quantized_expert_linear_args& args) noexcept {
    return {.x = args.x,
            .starts = args.starts,
            .rows = args.rows,
            .routing_weights = args.routing_weights,
            .weight = {.codes = args.weight, .scales = args.scales, .zeros = args.zeros},
            .up = {.codes = args.up, .scales = args.up_scales, .zeros = args.up_zeros},
            .bias = args.bias,
            .up_bias = args.up_bias,
            .out = args.out,
            .workspace = args.workspace,
            .x_stride = args.x_stride,
            .out_stride = args.out_stride};
}

[[nodiscard]] inline QuantizedLinearArgs from_c(const hone_quantized_linear_args& args) noexcept {
    return {.x = args.x,
            .x_scales = args.x_scales,
            .weight = {.codes = args.weight, .scales = args.scales, .zeros = args.zeros},
            .bias = args.bias,
            .residual = args.residual,
            .out = args.out,
            .workspace = args.workspace,
            .x_stride = args.x_stride,
            .x_scale_stride = args.x_scale_stride,
            .weight_stride = args.weight_stride,
            .residual_stride = args.residual_stride,
            .out_stride = args.out_stride,
            .norm_weight = args.norm_weight,
            .epsilon = args.epsilon};
}

[[nodiscard]] inline QuantizedFfnArgs from_c(const hone_quantized_ffn_args& args) noexcept {
    return {.x = args.x,
            .x_scales = args.x_scales,
            .gate = {.codes = args.gate, .scales = args.gate_scales, .zeros = args.gate_zeros},
            .up = {.codes = args.up, .scales = args.up_scales, .zeros = args.up_zeros},
            .down = {.codes = args.down, .scales = args.down_scales, .zeros = args.down_zeros},
            .up_bias = args.up_bias,
            .down_bias = args.down_bias,
            .residual = args.residual,
            .out = args.out,
            .workspace = args.workspace,
            .x_stride = args.x_stride,
            .x_scale_stride = args.x_scale_stride,
            .residual_stride = args.residual_stride,
            .out_stride = args.out_stride,
            .norm_weight = args.norm_weight,
            .epsilon = args.epsilon};
}

[[nodiscard]] inline RmsNormBackwardArgs from_c(const hone_rms_norm_backward_args& args) noexcept {
    return {.dy = args.dy,
            .x = args.x,
            .weight = args.weight,
            .dsum = args.dsum,
            .dx = args.dx,
            .dweight = args.dweight,
            .workspace = args.workspace,
            .dy_stride = args.dy_stride,
            .x_stride = args.x_stride,
            .dsum_stride = args.dsum_stride,
            .dx_stride = args.dx_stride,
            .epsilon = args.epsilon};
}

[[nodiscard]] inline RopeKvAppendArgs from_c(const hone_rope_kv_append_args& args) noexcept {
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

[[nodiscard]] inline SampleArgs from_c(const hone_sample_args& args) noexcept {
    return {.logits = args.logits,
            .temperature = args.temperature,
            .top_k = args.top_k,
            .top_p = args.top_p,
            .min_p = args.min_p,
            .seed = args.seed,
            .counter = args.counter,
            .out = args.out,
            .log_probability = args.log_probability,
            .logits_stride = args.logits_stride};
}

/// What a C function returns for what run() does.
[[nodiscard]] hone_status to_c(Status status) noexcept;

}  // namespace hone::c_api

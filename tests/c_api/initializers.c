/* Whether every hone_*_init() writes what its macro has. Generated from the declarations,
 * kernel_templates/<folder>/operators.py, by `./hone generate`. */
#include <string.h>

#include "hone.h"

/* For program.c: the name of a struct whose function and macro differ; NULL when there is none. */
const char* differing_initializer(void);

static int attention_append_differs(void) {
    hone_attention_append made;
    const hone_attention_append wanted = HONE_ATTENTION_APPEND_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_attention_append_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.heads != wanted.heads ||
           made.kv_heads != wanted.kv_heads ||
           made.head_dim != wanted.head_dim ||
           made.rotary_dim != wanted.rotary_dim ||
           made.max_batch != wanted.max_batch ||
           made.max_kv_len != wanted.max_kv_len ||
           made.window != wanted.window ||
           made.page_size != wanted.page_size ||
           made.style != wanted.style ||
           made.norm != wanted.norm ||
           made.softcap != wanted.softcap ||
           made.reserved != wanted.reserved ||
           made.unit_offset != wanted.unit_offset;
}

static int attention_append_args_differs(void) {
    hone_attention_append_args made;
    const hone_attention_append_args wanted = HONE_ATTENTION_APPEND_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_attention_append_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.scale != wanted.scale ||
           made.softcap != wanted.softcap ||
           made.epsilon != wanted.epsilon ||
           made.q != wanted.q ||
           made.k != wanted.k ||
           made.v != wanted.v ||
           made.out != wanted.out ||
           made.k_cache != wanted.k_cache ||
           made.v_cache != wanted.v_cache ||
           made.cos != wanted.cos ||
           made.sin != wanted.sin ||
           made.kv_lengths != wanted.kv_lengths ||
           made.page_table != wanted.page_table ||
           made.q_weight != wanted.q_weight ||
           made.k_weight != wanted.k_weight ||
           made.workspace != wanted.workspace ||
           made.q_token_stride != wanted.q_token_stride ||
           made.q_head_stride != wanted.q_head_stride ||
           made.k_token_stride != wanted.k_token_stride ||
           made.k_head_stride != wanted.k_head_stride ||
           made.v_token_stride != wanted.v_token_stride ||
           made.v_head_stride != wanted.v_head_stride ||
           made.out_token_stride != wanted.out_token_stride ||
           made.out_head_stride != wanted.out_head_stride ||
           made.cache_batch_stride != wanted.cache_batch_stride ||
           made.cache_token_stride != wanted.cache_token_stride ||
           made.cache_head_stride != wanted.cache_head_stride ||
           made.page_table_stride != wanted.page_table_stride ||
           made.pool_pages != wanted.pool_pages ||
           made.table_rows != wanted.table_rows;
}

static int attention_differs(void) {
    hone_attention made;
    const hone_attention wanted = HONE_ATTENTION_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_attention_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.heads != wanted.heads ||
           made.kv_heads != wanted.kv_heads ||
           made.head_dim != wanted.head_dim ||
           made.max_batch != wanted.max_batch ||
           made.max_q_len != wanted.max_q_len ||
           made.max_kv_len != wanted.max_kv_len ||
           made.min_q_len != wanted.min_q_len ||
           made.window != wanted.window ||
           made.page_size != wanted.page_size ||
           made.kv_dtype != wanted.kv_dtype ||
           made.causal != wanted.causal ||
           made.lengths != wanted.lengths ||
           made.packed != wanted.packed ||
           made.softcap != wanted.softcap ||
           made.lse != wanted.lse ||
           made.sinks != wanted.sinks;
}

static int attention_args_differs(void) {
    hone_attention_args made;
    const hone_attention_args wanted = HONE_ATTENTION_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_attention_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.scale != wanted.scale ||
           made.softcap != wanted.softcap ||
           made.reserved != wanted.reserved ||
           made.q != wanted.q ||
           made.k != wanted.k ||
           made.v != wanted.v ||
           made.out != wanted.out ||
           made.lse != wanted.lse ||
           made.kv_lengths != wanted.kv_lengths ||
           made.q_starts != wanted.q_starts ||
           made.kv_starts != wanted.kv_starts ||
           made.page_table != wanted.page_table ||
           made.k_scale != wanted.k_scale ||
           made.v_scale != wanted.v_scale ||
           made.workspace != wanted.workspace ||
           made.q_batch_stride != wanted.q_batch_stride ||
           made.q_token_stride != wanted.q_token_stride ||
           made.q_head_stride != wanted.q_head_stride ||
           made.k_batch_stride != wanted.k_batch_stride ||
           made.k_token_stride != wanted.k_token_stride ||
           made.k_head_stride != wanted.k_head_stride ||
           made.v_batch_stride != wanted.v_batch_stride ||
           made.v_token_stride != wanted.v_token_stride ||
           made.v_head_stride != wanted.v_head_stride ||
           made.out_batch_stride != wanted.out_batch_stride ||
           made.out_token_stride != wanted.out_token_stride ||
           made.out_head_stride != wanted.out_head_stride ||
           made.page_table_stride != wanted.page_table_stride ||
           made.pool_pages != wanted.pool_pages ||
           made.q_tokens != wanted.q_tokens ||
           made.kv_tokens != wanted.kv_tokens ||
           made.sinks != wanted.sinks ||
           made.prompts != wanted.prompts;
}

static int embedding_differs(void) {
    hone_embedding made;
    const hone_embedding wanted = HONE_EMBEDDING_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_embedding_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.hidden != wanted.hidden ||
           made.max_tokens != wanted.max_tokens ||
           made.index != wanted.index ||
           made.scale != wanted.scale ||
           made.positions != wanted.positions ||
           made.reserved != wanted.reserved;
}

static int embedding_args_differs(void) {
    hone_embedding_args made;
    const hone_embedding_args wanted = HONE_EMBEDDING_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_embedding_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.scale != wanted.scale ||
           made.ids != wanted.ids ||
           made.table != wanted.table ||
           made.position_ids != wanted.position_ids ||
           made.position_table != wanted.position_table ||
           made.out != wanted.out ||
           made.vocabulary != wanted.vocabulary ||
           made.position_rows != wanted.position_rows ||
           made.table_stride != wanted.table_stride ||
           made.position_table_stride != wanted.position_table_stride ||
           made.out_stride != wanted.out_stride;
}

static int expert_linear_differs(void) {
    hone_expert_linear made;
    const hone_expert_linear wanted = HONE_EXPERT_LINEAR_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_expert_linear_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.in != wanted.in ||
           made.out != wanted.out ||
           made.experts != wanted.experts ||
           made.top_k != wanted.top_k ||
           made.max_tokens != wanted.max_tokens ||
           made.activation != wanted.activation ||
           made.gated != wanted.gated ||
           made.bias != wanted.bias ||
           made.gather != wanted.gather ||
           made.combine != wanted.combine ||
           made.reserved != wanted.reserved;
}

static int expert_linear_args_differs(void) {
    hone_expert_linear_args made;
    const hone_expert_linear_args wanted = HONE_EXPERT_LINEAR_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_expert_linear_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.reserved != wanted.reserved ||
           made.x != wanted.x ||
           made.starts != wanted.starts ||
           made.rows != wanted.rows ||
           made.routing_weights != wanted.routing_weights ||
           made.weight != wanted.weight ||
           made.up != wanted.up ||
           made.bias != wanted.bias ||
           made.up_bias != wanted.up_bias ||
           made.out != wanted.out ||
           made.workspace != wanted.workspace ||
           made.x_stride != wanted.x_stride ||
           made.out_stride != wanted.out_stride;
}

static int expert_routing_differs(void) {
    hone_expert_routing made;
    const hone_expert_routing wanted = HONE_EXPERT_ROUTING_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_expert_routing_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.experts != wanted.experts ||
           made.top_k != wanted.top_k ||
           made.max_tokens != wanted.max_tokens ||
           made.renormalize != wanted.renormalize ||
           made.reserved != wanted.reserved;
}

static int expert_routing_args_differs(void) {
    hone_expert_routing_args made;
    const hone_expert_routing_args wanted = HONE_EXPERT_ROUTING_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_expert_routing_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.reserved != wanted.reserved ||
           made.logits != wanted.logits ||
           made.routing_weights != wanted.routing_weights ||
           made.starts != wanted.starts ||
           made.rows != wanted.rows ||
           made.workspace != wanted.workspace ||
           made.logits_stride != wanted.logits_stride;
}

static int linear_differs(void) {
    hone_linear made;
    const hone_linear wanted = HONE_LINEAR_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_linear_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.in != wanted.in ||
           made.out != wanted.out ||
           made.max_tokens != wanted.max_tokens ||
           made.activation != wanted.activation ||
           made.bias != wanted.bias ||
           made.residual != wanted.residual ||
           made.norm != wanted.norm;
}

static int linear_args_differs(void) {
    hone_linear_args made;
    const hone_linear_args wanted = HONE_LINEAR_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_linear_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.epsilon != wanted.epsilon ||
           made.x != wanted.x ||
           made.weight != wanted.weight ||
           made.bias != wanted.bias ||
           made.residual != wanted.residual ||
           made.out != wanted.out ||
           made.workspace != wanted.workspace ||
           made.x_stride != wanted.x_stride ||
           made.weight_stride != wanted.weight_stride ||
           made.residual_stride != wanted.residual_stride ||
           made.out_stride != wanted.out_stride ||
           made.norm_weight != wanted.norm_weight;
}

static int fused_ffn_differs(void) {
    hone_fused_ffn made;
    const hone_fused_ffn wanted = HONE_FUSED_FFN_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_fused_ffn_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.hidden != wanted.hidden ||
           made.intermediate != wanted.intermediate ||
           made.max_tokens != wanted.max_tokens ||
           made.activation != wanted.activation ||
           made.gated != wanted.gated ||
           made.bias != wanted.bias ||
           made.residual != wanted.residual ||
           made.norm != wanted.norm;
}

static int fused_ffn_args_differs(void) {
    hone_fused_ffn_args made;
    const hone_fused_ffn_args wanted = HONE_FUSED_FFN_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_fused_ffn_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.epsilon != wanted.epsilon ||
           made.x != wanted.x ||
           made.gate != wanted.gate ||
           made.up != wanted.up ||
           made.up_bias != wanted.up_bias ||
           made.down != wanted.down ||
           made.down_bias != wanted.down_bias ||
           made.residual != wanted.residual ||
           made.out != wanted.out ||
           made.workspace != wanted.workspace ||
           made.x_stride != wanted.x_stride ||
           made.residual_stride != wanted.residual_stride ||
           made.out_stride != wanted.out_stride ||
           made.norm_weight != wanted.norm_weight;
}

static int rms_norm_differs(void) {
    hone_rms_norm made;
    const hone_rms_norm wanted = HONE_RMS_NORM_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_rms_norm_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.hidden != wanted.hidden ||
           made.max_rows != wanted.max_rows ||
           made.output != wanted.output ||
           made.residual != wanted.residual ||
           made.unit_offset != wanted.unit_offset;
}

static int norm_args_differs(void) {
    hone_norm_args made;
    const hone_norm_args wanted = HONE_NORM_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_norm_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.epsilon != wanted.epsilon ||
           made.x != wanted.x ||
           made.residual != wanted.residual ||
           made.weight != wanted.weight ||
           made.bias != wanted.bias ||
           made.out != wanted.out ||
           made.sum != wanted.sum ||
           made.scale != wanted.scale ||
           made.x_stride != wanted.x_stride ||
           made.residual_stride != wanted.residual_stride ||
           made.out_stride != wanted.out_stride ||
           made.sum_stride != wanted.sum_stride;
}

static int layer_norm_differs(void) {
    hone_layer_norm made;
    const hone_layer_norm wanted = HONE_LAYER_NORM_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_layer_norm_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.hidden != wanted.hidden ||
           made.max_rows != wanted.max_rows ||
           made.output != wanted.output ||
           made.residual != wanted.residual ||
           made.bias != wanted.bias ||
           made.reserved != wanted.reserved ||
           made.unit_offset != wanted.unit_offset;
}

static int quantize_weights_differs(void) {
    hone_quantize_weights made;
    const hone_quantize_weights wanted = HONE_QUANTIZE_WEIGHTS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_quantize_weights_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.in != wanted.in ||
           made.max_out != wanted.max_out ||
           made.group != wanted.group ||
           made.format != wanted.format ||
           made.zeros != wanted.zeros ||
           made.one_scale != wanted.one_scale ||
           made.scale_dtype != wanted.scale_dtype ||
           made.search != wanted.search ||
           made.reserved != wanted.reserved;
}

static int quantize_weights_args_differs(void) {
    hone_quantize_weights_args made;
    const hone_quantize_weights_args wanted = HONE_QUANTIZE_WEIGHTS_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_quantize_weights_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.reserved != wanted.reserved ||
           made.weight != wanted.weight ||
           made.codes != wanted.codes ||
           made.scales != wanted.scales ||
           made.zeros != wanted.zeros ||
           made.workspace != wanted.workspace ||
           made.weight_stride != wanted.weight_stride;
}

static int quantized_expert_linear_differs(void) {
    hone_quantized_expert_linear made;
    const hone_quantized_expert_linear wanted = HONE_QUANTIZED_EXPERT_LINEAR_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_quantized_expert_linear_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.in != wanted.in ||
           made.out != wanted.out ||
           made.experts != wanted.experts ||
           made.top_k != wanted.top_k ||
           made.max_tokens != wanted.max_tokens ||
           made.group != wanted.group ||
           made.format != wanted.format ||
           made.zeros != wanted.zeros ||
           made.activation != wanted.activation ||
           made.gated != wanted.gated ||
           made.bias != wanted.bias ||
           made.gather != wanted.gather ||
           made.combine != wanted.combine ||
           made.reserved != wanted.reserved;
}

static int quantized_expert_linear_args_differs(void) {
    hone_quantized_expert_linear_args made;
    const hone_quantized_expert_linear_args wanted = HONE_QUANTIZED_EXPERT_LINEAR_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_quantized_expert_linear_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.reserved != wanted.reserved ||
           made.x != wanted.x ||
           made.starts != wanted.starts ||
           made.rows != wanted.rows ||
           made.routing_weights != wanted.routing_weights ||
           made.weight != wanted.weight ||
           made.scales != wanted.scales ||
           made.zeros != wanted.zeros ||
           made.up != wanted.up ||
           made.up_scales != wanted.up_scales ||
           made.up_zeros != wanted.up_zeros ||
           made.bias != wanted.bias ||
           made.up_bias != wanted.up_bias ||
           made.out != wanted.out ||
           made.workspace != wanted.workspace ||
           made.x_stride != wanted.x_stride ||
           made.out_stride != wanted.out_stride;
}

static int quantized_linear_differs(void) {
    hone_quantized_linear made;
    const hone_quantized_linear wanted = HONE_QUANTIZED_LINEAR_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_quantized_linear_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.in != wanted.in ||
           made.out != wanted.out ||
           made.max_tokens != wanted.max_tokens ||
           made.group != wanted.group ||
           made.format != wanted.format ||
           made.zeros != wanted.zeros ||
           made.one_scale != wanted.one_scale ||
           made.quantized_x != wanted.quantized_x ||
           made.one_x_scale != wanted.one_x_scale ||
           made.activation != wanted.activation ||
           made.bias != wanted.bias ||
           made.residual != wanted.residual ||
           made.norm != wanted.norm ||
           made.reserved != wanted.reserved;
}

static int quantized_linear_args_differs(void) {
    hone_quantized_linear_args made;
    const hone_quantized_linear_args wanted = HONE_QUANTIZED_LINEAR_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_quantized_linear_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.epsilon != wanted.epsilon ||
           made.x != wanted.x ||
           made.x_scales != wanted.x_scales ||
           made.norm_weight != wanted.norm_weight ||
           made.weight != wanted.weight ||
           made.scales != wanted.scales ||
           made.zeros != wanted.zeros ||
           made.bias != wanted.bias ||
           made.residual != wanted.residual ||
           made.out != wanted.out ||
           made.workspace != wanted.workspace ||
           made.x_stride != wanted.x_stride ||
           made.x_scale_stride != wanted.x_scale_stride ||
           made.weight_stride != wanted.weight_stride ||
           made.residual_stride != wanted.residual_stride ||
           made.out_stride != wanted.out_stride;
}

static int quantized_ffn_differs(void) {
    hone_quantized_ffn made;
    const hone_quantized_ffn wanted = HONE_QUANTIZED_FFN_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_quantized_ffn_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.hidden != wanted.hidden ||
           made.intermediate != wanted.intermediate ||
           made.max_tokens != wanted.max_tokens ||
           made.group != wanted.group ||
           made.format != wanted.format ||
           made.zeros != wanted.zeros ||
           made.one_scale != wanted.one_scale ||
           made.quantized_x != wanted.quantized_x ||
           made.one_x_scale != wanted.one_x_scale ||
           made.activation != wanted.activation ||
           made.gated != wanted.gated ||
           made.bias != wanted.bias ||
           made.residual != wanted.residual ||
           made.norm != wanted.norm;
}

static int quantized_ffn_args_differs(void) {
    hone_quantized_ffn_args made;
    const hone_quantized_ffn_args wanted = HONE_QUANTIZED_FFN_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_quantized_ffn_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.epsilon != wanted.epsilon ||
           made.x != wanted.x ||
           made.x_scales != wanted.x_scales ||
           made.norm_weight != wanted.norm_weight ||
           made.gate != wanted.gate ||
           made.gate_scales != wanted.gate_scales ||
           made.gate_zeros != wanted.gate_zeros ||
           made.up != wanted.up ||
           made.up_scales != wanted.up_scales ||
           made.up_zeros != wanted.up_zeros ||
           made.down != wanted.down ||
           made.down_scales != wanted.down_scales ||
           made.down_zeros != wanted.down_zeros ||
           made.up_bias != wanted.up_bias ||
           made.down_bias != wanted.down_bias ||
           made.residual != wanted.residual ||
           made.out != wanted.out ||
           made.workspace != wanted.workspace ||
           made.x_stride != wanted.x_stride ||
           made.x_scale_stride != wanted.x_scale_stride ||
           made.residual_stride != wanted.residual_stride ||
           made.out_stride != wanted.out_stride;
}

static int rms_norm_backward_differs(void) {
    hone_rms_norm_backward made;
    const hone_rms_norm_backward wanted = HONE_RMS_NORM_BACKWARD_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_rms_norm_backward_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.hidden != wanted.hidden ||
           made.max_rows != wanted.max_rows ||
           made.residual != wanted.residual ||
           made.reserved != wanted.reserved;
}

static int rms_norm_backward_args_differs(void) {
    hone_rms_norm_backward_args made;
    const hone_rms_norm_backward_args wanted = HONE_RMS_NORM_BACKWARD_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_rms_norm_backward_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.epsilon != wanted.epsilon ||
           made.dy != wanted.dy ||
           made.x != wanted.x ||
           made.weight != wanted.weight ||
           made.dsum != wanted.dsum ||
           made.dx != wanted.dx ||
           made.dweight != wanted.dweight ||
           made.workspace != wanted.workspace ||
           made.dy_stride != wanted.dy_stride ||
           made.x_stride != wanted.x_stride ||
           made.dsum_stride != wanted.dsum_stride ||
           made.dx_stride != wanted.dx_stride;
}

static int rope_kv_append_differs(void) {
    hone_rope_kv_append made;
    const hone_rope_kv_append wanted = HONE_ROPE_KV_APPEND_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_rope_kv_append_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.heads != wanted.heads ||
           made.kv_heads != wanted.kv_heads ||
           made.head_dim != wanted.head_dim ||
           made.rotary_dim != wanted.rotary_dim ||
           made.max_tokens != wanted.max_tokens ||
           made.page_size != wanted.page_size ||
           made.kv_dtype != wanted.kv_dtype ||
           made.style != wanted.style ||
           made.norm != wanted.norm ||
           made.slots != wanted.slots ||
           made.unit_offset != wanted.unit_offset;
}

static int rope_kv_append_args_differs(void) {
    hone_rope_kv_append_args made;
    const hone_rope_kv_append_args wanted = HONE_ROPE_KV_APPEND_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_rope_kv_append_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.epsilon != wanted.epsilon ||
           made.q != wanted.q ||
           made.k != wanted.k ||
           made.v != wanted.v ||
           made.out != wanted.out ||
           made.k_cache != wanted.k_cache ||
           made.v_cache != wanted.v_cache ||
           made.cos != wanted.cos ||
           made.sin != wanted.sin ||
           made.kv_lengths != wanted.kv_lengths ||
           made.page_table != wanted.page_table ||
           made.positions != wanted.positions ||
           made.slots != wanted.slots ||
           made.k_scale != wanted.k_scale ||
           made.v_scale != wanted.v_scale ||
           made.q_weight != wanted.q_weight ||
           made.k_weight != wanted.k_weight ||
           made.q_token_stride != wanted.q_token_stride ||
           made.q_head_stride != wanted.q_head_stride ||
           made.k_token_stride != wanted.k_token_stride ||
           made.k_head_stride != wanted.k_head_stride ||
           made.v_token_stride != wanted.v_token_stride ||
           made.v_head_stride != wanted.v_head_stride ||
           made.out_token_stride != wanted.out_token_stride ||
           made.out_head_stride != wanted.out_head_stride ||
           made.cache_batch_stride != wanted.cache_batch_stride ||
           made.cache_token_stride != wanted.cache_token_stride ||
           made.cache_head_stride != wanted.cache_head_stride ||
           made.page_table_stride != wanted.page_table_stride ||
           made.q_len != wanted.q_len ||
           made.kv_len != wanted.kv_len ||
           made.pool_pages != wanted.pool_pages ||
           made.table_rows != wanted.table_rows;
}

static int sample_differs(void) {
    hone_sample made;
    const hone_sample wanted = HONE_SAMPLE_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_sample_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.dtype != wanted.dtype ||
           made.vocabulary != wanted.vocabulary ||
           made.max_rows != wanted.max_rows ||
           made.filters != wanted.filters ||
           made.log_probability != wanted.log_probability ||
           made.softcap != wanted.softcap;
}

static int sample_args_differs(void) {
    hone_sample_args made;
    const hone_sample_args wanted = HONE_SAMPLE_ARGS_INIT;
    memset(&made, 0xff, sizeof made);
    if (hone_sample_args_init(&made, sizeof made) != HONE_OK) return 1;
    return made.struct_size != wanted.struct_size ||
           made.reserved != wanted.reserved ||
           made.logits != wanted.logits ||
           made.temperature != wanted.temperature ||
           made.top_k != wanted.top_k ||
           made.top_p != wanted.top_p ||
           made.min_p != wanted.min_p ||
           made.seed != wanted.seed ||
           made.counter != wanted.counter ||
           made.out != wanted.out ||
           made.log_probability != wanted.log_probability ||
           made.logits_stride != wanted.logits_stride;
}

const char* differing_initializer(void) {
    if (attention_append_differs()) return "attention_append";
    if (attention_append_args_differs()) return "attention_append_args";
    if (attention_differs()) return "attention";
    if (attention_args_differs()) return "attention_args";
    if (embedding_differs()) return "embedding";
    if (embedding_args_differs()) return "embedding_args";
    if (expert_linear_differs()) return "expert_linear";
    if (expert_linear_args_differs()) return "expert_linear_args";
    if (expert_routing_differs()) return "expert_routing";
    if (expert_routing_args_differs()) return "expert_routing_args";
    if (linear_differs()) return "linear";
    if (linear_args_differs()) return "linear_args";
    if (fused_ffn_differs()) return "fused_ffn";
    if (fused_ffn_args_differs()) return "fused_ffn_args";
    if (rms_norm_differs()) return "rms_norm";
    if (norm_args_differs()) return "norm_args";
    if (layer_norm_differs()) return "layer_norm";
    if (quantize_weights_differs()) return "quantize_weights";
    if (quantize_weights_args_differs()) return "quantize_weights_args";
    if (quantized_expert_linear_differs()) return "quantized_expert_linear";
    if (quantized_expert_linear_args_differs()) return "quantized_expert_linear_args";
    if (quantized_linear_differs()) return "quantized_linear";
    if (quantized_linear_args_differs()) return "quantized_linear_args";
    if (quantized_ffn_differs()) return "quantized_ffn";
    if (quantized_ffn_args_differs()) return "quantized_ffn_args";
    if (rms_norm_backward_differs()) return "rms_norm_backward";
    if (rms_norm_backward_args_differs()) return "rms_norm_backward_args";
    if (rope_kv_append_differs()) return "rope_kv_append";
    if (rope_kv_append_args_differs()) return "rope_kv_append_args";
    if (sample_differs()) return "sample";
    if (sample_args_differs()) return "sample_args";
    return NULL;
}

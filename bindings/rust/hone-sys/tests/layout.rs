//! Every member stands where C has it. Generated from kernel_templates/*/operators.py and
//! generate/enums.py by `./hone generate`.

use hone_sys::*;
use std::mem::{size_of, MaybeUninit};
use std::ptr::addr_of;

macro_rules! at {
    ($type:ty, $member:ident, $offset:expr) => {{
        let made = MaybeUninit::<$type>::uninit();
        let address = unsafe { addr_of!((*made.as_ptr()).$member) } as usize;
        assert_eq!(address - made.as_ptr() as usize, $offset, stringify!($type, $member));
    }};
}

#[test]
fn attention_append() {
    assert_eq!(size_of::<hone_attention_append>(), 96);
    at!(hone_attention_append, struct_size, 0);
    at!(hone_attention_append, dtype, 4);
    at!(hone_attention_append, heads, 8);
    at!(hone_attention_append, kv_heads, 16);
    at!(hone_attention_append, head_dim, 24);
    at!(hone_attention_append, rotary_dim, 32);
    at!(hone_attention_append, max_batch, 40);
    at!(hone_attention_append, max_kv_len, 48);
    at!(hone_attention_append, window, 56);
    at!(hone_attention_append, page_size, 64);
    at!(hone_attention_append, style, 72);
    at!(hone_attention_append, norm, 76);
    at!(hone_attention_append, softcap, 80);
    at!(hone_attention_append, reserved, 84);
    at!(hone_attention_append, unit_offset, 88);
    let made = hone_attention_append::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_attention_append>());
}

#[test]
fn attention_append_args() {
    assert_eq!(size_of::<hone_attention_append_args>(), 232);
    at!(hone_attention_append_args, struct_size, 0);
    at!(hone_attention_append_args, scale, 4);
    at!(hone_attention_append_args, softcap, 8);
    at!(hone_attention_append_args, epsilon, 12);
    at!(hone_attention_append_args, q, 16);
    at!(hone_attention_append_args, k, 24);
    at!(hone_attention_append_args, v, 32);
    at!(hone_attention_append_args, out, 40);
    at!(hone_attention_append_args, k_cache, 48);
    at!(hone_attention_append_args, v_cache, 56);
    at!(hone_attention_append_args, cos, 64);
    at!(hone_attention_append_args, sin, 72);
    at!(hone_attention_append_args, kv_lengths, 80);
    at!(hone_attention_append_args, page_table, 88);
    at!(hone_attention_append_args, q_weight, 96);
    at!(hone_attention_append_args, k_weight, 104);
    at!(hone_attention_append_args, workspace, 112);
    at!(hone_attention_append_args, q_token_stride, 120);
    at!(hone_attention_append_args, q_head_stride, 128);
    at!(hone_attention_append_args, k_token_stride, 136);
    at!(hone_attention_append_args, k_head_stride, 144);
    at!(hone_attention_append_args, v_token_stride, 152);
    at!(hone_attention_append_args, v_head_stride, 160);
    at!(hone_attention_append_args, out_token_stride, 168);
    at!(hone_attention_append_args, out_head_stride, 176);
    at!(hone_attention_append_args, cache_batch_stride, 184);
    at!(hone_attention_append_args, cache_token_stride, 192);
    at!(hone_attention_append_args, cache_head_stride, 200);
    at!(hone_attention_append_args, page_table_stride, 208);
    at!(hone_attention_append_args, pool_pages, 216);
    at!(hone_attention_append_args, table_rows, 224);
    let made = hone_attention_append_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_attention_append_args>());
}

#[test]
fn attention() {
    assert_eq!(size_of::<hone_attention>(), 112);
    at!(hone_attention, struct_size, 0);
    at!(hone_attention, dtype, 4);
    at!(hone_attention, heads, 8);
    at!(hone_attention, kv_heads, 16);
    at!(hone_attention, head_dim, 24);
    at!(hone_attention, max_batch, 32);
    at!(hone_attention, max_q_len, 40);
    at!(hone_attention, max_kv_len, 48);
    at!(hone_attention, min_q_len, 56);
    at!(hone_attention, window, 64);
    at!(hone_attention, page_size, 72);
    at!(hone_attention, kv_dtype, 80);
    at!(hone_attention, causal, 84);
    at!(hone_attention, lengths, 88);
    at!(hone_attention, packed, 92);
    at!(hone_attention, softcap, 96);
    at!(hone_attention, lse, 100);
    at!(hone_attention, sinks, 104);
    let made = hone_attention::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_attention>());
}

#[test]
fn attention_args() {
    assert_eq!(size_of::<hone_attention_args>(), 256);
    at!(hone_attention_args, struct_size, 0);
    at!(hone_attention_args, scale, 4);
    at!(hone_attention_args, softcap, 8);
    at!(hone_attention_args, reserved, 12);
    at!(hone_attention_args, q, 16);
    at!(hone_attention_args, k, 24);
    at!(hone_attention_args, v, 32);
    at!(hone_attention_args, out, 40);
    at!(hone_attention_args, lse, 48);
    at!(hone_attention_args, kv_lengths, 56);
    at!(hone_attention_args, q_starts, 64);
    at!(hone_attention_args, kv_starts, 72);
    at!(hone_attention_args, page_table, 80);
    at!(hone_attention_args, k_scale, 88);
    at!(hone_attention_args, v_scale, 96);
    at!(hone_attention_args, workspace, 104);
    at!(hone_attention_args, q_batch_stride, 112);
    at!(hone_attention_args, q_token_stride, 120);
    at!(hone_attention_args, q_head_stride, 128);
    at!(hone_attention_args, k_batch_stride, 136);
    at!(hone_attention_args, k_token_stride, 144);
    at!(hone_attention_args, k_head_stride, 152);
    at!(hone_attention_args, v_batch_stride, 160);
    at!(hone_attention_args, v_token_stride, 168);
    at!(hone_attention_args, v_head_stride, 176);
    at!(hone_attention_args, out_batch_stride, 184);
    at!(hone_attention_args, out_token_stride, 192);
    at!(hone_attention_args, out_head_stride, 200);
    at!(hone_attention_args, page_table_stride, 208);
    at!(hone_attention_args, pool_pages, 216);
    at!(hone_attention_args, q_tokens, 224);
    at!(hone_attention_args, kv_tokens, 232);
    at!(hone_attention_args, sinks, 240);
    at!(hone_attention_args, prompts, 248);
    let made = hone_attention_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_attention_args>());
}

#[test]
fn embedding() {
    assert_eq!(size_of::<hone_embedding>(), 40);
    at!(hone_embedding, struct_size, 0);
    at!(hone_embedding, dtype, 4);
    at!(hone_embedding, hidden, 8);
    at!(hone_embedding, max_tokens, 16);
    at!(hone_embedding, index, 24);
    at!(hone_embedding, scale, 28);
    at!(hone_embedding, positions, 32);
    at!(hone_embedding, reserved, 36);
    let made = hone_embedding::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_embedding>());
}

#[test]
fn embedding_args() {
    assert_eq!(size_of::<hone_embedding_args>(), 88);
    at!(hone_embedding_args, struct_size, 0);
    at!(hone_embedding_args, scale, 4);
    at!(hone_embedding_args, ids, 8);
    at!(hone_embedding_args, table, 16);
    at!(hone_embedding_args, position_ids, 24);
    at!(hone_embedding_args, position_table, 32);
    at!(hone_embedding_args, out, 40);
    at!(hone_embedding_args, vocabulary, 48);
    at!(hone_embedding_args, position_rows, 56);
    at!(hone_embedding_args, table_stride, 64);
    at!(hone_embedding_args, position_table_stride, 72);
    at!(hone_embedding_args, out_stride, 80);
    let made = hone_embedding_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_embedding_args>());
}

#[test]
fn expert_linear() {
    assert_eq!(size_of::<hone_expert_linear>(), 72);
    at!(hone_expert_linear, struct_size, 0);
    at!(hone_expert_linear, dtype, 4);
    at!(hone_expert_linear, in_, 8);
    at!(hone_expert_linear, out, 16);
    at!(hone_expert_linear, experts, 24);
    at!(hone_expert_linear, top_k, 32);
    at!(hone_expert_linear, max_tokens, 40);
    at!(hone_expert_linear, activation, 48);
    at!(hone_expert_linear, gated, 52);
    at!(hone_expert_linear, bias, 56);
    at!(hone_expert_linear, gather, 60);
    at!(hone_expert_linear, combine, 64);
    at!(hone_expert_linear, reserved, 68);
    let made = hone_expert_linear::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_expert_linear>());
}

#[test]
fn expert_linear_args() {
    assert_eq!(size_of::<hone_expert_linear_args>(), 104);
    at!(hone_expert_linear_args, struct_size, 0);
    at!(hone_expert_linear_args, reserved, 4);
    at!(hone_expert_linear_args, x, 8);
    at!(hone_expert_linear_args, starts, 16);
    at!(hone_expert_linear_args, rows, 24);
    at!(hone_expert_linear_args, routing_weights, 32);
    at!(hone_expert_linear_args, weight, 40);
    at!(hone_expert_linear_args, up, 48);
    at!(hone_expert_linear_args, bias, 56);
    at!(hone_expert_linear_args, up_bias, 64);
    at!(hone_expert_linear_args, out, 72);
    at!(hone_expert_linear_args, workspace, 80);
    at!(hone_expert_linear_args, x_stride, 88);
    at!(hone_expert_linear_args, out_stride, 96);
    let made = hone_expert_linear_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_expert_linear_args>());
}

#[test]
fn expert_routing() {
    assert_eq!(size_of::<hone_expert_routing>(), 40);
    at!(hone_expert_routing, struct_size, 0);
    at!(hone_expert_routing, dtype, 4);
    at!(hone_expert_routing, experts, 8);
    at!(hone_expert_routing, top_k, 16);
    at!(hone_expert_routing, max_tokens, 24);
    at!(hone_expert_routing, renormalize, 32);
    at!(hone_expert_routing, reserved, 36);
    let made = hone_expert_routing::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_expert_routing>());
}

#[test]
fn expert_routing_args() {
    assert_eq!(size_of::<hone_expert_routing_args>(), 56);
    at!(hone_expert_routing_args, struct_size, 0);
    at!(hone_expert_routing_args, reserved, 4);
    at!(hone_expert_routing_args, logits, 8);
    at!(hone_expert_routing_args, routing_weights, 16);
    at!(hone_expert_routing_args, starts, 24);
    at!(hone_expert_routing_args, rows, 32);
    at!(hone_expert_routing_args, workspace, 40);
    at!(hone_expert_routing_args, logits_stride, 48);
    let made = hone_expert_routing_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_expert_routing_args>());
}

#[test]
fn linear() {
    assert_eq!(size_of::<hone_linear>(), 48);
    at!(hone_linear, struct_size, 0);
    at!(hone_linear, dtype, 4);
    at!(hone_linear, in_, 8);
    at!(hone_linear, out, 16);
    at!(hone_linear, max_tokens, 24);
    at!(hone_linear, activation, 32);
    at!(hone_linear, bias, 36);
    at!(hone_linear, residual, 40);
    at!(hone_linear, norm, 44);
    let made = hone_linear::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_linear>());
}

#[test]
fn linear_args() {
    assert_eq!(size_of::<hone_linear_args>(), 96);
    at!(hone_linear_args, struct_size, 0);
    at!(hone_linear_args, epsilon, 4);
    at!(hone_linear_args, x, 8);
    at!(hone_linear_args, weight, 16);
    at!(hone_linear_args, bias, 24);
    at!(hone_linear_args, residual, 32);
    at!(hone_linear_args, out, 40);
    at!(hone_linear_args, workspace, 48);
    at!(hone_linear_args, x_stride, 56);
    at!(hone_linear_args, weight_stride, 64);
    at!(hone_linear_args, residual_stride, 72);
    at!(hone_linear_args, out_stride, 80);
    at!(hone_linear_args, norm_weight, 88);
    let made = hone_linear_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_linear_args>());
}

#[test]
fn fused_ffn() {
    assert_eq!(size_of::<hone_fused_ffn>(), 56);
    at!(hone_fused_ffn, struct_size, 0);
    at!(hone_fused_ffn, dtype, 4);
    at!(hone_fused_ffn, hidden, 8);
    at!(hone_fused_ffn, intermediate, 16);
    at!(hone_fused_ffn, max_tokens, 24);
    at!(hone_fused_ffn, activation, 32);
    at!(hone_fused_ffn, gated, 36);
    at!(hone_fused_ffn, bias, 40);
    at!(hone_fused_ffn, residual, 44);
    at!(hone_fused_ffn, norm, 48);
    let made = hone_fused_ffn::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_fused_ffn>());
}

#[test]
fn fused_ffn_args() {
    assert_eq!(size_of::<hone_fused_ffn_args>(), 112);
    at!(hone_fused_ffn_args, struct_size, 0);
    at!(hone_fused_ffn_args, epsilon, 4);
    at!(hone_fused_ffn_args, x, 8);
    at!(hone_fused_ffn_args, gate, 16);
    at!(hone_fused_ffn_args, up, 24);
    at!(hone_fused_ffn_args, up_bias, 32);
    at!(hone_fused_ffn_args, down, 40);
    at!(hone_fused_ffn_args, down_bias, 48);
    at!(hone_fused_ffn_args, residual, 56);
    at!(hone_fused_ffn_args, out, 64);
    at!(hone_fused_ffn_args, workspace, 72);
    at!(hone_fused_ffn_args, x_stride, 80);
    at!(hone_fused_ffn_args, residual_stride, 88);
    at!(hone_fused_ffn_args, out_stride, 96);
    at!(hone_fused_ffn_args, norm_weight, 104);
    let made = hone_fused_ffn_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_fused_ffn_args>());
}

#[test]
fn rms_norm() {
    assert_eq!(size_of::<hone_rms_norm>(), 40);
    at!(hone_rms_norm, struct_size, 0);
    at!(hone_rms_norm, dtype, 4);
    at!(hone_rms_norm, hidden, 8);
    at!(hone_rms_norm, max_rows, 16);
    at!(hone_rms_norm, output, 24);
    at!(hone_rms_norm, residual, 28);
    at!(hone_rms_norm, unit_offset, 32);
    let made = hone_rms_norm::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_rms_norm>());
}

#[test]
fn norm_args() {
    assert_eq!(size_of::<hone_norm_args>(), 96);
    at!(hone_norm_args, struct_size, 0);
    at!(hone_norm_args, epsilon, 4);
    at!(hone_norm_args, x, 8);
    at!(hone_norm_args, residual, 16);
    at!(hone_norm_args, weight, 24);
    at!(hone_norm_args, bias, 32);
    at!(hone_norm_args, out, 40);
    at!(hone_norm_args, sum, 48);
    at!(hone_norm_args, scale, 56);
    at!(hone_norm_args, x_stride, 64);
    at!(hone_norm_args, residual_stride, 72);
    at!(hone_norm_args, out_stride, 80);
    at!(hone_norm_args, sum_stride, 88);
    let made = hone_norm_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_norm_args>());
}

#[test]
fn layer_norm() {
    assert_eq!(size_of::<hone_layer_norm>(), 48);
    at!(hone_layer_norm, struct_size, 0);
    at!(hone_layer_norm, dtype, 4);
    at!(hone_layer_norm, hidden, 8);
    at!(hone_layer_norm, max_rows, 16);
    at!(hone_layer_norm, output, 24);
    at!(hone_layer_norm, residual, 28);
    at!(hone_layer_norm, bias, 32);
    at!(hone_layer_norm, reserved, 36);
    at!(hone_layer_norm, unit_offset, 40);
    let made = hone_layer_norm::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_layer_norm>());
}

#[test]
fn quantize_weights() {
    assert_eq!(size_of::<hone_quantize_weights>(), 56);
    at!(hone_quantize_weights, struct_size, 0);
    at!(hone_quantize_weights, dtype, 4);
    at!(hone_quantize_weights, in_, 8);
    at!(hone_quantize_weights, max_out, 16);
    at!(hone_quantize_weights, group, 24);
    at!(hone_quantize_weights, format, 32);
    at!(hone_quantize_weights, zeros, 36);
    at!(hone_quantize_weights, one_scale, 40);
    at!(hone_quantize_weights, scale_dtype, 44);
    at!(hone_quantize_weights, search, 48);
    at!(hone_quantize_weights, reserved, 52);
    let made = hone_quantize_weights::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_quantize_weights>());
}

#[test]
fn quantize_weights_args() {
    assert_eq!(size_of::<hone_quantize_weights_args>(), 56);
    at!(hone_quantize_weights_args, struct_size, 0);
    at!(hone_quantize_weights_args, reserved, 4);
    at!(hone_quantize_weights_args, weight, 8);
    at!(hone_quantize_weights_args, codes, 16);
    at!(hone_quantize_weights_args, scales, 24);
    at!(hone_quantize_weights_args, zeros, 32);
    at!(hone_quantize_weights_args, workspace, 40);
    at!(hone_quantize_weights_args, weight_stride, 48);
    let made = hone_quantize_weights_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_quantize_weights_args>());
}

#[test]
fn quantized_expert_linear() {
    assert_eq!(size_of::<hone_quantized_expert_linear>(), 88);
    at!(hone_quantized_expert_linear, struct_size, 0);
    at!(hone_quantized_expert_linear, dtype, 4);
    at!(hone_quantized_expert_linear, in_, 8);
    at!(hone_quantized_expert_linear, out, 16);
    at!(hone_quantized_expert_linear, experts, 24);
    at!(hone_quantized_expert_linear, top_k, 32);
    at!(hone_quantized_expert_linear, max_tokens, 40);
    at!(hone_quantized_expert_linear, group, 48);
    at!(hone_quantized_expert_linear, format, 56);
    at!(hone_quantized_expert_linear, zeros, 60);
    at!(hone_quantized_expert_linear, activation, 64);
    at!(hone_quantized_expert_linear, gated, 68);
    at!(hone_quantized_expert_linear, bias, 72);
    at!(hone_quantized_expert_linear, gather, 76);
    at!(hone_quantized_expert_linear, combine, 80);
    at!(hone_quantized_expert_linear, reserved, 84);
    let made = hone_quantized_expert_linear::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_quantized_expert_linear>());
}

#[test]
fn quantized_expert_linear_args() {
    assert_eq!(size_of::<hone_quantized_expert_linear_args>(), 136);
    at!(hone_quantized_expert_linear_args, struct_size, 0);
    at!(hone_quantized_expert_linear_args, reserved, 4);
    at!(hone_quantized_expert_linear_args, x, 8);
    at!(hone_quantized_expert_linear_args, starts, 16);
    at!(hone_quantized_expert_linear_args, rows, 24);
    at!(hone_quantized_expert_linear_args, routing_weights, 32);
    at!(hone_quantized_expert_linear_args, weight, 40);
    at!(hone_quantized_expert_linear_args, scales, 48);
    at!(hone_quantized_expert_linear_args, zeros, 56);
    at!(hone_quantized_expert_linear_args, up, 64);
    at!(hone_quantized_expert_linear_args, up_scales, 72);
    at!(hone_quantized_expert_linear_args, up_zeros, 80);
    at!(hone_quantized_expert_linear_args, bias, 88);
    at!(hone_quantized_expert_linear_args, up_bias, 96);
    at!(hone_quantized_expert_linear_args, out, 104);
    at!(hone_quantized_expert_linear_args, workspace, 112);
    at!(hone_quantized_expert_linear_args, x_stride, 120);
    at!(hone_quantized_expert_linear_args, out_stride, 128);
    let made = hone_quantized_expert_linear_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_quantized_expert_linear_args>());
}

#[test]
fn quantized_linear() {
    assert_eq!(size_of::<hone_quantized_linear>(), 80);
    at!(hone_quantized_linear, struct_size, 0);
    at!(hone_quantized_linear, dtype, 4);
    at!(hone_quantized_linear, in_, 8);
    at!(hone_quantized_linear, out, 16);
    at!(hone_quantized_linear, max_tokens, 24);
    at!(hone_quantized_linear, group, 32);
    at!(hone_quantized_linear, format, 40);
    at!(hone_quantized_linear, zeros, 44);
    at!(hone_quantized_linear, one_scale, 48);
    at!(hone_quantized_linear, quantized_x, 52);
    at!(hone_quantized_linear, one_x_scale, 56);
    at!(hone_quantized_linear, activation, 60);
    at!(hone_quantized_linear, bias, 64);
    at!(hone_quantized_linear, residual, 68);
    at!(hone_quantized_linear, norm, 72);
    at!(hone_quantized_linear, reserved, 76);
    let made = hone_quantized_linear::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_quantized_linear>());
}

#[test]
fn quantized_linear_args() {
    assert_eq!(size_of::<hone_quantized_linear_args>(), 128);
    at!(hone_quantized_linear_args, struct_size, 0);
    at!(hone_quantized_linear_args, epsilon, 4);
    at!(hone_quantized_linear_args, x, 8);
    at!(hone_quantized_linear_args, x_scales, 16);
    at!(hone_quantized_linear_args, norm_weight, 24);
    at!(hone_quantized_linear_args, weight, 32);
    at!(hone_quantized_linear_args, scales, 40);
    at!(hone_quantized_linear_args, zeros, 48);
    at!(hone_quantized_linear_args, bias, 56);
    at!(hone_quantized_linear_args, residual, 64);
    at!(hone_quantized_linear_args, out, 72);
    at!(hone_quantized_linear_args, workspace, 80);
    at!(hone_quantized_linear_args, x_stride, 88);
    at!(hone_quantized_linear_args, x_scale_stride, 96);
    at!(hone_quantized_linear_args, weight_stride, 104);
    at!(hone_quantized_linear_args, residual_stride, 112);
    at!(hone_quantized_linear_args, out_stride, 120);
    let made = hone_quantized_linear_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_quantized_linear_args>());
}

#[test]
fn quantized_ffn() {
    assert_eq!(size_of::<hone_quantized_ffn>(), 80);
    at!(hone_quantized_ffn, struct_size, 0);
    at!(hone_quantized_ffn, dtype, 4);
    at!(hone_quantized_ffn, hidden, 8);
    at!(hone_quantized_ffn, intermediate, 16);
    at!(hone_quantized_ffn, max_tokens, 24);
    at!(hone_quantized_ffn, group, 32);
    at!(hone_quantized_ffn, format, 40);
    at!(hone_quantized_ffn, zeros, 44);
    at!(hone_quantized_ffn, one_scale, 48);
    at!(hone_quantized_ffn, quantized_x, 52);
    at!(hone_quantized_ffn, one_x_scale, 56);
    at!(hone_quantized_ffn, activation, 60);
    at!(hone_quantized_ffn, gated, 64);
    at!(hone_quantized_ffn, bias, 68);
    at!(hone_quantized_ffn, residual, 72);
    at!(hone_quantized_ffn, norm, 76);
    let made = hone_quantized_ffn::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_quantized_ffn>());
}

#[test]
fn quantized_ffn_args() {
    assert_eq!(size_of::<hone_quantized_ffn_args>(), 176);
    at!(hone_quantized_ffn_args, struct_size, 0);
    at!(hone_quantized_ffn_args, epsilon, 4);
    at!(hone_quantized_ffn_args, x, 8);
    at!(hone_quantized_ffn_args, x_scales, 16);
    at!(hone_quantized_ffn_args, norm_weight, 24);
    at!(hone_quantized_ffn_args, gate, 32);
    at!(hone_quantized_ffn_args, gate_scales, 40);
    at!(hone_quantized_ffn_args, gate_zeros, 48);
    at!(hone_quantized_ffn_args, up, 56);
    at!(hone_quantized_ffn_args, up_scales, 64);
    at!(hone_quantized_ffn_args, up_zeros, 72);
    at!(hone_quantized_ffn_args, down, 80);
    at!(hone_quantized_ffn_args, down_scales, 88);
    at!(hone_quantized_ffn_args, down_zeros, 96);
    at!(hone_quantized_ffn_args, up_bias, 104);
    at!(hone_quantized_ffn_args, down_bias, 112);
    at!(hone_quantized_ffn_args, residual, 120);
    at!(hone_quantized_ffn_args, out, 128);
    at!(hone_quantized_ffn_args, workspace, 136);
    at!(hone_quantized_ffn_args, x_stride, 144);
    at!(hone_quantized_ffn_args, x_scale_stride, 152);
    at!(hone_quantized_ffn_args, residual_stride, 160);
    at!(hone_quantized_ffn_args, out_stride, 168);
    let made = hone_quantized_ffn_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_quantized_ffn_args>());
}

#[test]
fn rms_norm_backward() {
    assert_eq!(size_of::<hone_rms_norm_backward>(), 32);
    at!(hone_rms_norm_backward, struct_size, 0);
    at!(hone_rms_norm_backward, dtype, 4);
    at!(hone_rms_norm_backward, hidden, 8);
    at!(hone_rms_norm_backward, max_rows, 16);
    at!(hone_rms_norm_backward, residual, 24);
    at!(hone_rms_norm_backward, reserved, 28);
    let made = hone_rms_norm_backward::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_rms_norm_backward>());
}

#[test]
fn rms_norm_backward_args() {
    assert_eq!(size_of::<hone_rms_norm_backward_args>(), 96);
    at!(hone_rms_norm_backward_args, struct_size, 0);
    at!(hone_rms_norm_backward_args, epsilon, 4);
    at!(hone_rms_norm_backward_args, dy, 8);
    at!(hone_rms_norm_backward_args, x, 16);
    at!(hone_rms_norm_backward_args, weight, 24);
    at!(hone_rms_norm_backward_args, dsum, 32);
    at!(hone_rms_norm_backward_args, dx, 40);
    at!(hone_rms_norm_backward_args, dweight, 48);
    at!(hone_rms_norm_backward_args, workspace, 56);
    at!(hone_rms_norm_backward_args, dy_stride, 64);
    at!(hone_rms_norm_backward_args, x_stride, 72);
    at!(hone_rms_norm_backward_args, dsum_stride, 80);
    at!(hone_rms_norm_backward_args, dx_stride, 88);
    let made = hone_rms_norm_backward_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_rms_norm_backward_args>());
}

#[test]
fn rope_kv_append() {
    assert_eq!(size_of::<hone_rope_kv_append>(), 80);
    at!(hone_rope_kv_append, struct_size, 0);
    at!(hone_rope_kv_append, dtype, 4);
    at!(hone_rope_kv_append, heads, 8);
    at!(hone_rope_kv_append, kv_heads, 16);
    at!(hone_rope_kv_append, head_dim, 24);
    at!(hone_rope_kv_append, rotary_dim, 32);
    at!(hone_rope_kv_append, max_tokens, 40);
    at!(hone_rope_kv_append, page_size, 48);
    at!(hone_rope_kv_append, kv_dtype, 56);
    at!(hone_rope_kv_append, style, 60);
    at!(hone_rope_kv_append, norm, 64);
    at!(hone_rope_kv_append, slots, 68);
    at!(hone_rope_kv_append, unit_offset, 72);
    let made = hone_rope_kv_append::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_rope_kv_append>());
}

#[test]
fn rope_kv_append_args() {
    assert_eq!(size_of::<hone_rope_kv_append_args>(), 264);
    at!(hone_rope_kv_append_args, struct_size, 0);
    at!(hone_rope_kv_append_args, epsilon, 4);
    at!(hone_rope_kv_append_args, q, 8);
    at!(hone_rope_kv_append_args, k, 16);
    at!(hone_rope_kv_append_args, v, 24);
    at!(hone_rope_kv_append_args, out, 32);
    at!(hone_rope_kv_append_args, k_cache, 40);
    at!(hone_rope_kv_append_args, v_cache, 48);
    at!(hone_rope_kv_append_args, cos, 56);
    at!(hone_rope_kv_append_args, sin, 64);
    at!(hone_rope_kv_append_args, kv_lengths, 72);
    at!(hone_rope_kv_append_args, page_table, 80);
    at!(hone_rope_kv_append_args, positions, 88);
    at!(hone_rope_kv_append_args, slots, 96);
    at!(hone_rope_kv_append_args, k_scale, 104);
    at!(hone_rope_kv_append_args, v_scale, 112);
    at!(hone_rope_kv_append_args, q_weight, 120);
    at!(hone_rope_kv_append_args, k_weight, 128);
    at!(hone_rope_kv_append_args, q_token_stride, 136);
    at!(hone_rope_kv_append_args, q_head_stride, 144);
    at!(hone_rope_kv_append_args, k_token_stride, 152);
    at!(hone_rope_kv_append_args, k_head_stride, 160);
    at!(hone_rope_kv_append_args, v_token_stride, 168);
    at!(hone_rope_kv_append_args, v_head_stride, 176);
    at!(hone_rope_kv_append_args, out_token_stride, 184);
    at!(hone_rope_kv_append_args, out_head_stride, 192);
    at!(hone_rope_kv_append_args, cache_batch_stride, 200);
    at!(hone_rope_kv_append_args, cache_token_stride, 208);
    at!(hone_rope_kv_append_args, cache_head_stride, 216);
    at!(hone_rope_kv_append_args, page_table_stride, 224);
    at!(hone_rope_kv_append_args, q_len, 232);
    at!(hone_rope_kv_append_args, kv_len, 240);
    at!(hone_rope_kv_append_args, pool_pages, 248);
    at!(hone_rope_kv_append_args, table_rows, 256);
    let made = hone_rope_kv_append_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_rope_kv_append_args>());
}

#[test]
fn sample() {
    assert_eq!(size_of::<hone_sample>(), 40);
    at!(hone_sample, struct_size, 0);
    at!(hone_sample, dtype, 4);
    at!(hone_sample, vocabulary, 8);
    at!(hone_sample, max_rows, 16);
    at!(hone_sample, filters, 24);
    at!(hone_sample, log_probability, 28);
    at!(hone_sample, softcap, 32);
    let made = hone_sample::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_sample>());
}

#[test]
fn sample_args() {
    assert_eq!(size_of::<hone_sample_args>(), 88);
    at!(hone_sample_args, struct_size, 0);
    at!(hone_sample_args, reserved, 4);
    at!(hone_sample_args, logits, 8);
    at!(hone_sample_args, temperature, 16);
    at!(hone_sample_args, top_k, 24);
    at!(hone_sample_args, top_p, 32);
    at!(hone_sample_args, min_p, 40);
    at!(hone_sample_args, seed, 48);
    at!(hone_sample_args, counter, 56);
    at!(hone_sample_args, out, 64);
    at!(hone_sample_args, log_probability, 72);
    at!(hone_sample_args, logits_stride, 80);
    let made = hone_sample_args::default();
    assert_eq!(made.struct_size as usize, size_of::<hone_sample_args>());
}

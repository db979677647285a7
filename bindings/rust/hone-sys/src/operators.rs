//! Numbers, structs and functions of the operators. Generated from kernel_templates/*/operators.py
//! and generate/enums.py by `./hone generate`.

use crate::{hone_operator, hone_runtime, hone_status, hone_text_format, initialized};
use std::os::raw::{c_char, c_void};

pub const HONE_OK: hone_status = 0;
pub const HONE_BAD_ROWS: hone_status = 1;
pub const HONE_NULL_POINTER: hone_status = 2;
pub const HONE_MISALIGNED: hone_status = 3;
pub const HONE_BAD_STRIDE: hone_status = 4;
pub const HONE_BAD_HANDLE: hone_status = 5;
pub const HONE_BAD_STRUCT: hone_status = 6;
pub const HONE_FORKED: hone_status = 7;
pub const HONE_LAUNCH_FAILED: hone_status = 8;
pub const HONE_BAD_EPSILON: hone_status = 9;
pub const HONE_BAD_SCALE: hone_status = 10;
pub const HONE_BAD_LENGTHS: hone_status = 11;
pub const HONE_BAD_PAGES: hone_status = 12;
pub const HONE_CAPTURING: hone_status = 13;
pub const HONE_BAD_INDICES: hone_status = 14;
pub const HONE_BAD_ARGUMENT: hone_status = 20;
pub const HONE_NO_GPU: hone_status = 21;
pub const HONE_COMPILE_FAILED: hone_status = 22;
pub const HONE_FROZEN: hone_status = 23;
pub const HONE_OUT_OF_MEMORY: hone_status = 24;
pub const HONE_FAILED: hone_status = 25;

pub const HONE_FP32: i32 = 0;
pub const HONE_FP16: i32 = 1;
pub const HONE_BF16: i32 = 2;

pub const HONE_OUTPUT_SAME: i32 = 0;
pub const HONE_OUTPUT_INT8: i32 = 1;
pub const HONE_OUTPUT_FP8: i32 = 2;

pub const HONE_ACTIVATION_NONE: i32 = 0;
pub const HONE_GELU_TANH: i32 = 1;
pub const HONE_GELU_ERF: i32 = 2;
pub const HONE_SILU: i32 = 3;
pub const HONE_RELU: i32 = 4;
pub const HONE_SWIGLU_OAI: i32 = 5;

pub const HONE_QUANT_W4A16: i32 = 0;
pub const HONE_QUANT_W8A16: i32 = 1;
pub const HONE_QUANT_W8A8: i32 = 2;
pub const HONE_QUANT_FP8: i32 = 3;

pub const HONE_KV_SAME: i32 = 0;
pub const HONE_KV_FP8: i32 = 1;

pub const HONE_ROPE_HALF: i32 = 0;
pub const HONE_ROPE_INTERLEAVED: i32 = 1;

pub const HONE_INDEX_INT32: i32 = 0;
pub const HONE_INDEX_INT64: i32 = 1;

/// `hone_attention_append` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_attention_append {
    pub struct_size: u32,
    pub dtype: i32,
    pub heads: i64,
    pub kv_heads: i64,
    pub head_dim: i64,
    pub rotary_dim: i64,
    pub max_batch: i64,
    pub max_kv_len: i64,
    pub window: i64,
    pub page_size: i64,
    pub style: i32,
    pub norm: i32,
    pub softcap: i32,
    pub reserved: u32,
    pub unit_offset: i32,
}

impl Default for hone_attention_append {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_attention_append_init)
    }
}

/// `hone_attention_append_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_attention_append_args {
    pub struct_size: u32,
    pub scale: f32,
    pub softcap: f32,
    pub epsilon: f32,
    pub q: *const c_void,
    pub k: *const c_void,
    pub v: *const c_void,
    pub out: *mut c_void,
    pub k_cache: *mut c_void,
    pub v_cache: *mut c_void,
    pub cos: *const f32,
    pub sin: *const f32,
    pub kv_lengths: *const i32,
    pub page_table: *const i32,
    pub q_weight: *const c_void,
    pub k_weight: *const c_void,
    pub workspace: *mut c_void,
    pub q_token_stride: i64,
    pub q_head_stride: i64,
    pub k_token_stride: i64,
    pub k_head_stride: i64,
    pub v_token_stride: i64,
    pub v_head_stride: i64,
    pub out_token_stride: i64,
    pub out_head_stride: i64,
    pub cache_batch_stride: i64,
    pub cache_token_stride: i64,
    pub cache_head_stride: i64,
    pub page_table_stride: i64,
    pub pool_pages: i64,
    pub table_rows: i64,
}

impl Default for hone_attention_append_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_attention_append_args_init)
    }
}

/// `hone_attention` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_attention {
    pub struct_size: u32,
    pub dtype: i32,
    pub heads: i64,
    pub kv_heads: i64,
    pub head_dim: i64,
    pub max_batch: i64,
    pub max_q_len: i64,
    pub max_kv_len: i64,
    pub min_q_len: i64,
    pub window: i64,
    pub page_size: i64,
    pub kv_dtype: i32,
    pub causal: i32,
    pub lengths: i32,
    pub packed: i32,
    pub softcap: i32,
    pub lse: i32,
    pub sinks: i32,
}

impl Default for hone_attention {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_attention_init)
    }
}

/// `hone_attention_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_attention_args {
    pub struct_size: u32,
    pub scale: f32,
    pub softcap: f32,
    pub reserved: u32,
    pub q: *const c_void,
    pub k: *const c_void,
    pub v: *const c_void,
    pub out: *mut c_void,
    pub lse: *mut f32,
    pub kv_lengths: *const i32,
    pub q_starts: *const i32,
    pub kv_starts: *const i32,
    pub page_table: *const i32,
    pub k_scale: *const f32,
    pub v_scale: *const f32,
    pub workspace: *mut c_void,
    pub q_batch_stride: i64,
    pub q_token_stride: i64,
    pub q_head_stride: i64,
    pub k_batch_stride: i64,
    pub k_token_stride: i64,
    pub k_head_stride: i64,
    pub v_batch_stride: i64,
    pub v_token_stride: i64,
    pub v_head_stride: i64,
    pub out_batch_stride: i64,
    pub out_token_stride: i64,
    pub out_head_stride: i64,
    pub page_table_stride: i64,
    pub pool_pages: i64,
    pub q_tokens: i64,
    pub kv_tokens: i64,
    pub sinks: *const f32,
    pub prompts: i64,
}

impl Default for hone_attention_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_attention_args_init)
    }
}

/// `hone_embedding` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_embedding {
    pub struct_size: u32,
    pub dtype: i32,
    pub hidden: i64,
    pub max_tokens: i64,
    pub index: i32,
    pub scale: i32,
    pub positions: i32,
    pub reserved: u32,
}

impl Default for hone_embedding {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_embedding_init)
    }
}

/// `hone_embedding_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_embedding_args {
    pub struct_size: u32,
    pub scale: f32,
    pub ids: *const c_void,
    pub table: *const c_void,
    pub position_ids: *const c_void,
    pub position_table: *const c_void,
    pub out: *mut c_void,
    pub vocabulary: i64,
    pub position_rows: i64,
    pub table_stride: i64,
    pub position_table_stride: i64,
    pub out_stride: i64,
}

impl Default for hone_embedding_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_embedding_args_init)
    }
}

/// `hone_expert_linear` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_expert_linear {
    pub struct_size: u32,
    pub dtype: i32,
    pub in_: i64,
    pub out: i64,
    pub experts: i64,
    pub top_k: i64,
    pub max_tokens: i64,
    pub activation: i32,
    pub gated: i32,
    pub bias: i32,
    pub gather: i32,
    pub combine: i32,
    pub reserved: u32,
}

impl Default for hone_expert_linear {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_expert_linear_init)
    }
}

/// `hone_expert_linear_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_expert_linear_args {
    pub struct_size: u32,
    pub reserved: u32,
    pub x: *const c_void,
    pub starts: *const i32,
    pub rows: *const i32,
    pub routing_weights: *const f32,
    pub weight: *const c_void,
    pub up: *const c_void,
    pub bias: *const c_void,
    pub up_bias: *const c_void,
    pub out: *mut c_void,
    pub workspace: *mut c_void,
    pub x_stride: i64,
    pub out_stride: i64,
}

impl Default for hone_expert_linear_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_expert_linear_args_init)
    }
}

/// `hone_expert_routing` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_expert_routing {
    pub struct_size: u32,
    pub dtype: i32,
    pub experts: i64,
    pub top_k: i64,
    pub max_tokens: i64,
    pub renormalize: i32,
    pub reserved: u32,
}

impl Default for hone_expert_routing {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_expert_routing_init)
    }
}

/// `hone_expert_routing_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_expert_routing_args {
    pub struct_size: u32,
    pub reserved: u32,
    pub logits: *const c_void,
    pub routing_weights: *mut f32,
    pub starts: *mut i32,
    pub rows: *mut i32,
    pub workspace: *mut c_void,
    pub logits_stride: i64,
}

impl Default for hone_expert_routing_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_expert_routing_args_init)
    }
}

/// `hone_linear` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_linear {
    pub struct_size: u32,
    pub dtype: i32,
    pub in_: i64,
    pub out: i64,
    pub max_tokens: i64,
    pub activation: i32,
    pub bias: i32,
    pub residual: i32,
    pub norm: i32,
}

impl Default for hone_linear {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_linear_init)
    }
}

/// `hone_linear_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_linear_args {
    pub struct_size: u32,
    pub epsilon: f32,
    pub x: *const c_void,
    pub weight: *const c_void,
    pub bias: *const c_void,
    pub residual: *const c_void,
    pub out: *mut c_void,
    pub workspace: *mut c_void,
    pub x_stride: i64,
    pub weight_stride: i64,
    pub residual_stride: i64,
    pub out_stride: i64,
    pub norm_weight: *const c_void,
}

impl Default for hone_linear_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_linear_args_init)
    }
}

/// `hone_fused_ffn` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_fused_ffn {
    pub struct_size: u32,
    pub dtype: i32,
    pub hidden: i64,
    pub intermediate: i64,
    pub max_tokens: i64,
    pub activation: i32,
    pub gated: i32,
    pub bias: i32,
    pub residual: i32,
    pub norm: i32,
}

impl Default for hone_fused_ffn {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_fused_ffn_init)
    }
}

/// `hone_fused_ffn_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_fused_ffn_args {
    pub struct_size: u32,
    pub epsilon: f32,
    pub x: *const c_void,
    pub gate: *const c_void,
    pub up: *const c_void,
    pub up_bias: *const c_void,
    pub down: *const c_void,
    pub down_bias: *const c_void,
    pub residual: *const c_void,
    pub out: *mut c_void,
    pub workspace: *mut c_void,
    pub x_stride: i64,
    pub residual_stride: i64,
    pub out_stride: i64,
    pub norm_weight: *const c_void,
}

impl Default for hone_fused_ffn_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_fused_ffn_args_init)
    }
}

/// `hone_rms_norm` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_rms_norm {
    pub struct_size: u32,
    pub dtype: i32,
    pub hidden: i64,
    pub max_rows: i64,
    pub output: i32,
    pub residual: i32,
    pub unit_offset: i32,
}

impl Default for hone_rms_norm {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_rms_norm_init)
    }
}

/// `hone_norm_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_norm_args {
    pub struct_size: u32,
    pub epsilon: f32,
    pub x: *const c_void,
    pub residual: *const c_void,
    pub weight: *const c_void,
    pub bias: *const c_void,
    pub out: *mut c_void,
    pub sum: *mut c_void,
    pub scale: *mut f32,
    pub x_stride: i64,
    pub residual_stride: i64,
    pub out_stride: i64,
    pub sum_stride: i64,
}

impl Default for hone_norm_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_norm_args_init)
    }
}

/// `hone_layer_norm` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_layer_norm {
    pub struct_size: u32,
    pub dtype: i32,
    pub hidden: i64,
    pub max_rows: i64,
    pub output: i32,
    pub residual: i32,
    pub bias: i32,
    pub reserved: u32,
    pub unit_offset: i32,
}

impl Default for hone_layer_norm {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_layer_norm_init)
    }
}

/// `hone_quantize_weights` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_quantize_weights {
    pub struct_size: u32,
    pub dtype: i32,
    pub in_: i64,
    pub max_out: i64,
    pub group: i64,
    pub format: i32,
    pub zeros: i32,
    pub one_scale: i32,
    pub scale_dtype: i32,
    pub search: i32,
    pub reserved: u32,
}

impl Default for hone_quantize_weights {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_quantize_weights_init)
    }
}

/// `hone_quantize_weights_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_quantize_weights_args {
    pub struct_size: u32,
    pub reserved: u32,
    pub weight: *const c_void,
    pub codes: *mut c_void,
    pub scales: *mut c_void,
    pub zeros: *mut c_void,
    pub workspace: *mut c_void,
    pub weight_stride: i64,
}

impl Default for hone_quantize_weights_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_quantize_weights_args_init)
    }
}

/// `hone_quantized_expert_linear` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_quantized_expert_linear {
    pub struct_size: u32,
    pub dtype: i32,
    pub in_: i64,
    pub out: i64,
    pub experts: i64,
    pub top_k: i64,
    pub max_tokens: i64,
    pub group: i64,
    pub format: i32,
    pub zeros: i32,
    pub activation: i32,
    pub gated: i32,
    pub bias: i32,
    pub gather: i32,
    pub combine: i32,
    pub reserved: u32,
}

impl Default for hone_quantized_expert_linear {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_quantized_expert_linear_init)
    }
}

/// `hone_quantized_expert_linear_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_quantized_expert_linear_args {
    pub struct_size: u32,
    pub reserved: u32,
    pub x: *const c_void,
    pub starts: *const i32,
    pub rows: *const i32,
    pub routing_weights: *const f32,
    pub weight: *const c_void,
    pub scales: *const c_void,
    pub zeros: *const c_void,
    pub up: *const c_void,
    pub up_scales: *const c_void,
    pub up_zeros: *const c_void,
    pub bias: *const c_void,
    pub up_bias: *const c_void,
    pub out: *mut c_void,
    pub workspace: *mut c_void,
    pub x_stride: i64,
    pub out_stride: i64,
}

impl Default for hone_quantized_expert_linear_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_quantized_expert_linear_args_init)
    }
}

/// `hone_quantized_linear` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_quantized_linear {
    pub struct_size: u32,
    pub dtype: i32,
    pub in_: i64,
    pub out: i64,
    pub max_tokens: i64,
    pub group: i64,
    pub format: i32,
    pub zeros: i32,
    pub one_scale: i32,
    pub quantized_x: i32,
    pub one_x_scale: i32,
    pub activation: i32,
    pub bias: i32,
    pub residual: i32,
    pub norm: i32,
    pub reserved: u32,
}

impl Default for hone_quantized_linear {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_quantized_linear_init)
    }
}

/// `hone_quantized_linear_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_quantized_linear_args {
    pub struct_size: u32,
    pub epsilon: f32,
    pub x: *const c_void,
    pub x_scales: *const f32,
    pub norm_weight: *const c_void,
    pub weight: *const c_void,
    pub scales: *const c_void,
    pub zeros: *const c_void,
    pub bias: *const c_void,
    pub residual: *const c_void,
    pub out: *mut c_void,
    pub workspace: *mut c_void,
    pub x_stride: i64,
    pub x_scale_stride: i64,
    pub weight_stride: i64,
    pub residual_stride: i64,
    pub out_stride: i64,
}

impl Default for hone_quantized_linear_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_quantized_linear_args_init)
    }
}

/// `hone_quantized_ffn` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_quantized_ffn {
    pub struct_size: u32,
    pub dtype: i32,
    pub hidden: i64,
    pub intermediate: i64,
    pub max_tokens: i64,
    pub group: i64,
    pub format: i32,
    pub zeros: i32,
    pub one_scale: i32,
    pub quantized_x: i32,
    pub one_x_scale: i32,
    pub activation: i32,
    pub gated: i32,
    pub bias: i32,
    pub residual: i32,
    pub norm: i32,
}

impl Default for hone_quantized_ffn {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_quantized_ffn_init)
    }
}

/// `hone_quantized_ffn_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_quantized_ffn_args {
    pub struct_size: u32,
    pub epsilon: f32,
    pub x: *const c_void,
    pub x_scales: *const f32,
    pub norm_weight: *const c_void,
    pub gate: *const c_void,
    pub gate_scales: *const c_void,
    pub gate_zeros: *const c_void,
    pub up: *const c_void,
    pub up_scales: *const c_void,
    pub up_zeros: *const c_void,
    pub down: *const c_void,
    pub down_scales: *const c_void,
    pub down_zeros: *const c_void,
    pub up_bias: *const c_void,
    pub down_bias: *const c_void,
    pub residual: *const c_void,
    pub out: *mut c_void,
    pub workspace: *mut c_void,
    pub x_stride: i64,
    pub x_scale_stride: i64,
    pub residual_stride: i64,
    pub out_stride: i64,
}

impl Default for hone_quantized_ffn_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_quantized_ffn_args_init)
    }
}

/// `hone_rms_norm_backward` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_rms_norm_backward {
    pub struct_size: u32,
    pub dtype: i32,
    pub hidden: i64,
    pub max_rows: i64,
    pub residual: i32,
    pub reserved: u32,
}

impl Default for hone_rms_norm_backward {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_rms_norm_backward_init)
    }
}

/// `hone_rms_norm_backward_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_rms_norm_backward_args {
    pub struct_size: u32,
    pub epsilon: f32,
    pub dy: *const c_void,
    pub x: *const c_void,
    pub weight: *const c_void,
    pub dsum: *const c_void,
    pub dx: *mut c_void,
    pub dweight: *mut c_void,
    pub workspace: *mut c_void,
    pub dy_stride: i64,
    pub x_stride: i64,
    pub dsum_stride: i64,
    pub dx_stride: i64,
}

impl Default for hone_rms_norm_backward_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_rms_norm_backward_args_init)
    }
}

/// `hone_rope_kv_append` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_rope_kv_append {
    pub struct_size: u32,
    pub dtype: i32,
    pub heads: i64,
    pub kv_heads: i64,
    pub head_dim: i64,
    pub rotary_dim: i64,
    pub max_tokens: i64,
    pub page_size: i64,
    pub kv_dtype: i32,
    pub style: i32,
    pub norm: i32,
    pub slots: i32,
    pub unit_offset: i32,
}

impl Default for hone_rope_kv_append {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_rope_kv_append_init)
    }
}

/// `hone_rope_kv_append_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_rope_kv_append_args {
    pub struct_size: u32,
    pub epsilon: f32,
    pub q: *const c_void,
    pub k: *const c_void,
    pub v: *const c_void,
    pub out: *mut c_void,
    pub k_cache: *mut c_void,
    pub v_cache: *mut c_void,
    pub cos: *const f32,
    pub sin: *const f32,
    pub kv_lengths: *const i32,
    pub page_table: *const i32,
    pub positions: *const i32,
    pub slots: *const i32,
    pub k_scale: *const f32,
    pub v_scale: *const f32,
    pub q_weight: *const c_void,
    pub k_weight: *const c_void,
    pub q_token_stride: i64,
    pub q_head_stride: i64,
    pub k_token_stride: i64,
    pub k_head_stride: i64,
    pub v_token_stride: i64,
    pub v_head_stride: i64,
    pub out_token_stride: i64,
    pub out_head_stride: i64,
    pub cache_batch_stride: i64,
    pub cache_token_stride: i64,
    pub cache_head_stride: i64,
    pub page_table_stride: i64,
    pub q_len: i64,
    pub kv_len: i64,
    pub pool_pages: i64,
    pub table_rows: i64,
}

impl Default for hone_rope_kv_append_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_rope_kv_append_args_init)
    }
}

/// `hone_sample` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_sample {
    pub struct_size: u32,
    pub dtype: i32,
    pub vocabulary: i64,
    pub max_rows: i64,
    pub filters: i32,
    pub log_probability: i32,
    pub softcap: i64,
}

impl Default for hone_sample {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_sample_init)
    }
}

/// `hone_sample_args` of hone.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hone_sample_args {
    pub struct_size: u32,
    pub reserved: u32,
    pub logits: *const c_void,
    pub temperature: *const f32,
    pub top_k: *const i32,
    pub top_p: *const f32,
    pub min_p: *const f32,
    pub seed: *const i64,
    pub counter: *const i64,
    pub out: *mut i32,
    pub log_probability: *mut f32,
    pub logits_stride: i64,
}

impl Default for hone_sample_args {
    /// What the library has for what is not set.
    fn default() -> Self {
        initialized(hone_sample_args_init)
    }
}

extern "C" {
    pub fn hone_attention_append_init(
        description: *mut hone_attention_append,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_attention_append_args_init(
        args: *mut hone_attention_append_args,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_attention_init(description: *mut hone_attention, struct_size: usize) -> hone_status;
    pub fn hone_attention_args_init(
        args: *mut hone_attention_args,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_embedding_init(description: *mut hone_embedding, struct_size: usize) -> hone_status;
    pub fn hone_embedding_args_init(
        args: *mut hone_embedding_args,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_expert_linear_init(
        description: *mut hone_expert_linear,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_expert_linear_args_init(
        args: *mut hone_expert_linear_args,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_expert_routing_init(
        description: *mut hone_expert_routing,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_expert_routing_args_init(
        args: *mut hone_expert_routing_args,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_linear_init(description: *mut hone_linear, struct_size: usize) -> hone_status;
    pub fn hone_linear_args_init(args: *mut hone_linear_args, struct_size: usize) -> hone_status;
    pub fn hone_fused_ffn_init(description: *mut hone_fused_ffn, struct_size: usize) -> hone_status;
    pub fn hone_fused_ffn_args_init(
        args: *mut hone_fused_ffn_args,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_rms_norm_init(description: *mut hone_rms_norm, struct_size: usize) -> hone_status;
    pub fn hone_norm_args_init(args: *mut hone_norm_args, struct_size: usize) -> hone_status;
    pub fn hone_layer_norm_init(
        description: *mut hone_layer_norm,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_quantize_weights_init(
        description: *mut hone_quantize_weights,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_quantize_weights_args_init(
        args: *mut hone_quantize_weights_args,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_quantized_expert_linear_init(
        description: *mut hone_quantized_expert_linear,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_quantized_expert_linear_args_init(
        args: *mut hone_quantized_expert_linear_args,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_quantized_linear_init(
        description: *mut hone_quantized_linear,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_quantized_linear_args_init(
        args: *mut hone_quantized_linear_args,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_quantized_ffn_init(
        description: *mut hone_quantized_ffn,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_quantized_ffn_args_init(
        args: *mut hone_quantized_ffn_args,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_rms_norm_backward_init(
        description: *mut hone_rms_norm_backward,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_rms_norm_backward_args_init(
        args: *mut hone_rms_norm_backward_args,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_rope_kv_append_init(
        description: *mut hone_rope_kv_append,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_rope_kv_append_args_init(
        args: *mut hone_rope_kv_append_args,
        struct_size: usize,
    ) -> hone_status;
    pub fn hone_sample_init(description: *mut hone_sample, struct_size: usize) -> hone_status;
    pub fn hone_sample_args_init(args: *mut hone_sample_args, struct_size: usize) -> hone_status;
    pub fn hone_attention_append_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_attention_append,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_attention_append_explain(
        runtime: *const hone_runtime,
        description: *const hone_attention_append,
        batch: i64,
        kv_len: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_attention_append_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_attention_append_args,
        batch: i64,
        kv_len: i64,
    ) -> hone_status;
    pub fn hone_attention_append_workspace(
        op: *const hone_operator,
        batch: i64,
        kv_len: i64,
        bytes: *mut usize,
    ) -> hone_status;
    pub fn hone_attention_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_attention,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_attention_explain(
        runtime: *const hone_runtime,
        description: *const hone_attention,
        batch: i64,
        q_len: i64,
        kv_len: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_attention_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_attention_args,
        batch: i64,
        q_len: i64,
        kv_len: i64,
    ) -> hone_status;
    pub fn hone_attention_workspace(
        op: *const hone_operator,
        batch: i64,
        q_len: i64,
        kv_len: i64,
        bytes: *mut usize,
    ) -> hone_status;
    pub fn hone_embedding_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_embedding,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_embedding_explain(
        runtime: *const hone_runtime,
        description: *const hone_embedding,
        tokens: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_embedding_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_embedding_args,
        tokens: i64,
    ) -> hone_status;
    pub fn hone_expert_linear_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_expert_linear,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_expert_linear_explain(
        runtime: *const hone_runtime,
        description: *const hone_expert_linear,
        tokens: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_expert_linear_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_expert_linear_args,
        tokens: i64,
    ) -> hone_status;
    pub fn hone_expert_routing_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_expert_routing,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_expert_routing_explain(
        runtime: *const hone_runtime,
        description: *const hone_expert_routing,
        tokens: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_expert_routing_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_expert_routing_args,
        tokens: i64,
    ) -> hone_status;
    pub fn hone_linear_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_linear,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_linear_explain(
        runtime: *const hone_runtime,
        description: *const hone_linear,
        tokens: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_linear_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_linear_args,
        tokens: i64,
    ) -> hone_status;
    pub fn hone_fused_ffn_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_fused_ffn,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_fused_ffn_explain(
        runtime: *const hone_runtime,
        description: *const hone_fused_ffn,
        tokens: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_fused_ffn_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_fused_ffn_args,
        tokens: i64,
    ) -> hone_status;
    pub fn hone_rms_norm_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_rms_norm,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_rms_norm_explain(
        runtime: *const hone_runtime,
        description: *const hone_rms_norm,
        rows: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_layer_norm_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_layer_norm,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_layer_norm_explain(
        runtime: *const hone_runtime,
        description: *const hone_layer_norm,
        rows: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_norm_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_norm_args,
        rows: i64,
    ) -> hone_status;
    pub fn hone_quantized_expert_linear_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_quantized_expert_linear,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_quantized_expert_linear_explain(
        runtime: *const hone_runtime,
        description: *const hone_quantized_expert_linear,
        tokens: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_quantized_expert_linear_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_quantized_expert_linear_args,
        tokens: i64,
    ) -> hone_status;
    pub fn hone_quantized_linear_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_quantized_linear,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_quantized_linear_explain(
        runtime: *const hone_runtime,
        description: *const hone_quantized_linear,
        tokens: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_quantized_linear_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_quantized_linear_args,
        tokens: i64,
    ) -> hone_status;
    pub fn hone_quantized_ffn_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_quantized_ffn,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_quantized_ffn_explain(
        runtime: *const hone_runtime,
        description: *const hone_quantized_ffn,
        tokens: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_quantized_ffn_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_quantized_ffn_args,
        tokens: i64,
    ) -> hone_status;
    pub fn hone_rms_norm_backward_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_rms_norm_backward,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_rms_norm_backward_explain(
        runtime: *const hone_runtime,
        description: *const hone_rms_norm_backward,
        rows: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_rms_norm_backward_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_rms_norm_backward_args,
        rows: i64,
    ) -> hone_status;
    pub fn hone_rope_kv_append_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_rope_kv_append,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_rope_kv_append_explain(
        runtime: *const hone_runtime,
        description: *const hone_rope_kv_append,
        tokens: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_rope_kv_append_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_rope_kv_append_args,
        tokens: i64,
    ) -> hone_status;
    pub fn hone_sample_prepare(
        runtime: *mut hone_runtime,
        description: *const hone_sample,
        op: *mut *mut hone_operator,
    ) -> hone_status;
    pub fn hone_sample_explain(
        runtime: *const hone_runtime,
        description: *const hone_sample,
        rows: i64,
        format: hone_text_format,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> hone_status;
    pub fn hone_sample_run(
        op: *const hone_operator,
        stream: *mut c_void,
        args: *const hone_sample_args,
        rows: i64,
    ) -> hone_status;
}

"""The structs of runtime/hone.h that describe operators and their calls, and the numbers of words.

Generated from kernel_templates/*/operators.py by `./hone generate`.
"""

from __future__ import annotations

import ctypes
import struct
from ctypes import c_float, c_int32, c_int64, c_uint32, c_void_p
from typing import Any, List, Tuple, Type

DTYPES = {"fp32": 0, "fp16": 1, "bf16": 2}
# What frameworks call them.
DTYPE_SYNONYMS = {
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
}
NORM_OUTPUTS = {"same": 0, "int8": 1, "fp8": 2}
ACTIVATIONS = {"none": 0, "gelu_tanh": 1, "gelu_erf": 2, "silu": 3, "relu": 4, "swiglu_oai": 5}
QUANT_FORMATS = {"w4a16": 0, "w8a16": 1, "w8a8": 2, "fp8": 3}
KV_DTYPES = {"same": 0, "fp8": 1}
ROPE_STYLES = {"half": 0, "interleaved": 1}
INDEX_TYPES = {"int32": 0, "int64": 1}


def members(kind: Any, names: str) -> List[Tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class AttentionAppend(ctypes.Structure):
    """hone_attention_append"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "heads kv_heads head_dim rotary_dim max_batch max_kv_len window page_size"),
        *members(c_int32, "style norm softcap"),
        ("reserved", c_uint32),
        ("unit_offset", c_int32),
    ]


class AttentionAppendArgs(ctypes.Structure):
    """hone_attention_append_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        *members(c_float, "scale softcap epsilon"),
        *members(c_void_p, "q k v out k_cache v_cache cos sin kv_lengths page_table q_weight k_weight"),
        *members(c_void_p, "workspace"),
        *members(c_int64, "q_token_stride q_head_stride k_token_stride k_head_stride v_token_stride"),
        *members(c_int64, "v_head_stride out_token_stride out_head_stride cache_batch_stride"),
        *members(c_int64, "cache_token_stride cache_head_stride page_table_stride pool_pages table_rows"),
    ]


class Attention(ctypes.Structure):
    """hone_attention"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "heads kv_heads head_dim max_batch max_q_len max_kv_len min_q_len window"),
        *members(c_int64, "page_size"),
        *members(c_int32, "kv_dtype causal lengths packed softcap lse sinks"),
    ]


class AttentionArgs(ctypes.Structure):
    """hone_attention_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        *members(c_float, "scale softcap"),
        ("reserved", c_uint32),
        *members(c_void_p, "q k v out lse kv_lengths q_starts kv_starts page_table k_scale v_scale"),
        *members(c_void_p, "workspace"),
        *members(c_int64, "q_batch_stride q_token_stride q_head_stride k_batch_stride k_token_stride"),
        *members(c_int64, "k_head_stride v_batch_stride v_token_stride v_head_stride out_batch_stride"),
        *members(c_int64, "out_token_stride out_head_stride page_table_stride pool_pages q_tokens"),
        *members(c_int64, "kv_tokens"),
        ("sinks", c_void_p),
        ("prompts", c_int64),
    ]


class Embedding(ctypes.Structure):
    """hone_embedding"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "hidden max_tokens"),
        *members(c_int32, "index scale positions"),
        ("reserved", c_uint32),
    ]


class EmbeddingArgs(ctypes.Structure):
    """hone_embedding_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("scale", c_float),
        *members(c_void_p, "ids table position_ids position_table out"),
        *members(c_int64, "vocabulary position_rows table_stride position_table_stride out_stride"),
    ]


class ExpertLinear(ctypes.Structure):
    """hone_expert_linear"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "in out experts top_k max_tokens"),
        *members(c_int32, "activation gated bias gather combine"),
        ("reserved", c_uint32),
    ]


class ExpertLinearArgs(ctypes.Structure):
    """hone_expert_linear_args"""

    _fields_ = [
        *members(c_uint32, "struct_size reserved"),
        *members(c_void_p, "x starts rows routing_weights weight up bias up_bias out workspace"),
        *members(c_int64, "x_stride out_stride"),
    ]


class ExpertRouting(ctypes.Structure):
    """hone_expert_routing"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "experts top_k max_tokens"),
        ("renormalize", c_int32),
        ("reserved", c_uint32),
    ]


class ExpertRoutingArgs(ctypes.Structure):
    """hone_expert_routing_args"""

    _fields_ = [
        *members(c_uint32, "struct_size reserved"),
        *members(c_void_p, "logits routing_weights starts rows workspace"),
        ("logits_stride", c_int64),
    ]


class Linear(ctypes.Structure):
    """hone_linear"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "in out max_tokens"),
        *members(c_int32, "activation bias residual norm"),
    ]


class LinearArgs(ctypes.Structure):
    """hone_linear_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        *members(c_void_p, "x weight bias residual out workspace"),
        *members(c_int64, "x_stride weight_stride residual_stride out_stride"),
        ("norm_weight", c_void_p),
    ]


class FusedFfn(ctypes.Structure):
    """hone_fused_ffn"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "hidden intermediate max_tokens"),
        *members(c_int32, "activation gated bias residual norm"),
    ]


class FusedFfnArgs(ctypes.Structure):
    """hone_fused_ffn_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        *members(c_void_p, "x gate up up_bias down down_bias residual out workspace"),
        *members(c_int64, "x_stride residual_stride out_stride"),
        ("norm_weight", c_void_p),
    ]


class RmsNorm(ctypes.Structure):
    """hone_rms_norm"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "hidden max_rows"),
        *members(c_int32, "output residual unit_offset"),
    ]


class NormArgs(ctypes.Structure):
    """hone_norm_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        *members(c_void_p, "x residual weight bias out sum scale"),
        *members(c_int64, "x_stride residual_stride out_stride sum_stride"),
    ]


class LayerNorm(ctypes.Structure):
    """hone_layer_norm"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "hidden max_rows"),
        *members(c_int32, "output residual bias"),
        ("reserved", c_uint32),
        ("unit_offset", c_int32),
    ]


class QuantizeWeights(ctypes.Structure):
    """hone_quantize_weights"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "in max_out group"),
        *members(c_int32, "format zeros one_scale scale_dtype search"),
        ("reserved", c_uint32),
    ]


class QuantizeWeightsArgs(ctypes.Structure):
    """hone_quantize_weights_args"""

    _fields_ = [
        *members(c_uint32, "struct_size reserved"),
        *members(c_void_p, "weight codes scales zeros workspace"),
        ("weight_stride", c_int64),
    ]


class QuantizedExpertLinear(ctypes.Structure):
    """hone_quantized_expert_linear"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "in out experts top_k max_tokens group"),
        *members(c_int32, "format zeros activation gated bias gather combine"),
        ("reserved", c_uint32),
    ]


class QuantizedExpertLinearArgs(ctypes.Structure):
    """hone_quantized_expert_linear_args"""

    _fields_ = [
        *members(c_uint32, "struct_size reserved"),
        *members(c_void_p, "x starts rows routing_weights weight scales zeros up up_scales up_zeros bias"),
        *members(c_void_p, "up_bias out workspace"),
        *members(c_int64, "x_stride out_stride"),
    ]


class QuantizedLinear(ctypes.Structure):
    """hone_quantized_linear"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "in out max_tokens group"),
        *members(c_int32, "format zeros one_scale quantized_x one_x_scale activation bias residual norm"),
        ("reserved", c_uint32),
    ]


class QuantizedLinearArgs(ctypes.Structure):
    """hone_quantized_linear_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        *members(c_void_p, "x x_scales norm_weight weight scales zeros bias residual out workspace"),
        *members(c_int64, "x_stride x_scale_stride weight_stride residual_stride out_stride"),
    ]


class QuantizedFfn(ctypes.Structure):
    """hone_quantized_ffn"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "hidden intermediate max_tokens group"),
        *members(c_int32, "format zeros one_scale quantized_x one_x_scale activation gated bias residual"),
        *members(c_int32, "norm"),
    ]


class QuantizedFfnArgs(ctypes.Structure):
    """hone_quantized_ffn_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        *members(c_void_p, "x x_scales norm_weight gate gate_scales gate_zeros up up_scales up_zeros"),
        *members(c_void_p, "down down_scales down_zeros up_bias down_bias residual out workspace"),
        *members(c_int64, "x_stride x_scale_stride residual_stride out_stride"),
    ]


class RmsNormBackward(ctypes.Structure):
    """hone_rms_norm_backward"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "hidden max_rows"),
        ("residual", c_int32),
        ("reserved", c_uint32),
    ]


class RmsNormBackwardArgs(ctypes.Structure):
    """hone_rms_norm_backward_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        *members(c_void_p, "dy x weight dsum dx dweight workspace"),
        *members(c_int64, "dy_stride x_stride dsum_stride dx_stride"),
    ]


class RopeKvAppend(ctypes.Structure):
    """hone_rope_kv_append"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "heads kv_heads head_dim rotary_dim max_tokens page_size"),
        *members(c_int32, "kv_dtype style norm slots unit_offset"),
    ]


class RopeKvAppendArgs(ctypes.Structure):
    """hone_rope_kv_append_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        *members(c_void_p, "q k v out k_cache v_cache cos sin kv_lengths page_table positions slots"),
        *members(c_void_p, "k_scale v_scale q_weight k_weight"),
        *members(c_int64, "q_token_stride q_head_stride k_token_stride k_head_stride v_token_stride"),
        *members(c_int64, "v_head_stride out_token_stride out_head_stride cache_batch_stride"),
        *members(c_int64, "cache_token_stride cache_head_stride page_table_stride q_len kv_len"),
        *members(c_int64, "pool_pages table_rows"),
    ]


class Sample(ctypes.Structure):
    """hone_sample"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *members(c_int64, "vocabulary max_rows"),
        *members(c_int32, "filters log_probability"),
        ("softcap", c_int64),
    ]


class SampleArgs(ctypes.Structure):
    """hone_sample_args"""

    _fields_ = [
        *members(c_uint32, "struct_size reserved"),
        *members(c_void_p, "logits temperature top_k top_p min_p seed counter out log_probability"),
        ("logits_stride", c_int64),
    ]


# What struct calls them.
CODES = {c_uint32: "I", c_float: "f", c_void_p: "P", c_int64: "q"}


def packing(kind: Type[ctypes.Structure]) -> struct.Struct:
    """Makes the bytes of the arguments of a call, several times faster than filling a ctypes structure."""
    return struct.Struct("@" + "".join(CODES[field[1]] for field in kind._fields_))


# What hone_<name>_prepare() and hone_<name>_explain() take, and how many sizes a call has.
OPERATORS = {
    "attention_append": (AttentionAppend, 2),
    "attention": (Attention, 3),
    "embedding": (Embedding, 1),
    "expert_linear": (ExpertLinear, 1),
    "expert_routing": (ExpertRouting, 1),
    "linear": (Linear, 1),
    "fused_ffn": (FusedFfn, 1),
    "rms_norm": (RmsNorm, 1),
    "layer_norm": (LayerNorm, 1),
    "quantized_expert_linear": (QuantizedExpertLinear, 1),
    "quantized_linear": (QuantizedLinear, 1),
    "quantized_ffn": (QuantizedFfn, 1),
    "rms_norm_backward": (RmsNormBackward, 1),
    "rope_kv_append": (RopeKvAppend, 1),
    "sample": (Sample, 1),
}
# How many sizes hone_<name>_run() takes.
CALLS = {
    "attention_append": 2,
    "attention": 3,
    "embedding": 1,
    "expert_linear": 1,
    "expert_routing": 1,
    "linear": 1,
    "fused_ffn": 1,
    "norm": 1,
    "quantized_expert_linear": 1,
    "quantized_linear": 1,
    "quantized_ffn": 1,
    "rms_norm_backward": 1,
    "rope_kv_append": 1,
    "sample": 1,
}

"""Hone's kernels as PyTorch operators: torch.ops.hone.rms_norm and its relatives, here as hone.ops.rms_norm.

    y = hone.ops.rms_norm(x, weight, 1e-5)
    y, total = hone.ops.rms_norm_residual(x, residual, weight, 1e-5)
    codes, scale = hone.ops.rms_norm_quantized(x, weight, 1e-5, "fp8")
    y = hone.ops.linear(x, weight, bias, residual, "none")
    y = hone.ops.fused_ffn(x, gate, up, down, None, None, residual, "silu")
    y = hone.ops.fused_ffn(x, gate, up, down, None, None, x, "silu", norm_weight, 1e-5)
    y = hone.ops.quantized_linear(x, codes, scales, "w4a16", 128, out_features, "none", zeros=zeros)
    y = hone.ops.quantized_linear(codes, weight, scales, "fp8", 0, out_features, "none", x_scales=scale)
    y = hone.ops.quantized_ffn(x, gate, gate_scales, up, up_scales, down, down_scales, "w4a16", 128,
                               intermediate, "silu", residual=x, norm_weight=weight, epsilon=1e-5)
    y = hone.ops.attention(q, k, v, is_causal=True, enable_gqa=True)
    q = hone.ops.rope_kv_append(q, k, v, k_cache, v_cache, cos, sin, "half", kv_lengths, page_table)
    y = hone.ops.attention_with_cache(q, k_cache, v_cache, kv_lengths, page_table)

They take part in torch.compile(fullgraph=True), CUDA graphs, inference_mode and autograd, run on the current
stream of x's device, and return fresh contiguous tensors. The first call with a dtype, a row length and a
device prepares a kernel, which a CUDA graph cannot capture: warm up before. Every function may be called from
any thread.

- RMSNorm has gradients; everything else runs forward only, and backward() through it raises
  NotImplementedError, as do second derivatives and torch.func.grad. torch.vmap calls the kernel once a slice.
- torch.autocast changes nothing: tensors keep their dtypes, which have to be one and the same.
- Tensors that do not fit raise TypeError or ValueError with the argument's name.

`output` of the quantized norms is a string, "int8" or "fp8": the same words as everywhere in Hone, and one
that every layer of torch.compile hands on as it is, while a dtype is an integer to some of them. `activation`
is "none", "gelu_tanh", "gelu_erf", "silu" or "relu". It and epsilon have no default: models differ in them,
and one that was forgotten would not be noticed. With a norm_weight, linear and fused_ffn, and those with
quantized weights, take rms_norm(x, norm_weight, epsilon) for x, but not for the residual; the two come
together.

quantized_linear takes a weight [out_features, in] as hone.QuantizedLinear describes it and
hone.nn.QuantizedLinear holds it: the format is "w4a16", "w8a16", "w8a8" or "fp8", `group` columns share a
scale (0: all), and w8a8 and fp8 may have one scale [1] for the whole weight. With these x may be codes, too,
int8 or float8_e4m3fn, with float32 x_scales of each token [...], of all [1], or, in groups, [..., in / 128];
out_dtype is then that of the result, "bf16" (None) or "fp16". Such codes and scales are what the quantized
norms return. quantized_ffn takes three such weights of one format and group, gate and up [intermediate,
hidden] and down [hidden, intermediate], gate and its scales None for one that is not gated; what lies
between is rounded to the result's dtype, and where codes are multiplied with codes, quantized again.

attention has the arguments of torch.nn.functional.scaled_dot_product_attention, [batch, heads, tokens,
head_dim] and its mask, but no attn_mask and no dropout. attention_with_cache reads a KV cache [batch, room,
kv_heads, head_dim], or pages [pages, page_size, kv_heads, head_dim] with a page_table [batch, pages of a
sequence], or any keys and values, for q [batch, tokens, heads, head_dim]; causal is aligned at the end, a
window counts the query's own key, and kv_lengths [batch] the call's own tokens. attention_with_cache_lse
returns the log-sum-exp of the scores, too. rope_kv_append is what goes before: it returns q rotated and
writes k, rotated, and v to the caches, as the last of kv_lengths; with positions and slots [tokens], each
token to its own place, outer * room + inner. Lengths, tables, positions and slots are int32; k_scale and
v_scale [kv_heads] go with a cache of float8_e4m3fn.

torch.library.custom_op would wrap each call in checks of its own; Library.define and impl do not.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from . import _torch_attention as attention_kernels
from . import _torch_kernels as kernels, _torch_linear as linear_kernels
from . import _torch_quantized as quantized_kernels, _torch_quantized_ffn as quantized_ffn_kernels
from . import _torch_rope as rope_kernels
from ._torch_autograd import no_formula, register, rms_norm_formula, rms_norm_residual_formula

_library = torch.library.Library("hone", "DEF")  # the operators live as long as this object


def _define(schema: str, implementation: Callable[..., Any], fake: Callable[..., Any]) -> Any:
    """Makes torch.ops.hone.<name>.default and returns it."""
    name = schema.partition("(")[0]
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(name, implementation, "CUDA")
    _library.impl(name, implementation, "CPU")  # which says that only CUDA tensors are allowed
    torch.library.register_fake(f"hone::{name}", fake, lib=_library)
    return getattr(torch.ops.hone, name).default


rms_norm = _define(
    "rms_norm(Tensor x, Tensor weight, float epsilon) -> Tensor",
    kernels.rms_norm,
    kernels.rms_norm_fake,
)
rms_norm_residual = _define(
    "rms_norm_residual(Tensor x, Tensor residual, Tensor weight, float epsilon) -> (Tensor, Tensor)",
    kernels.rms_norm_residual,
    kernels.rms_norm_residual_fake,
)
rms_norm_quantized = _define(
    "rms_norm_quantized(Tensor x, Tensor weight, float epsilon, str output) -> (Tensor, Tensor)",
    kernels.rms_norm_quantized,
    kernels.rms_norm_quantized_fake,
)
rms_norm_residual_quantized = _define(
    "rms_norm_residual_quantized(Tensor x, Tensor residual, Tensor weight, float epsilon, str output)"
    " -> (Tensor, Tensor, Tensor)",
    kernels.rms_norm_residual_quantized,
    kernels.rms_norm_residual_quantized_fake,
)
layer_norm = _define(
    "layer_norm(Tensor x, Tensor weight, Tensor? bias, float epsilon) -> Tensor",
    kernels.layer_norm,
    kernels.layer_norm_fake,
)
layer_norm_residual = _define(
    "layer_norm_residual(Tensor x, Tensor residual, Tensor weight, Tensor? bias, float epsilon)"
    " -> (Tensor, Tensor)",
    kernels.layer_norm_residual,
    kernels.layer_norm_residual_fake,
)
rms_norm_backward = _define(
    "rms_norm_backward(Tensor dy, Tensor x, Tensor weight, Tensor? dsum, float epsilon) -> (Tensor, Tensor)",
    kernels.rms_norm_backward,
    kernels.rms_norm_backward_fake,
)
linear = _define(
    "linear(Tensor x, Tensor weight, Tensor? bias, Tensor? residual, str activation,"
    " Tensor? norm_weight=None, float? epsilon=None) -> Tensor",
    linear_kernels.linear,
    linear_kernels.linear_fake,
)
fused_ffn = _define(
    "fused_ffn(Tensor x, Tensor? gate, Tensor up, Tensor down, Tensor? up_bias, Tensor? down_bias,"
    " Tensor? residual, str activation, Tensor? norm_weight=None, float? epsilon=None) -> Tensor",
    linear_kernels.fused_ffn,
    linear_kernels.fused_ffn_fake,
)
quantized_linear = _define(
    "quantized_linear(Tensor x, Tensor codes, Tensor scales, str format, int group, int out_features,"
    " str activation, Tensor? zeros=None, Tensor? bias=None, Tensor? residual=None, Tensor? x_scales=None,"
    " Tensor? norm_weight=None, float? epsilon=None, str? out_dtype=None) -> Tensor",
    quantized_kernels.quantized_linear,
    quantized_kernels.quantized_linear_fake,
)
quantized_ffn = _define(
    "quantized_ffn(Tensor x, Tensor? gate, Tensor? gate_scales, Tensor up, Tensor up_scales, Tensor down,"
    " Tensor down_scales, str format, int group, int intermediate, str activation, Tensor? gate_zeros=None,"
    " Tensor? up_zeros=None, Tensor? down_zeros=None, Tensor? up_bias=None, Tensor? down_bias=None,"
    " Tensor? residual=None, Tensor? x_scales=None, Tensor? norm_weight=None, float? epsilon=None,"
    " str? out_dtype=None) -> Tensor",
    quantized_ffn_kernels.quantized_ffn,
    quantized_ffn_kernels.quantized_ffn_fake,
)
attention = _define(
    "attention(Tensor q, Tensor k, Tensor v, Tensor? attn_mask=None, float dropout_p=0.0,"
    " bool is_causal=False, float? scale=None, bool enable_gqa=False) -> Tensor",
    attention_kernels.attention,
    attention_kernels.attention_fake,
)
_WITH_CACHE = (
    "(Tensor q, Tensor k_cache, Tensor v_cache, Tensor? kv_lengths=None, Tensor? page_table=None,"
    " bool causal=True, int window=0, float softcap=0.0, float? scale=None, SymInt? kv_len=None,"
    " Tensor? k_scale=None, Tensor? v_scale=None)"
)
attention_with_cache = _define(
    f"attention_with_cache{_WITH_CACHE} -> Tensor",
    attention_kernels.attention_with_cache,
    attention_kernels.attention_with_cache_fake,
)
attention_with_cache_lse = _define(
    f"attention_with_cache_lse{_WITH_CACHE} -> (Tensor, Tensor)",
    attention_kernels.attention_with_cache_lse,
    attention_kernels.attention_with_cache_lse_fake,
)
rope_kv_append = _define(
    "rope_kv_append(Tensor q, Tensor k, Tensor v, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor? cos,"
    " Tensor? sin, str style, Tensor? kv_lengths=None, Tensor? page_table=None, Tensor? positions=None,"
    " Tensor? slots=None, Tensor? k_scale=None, Tensor? v_scale=None, Tensor? q_weight=None,"
    " Tensor? k_weight=None, float? epsilon=None) -> Tensor",
    rope_kernels.rope_kv_append,
    rope_kernels.rope_kv_append_fake,
)


def _forward_only(operator: Any, implementation: Callable[..., Any], instead: str) -> None:
    register(_library, operator, implementation, no_formula(implementation.__name__, instead))


register(_library, rms_norm, kernels.rms_norm, rms_norm_formula(rms_norm_backward))
register(
    _library, rms_norm_residual, kernels.rms_norm_residual, rms_norm_residual_formula(rms_norm_backward)
)
_forward_only(rms_norm_quantized, kernels.rms_norm_quantized, "train with hone::rms_norm")
_forward_only(
    rms_norm_residual_quantized, kernels.rms_norm_residual_quantized, "train with hone::rms_norm_residual"
)
_forward_only(layer_norm, kernels.layer_norm, "train with torch.nn.functional.layer_norm")
_forward_only(layer_norm_residual, kernels.layer_norm_residual, "train with torch.nn.functional.layer_norm")
_forward_only(
    rms_norm_backward, kernels.rms_norm_backward, "second derivatives need torch.nn.functional.rms_norm"
)
_forward_only(linear, linear_kernels.linear, "train with torch.nn.functional.linear")
_forward_only(fused_ffn, linear_kernels.fused_ffn, "train with torch.nn.functional.linear")
_forward_only(
    quantized_linear, quantized_kernels.quantized_linear, "train with torch.nn.functional.linear"
)
_forward_only(quantized_ffn, quantized_ffn_kernels.quantized_ffn, "train with torch.nn.functional.linear")
_SDPA = "train with torch.nn.functional.scaled_dot_product_attention"
_forward_only(attention, attention_kernels.attention, _SDPA)
_forward_only(attention_with_cache, attention_kernels.attention_with_cache, _SDPA)
_forward_only(attention_with_cache_lse, attention_kernels.attention_with_cache_lse, _SDPA)
_forward_only(rope_kv_append, rope_kernels.rope_kv_append, "train with PyTorch's own functions")

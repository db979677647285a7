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

help(hone.ops.rms_norm) says what an operator computes and takes; docs/operators/ has a page on each. They
take part in torch.compile(fullgraph=True), CUDA graphs, inference_mode and autograd, run on the current
stream of x's device, and return fresh contiguous tensors. The first call with a dtype, a row length and a
device prepares a kernel, which a CUDA graph cannot capture: warm up before. Every function may be called from
any thread.

- RMSNorm has gradients; everything else runs forward only, and backward() through it raises
  NotImplementedError, as do second derivatives and torch.func.grad. torch.vmap calls the kernel once a slice.
- torch.autocast changes nothing: tensors keep their dtypes, which have to be one and the same.
- Tensors that do not fit raise TypeError or ValueError with the argument's name.
- A tensor that may be left out says by being there that the operator has a residual, a bias, filters. Those
  that are there for one reason come together. Ids may be int32 or int64.

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

import inspect
from typing import Any, Callable, Dict, Tuple

import torch

from ._operators.prepare import KINDS
from ._torch import attention as attention_kernels, quantized, rope
from ._torch.autograd import (
    no_gradient,
    refusing,
    rms_norm_formula,
    rms_norm_residual_formula,
    with_gradient,
)
from ._torch.declared import DECLARED, Declared
from ._torch.rows import RowsCall

_library = torch.library.Library("hone", "DEF")  # the operators live as long as this object

# Those whose kernels are written by hand: on tensors, and what they return for fake ones.
_KERNELS: Dict[str, Tuple[Callable[..., Any], Callable[..., Any]]] = {
    "quantized_linear": (quantized.quantized_linear.implementation, quantized.quantized_linear.fake),
    "quantized_ffn": (quantized.quantized_ffn.implementation, quantized.quantized_ffn.fake),
    "rope_kv_append": (rope.rope_kv_append, rope.rope_kv_append_fake),
}


def _define(schema: str, implementation: Callable[..., Any], fake: Callable[..., Any], instead: str) -> Any:
    """Makes torch.ops.hone.<name>.default and returns it; `instead`: what has a gradient, "" where it gets
    one."""
    name = schema.partition("(")[0]
    if instead:
        implementation, fake = refusing(schema, implementation, instead), refusing(schema, fake, instead)
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(name, implementation, "CUDA")
    _library.impl(name, implementation, "CPU")  # which says that only CUDA tensors are allowed
    torch.library.register_fake(f"hone::{name}", fake, lib=_library)
    operator = getattr(torch.ops.hone, name).default
    if instead:
        no_gradient(_library, operator, schema, implementation, instead)
    return operator


_IMPLEMENTATIONS: Dict[str, Callable[..., Any]] = {}


def _declared(name: str) -> Any:
    """One of the operators that follow from the declarations."""
    declared = next(declared for declared in DECLARED if declared.name == name)
    if name in _KERNELS:
        implementation, fake = _KERNELS[name]
    else:
        call = RowsCall(declared)
        implementation, fake = call.implementation, call.fake
    _IMPLEMENTATIONS[name] = implementation
    operator = _define(declared.schema, implementation, fake, declared.instead)
    operator.__doc__ = _documentation(declared)
    return operator


def _documentation(declared: Declared) -> str:
    """What help(hone.ops.<name>) says."""
    described, prepared = declared.description, KINDS[declared.description]
    paragraphs = [declared.schema, inspect.cleandoc(described.__doc__), declared.says]
    paragraphs.append(
        f"It is hone.{described.__name__} as a function: help(hone.{prepared.__name__}.__call__) has the\n"
        f"shapes and dtypes of its tensors."
    )
    return "\n\n".join(filter(None, paragraphs))


# Generated by `./hone generate`: operators. One for each torch_call of kernel_templates/*/operators.py.
embedding = _declared("embedding")
linear = _declared("linear")
fused_ffn = _declared("fused_ffn")
rms_norm = _declared("rms_norm")
rms_norm_residual = _declared("rms_norm_residual")
rms_norm_quantized = _declared("rms_norm_quantized")
rms_norm_residual_quantized = _declared("rms_norm_residual_quantized")
layer_norm = _declared("layer_norm")
layer_norm_residual = _declared("layer_norm_residual")
quantized_linear = _declared("quantized_linear")
quantized_ffn = _declared("quantized_ffn")
rms_norm_backward = _declared("rms_norm_backward")
rope_kv_append = _declared("rope_kv_append")
sample = _declared("sample")
sample_log_probability = _declared("sample_log_probability")
# End of operators.

_SDPA = "train with torch.nn.functional.scaled_dot_product_attention"
attention = _define(
    "attention(Tensor q, Tensor k, Tensor v, Tensor? attn_mask=None, float dropout_p=0.0,"
    " bool is_causal=False, float? scale=None, bool enable_gqa=False) -> Tensor",
    attention_kernels.attention,
    attention_kernels.attention_fake,
    _SDPA,
)
attention_with_cache = _define(
    f"attention_with_cache{attention_kernels.SCHEMA} -> Tensor",
    attention_kernels.attention_with_cache,
    attention_kernels.attention_with_cache_fake,
    _SDPA,
)
attention_with_cache_lse = _define(
    f"attention_with_cache_lse{attention_kernels.SCHEMA} -> (Tensor, Tensor)",
    attention_kernels.attention_with_cache_lse,
    attention_kernels.attention_with_cache_lse_fake,
    _SDPA,
)

with_gradient(_library, rms_norm, _IMPLEMENTATIONS["rms_norm"], rms_norm_formula(rms_norm_backward))
with_gradient(
    _library, rms_norm_residual, _IMPLEMENTATIONS["rms_norm_residual"],
    rms_norm_residual_formula(rms_norm_backward),
)  # fmt: skip

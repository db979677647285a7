"""Hone's kernels as functions of PyTorch, each of which calls an operator of torch.ops.hone.

    y = hone.ops.rms_norm(x, weight, 1e-5)
    y, total = hone.ops.rms_norm_residual(x, residual, weight, 1e-5)
    y = hone.ops.rms_norm_offset(x, weight, 1e-5)  # times 1 + weight
    codes, scale = hone.ops.rms_norm_quantized(x, weight, 1e-5, "fp8")
    y = hone.ops.linear(x, weight, bias, residual, "none")
    y = hone.ops.fused_ffn(x, gate, up, down, None, None, residual, "silu")
    y = hone.ops.fused_ffn(x, gate, up, down, None, None, x, "silu", norm_weight, 1e-5)
    y = hone.ops.quantized_linear(x, codes, scales, "w4a16", 128, out_features, "none", zeros=zeros)
    y = hone.ops.quantized_linear(codes, weight, scales, "fp8", 0, out_features, "none", x_scales=scale)
    y = hone.ops.quantized_ffn(x, gate, gate_scales, up, up_scales, down, down_scales, "w4a16", 128,
                               intermediate, "silu", residual=x, norm_weight=weight, epsilon=1e-5)
    y = hone.ops.expert_linear(x, starts, gate, rows, top_k, "silu", True, up=up)
    y = hone.ops.quantized_expert_linear(between, starts, down, down_scales, rows, "w4a16", 128, hidden, top_k, "none",
                                         False, routing_weights=shares)
    y = hone.ops.attention(q, k, v, is_causal=True, enable_gqa=True)
    q = hone.ops.rope_kv_append(q, k, v, k_cache, v_cache, cos, sin, "half", kv_lengths, page_table)
    y = hone.ops.attention_with_cache(q, k_cache, v_cache, kv_lengths, page_table)

help(hone.ops.rms_norm) says what an operator computes and takes; docs/operators/ has a page on each. They
take part in torch.compile(fullgraph=True), CUDA graphs, inference_mode and autograd, run on the current
stream of x's device, and return fresh tensors: contiguous ones, but for attention's, which lies as [batch,
tokens, heads, head_dim]. The first call with a dtype, a row length and a device prepares a kernel, which a
CUDA graph cannot capture: warm up before. Every function may be called from any thread. A call that no
gradient, compiler, mode, transform, tracer, profiler or tensor subclass has to see passes by PyTorch's
dispatcher.

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

expert_linear and quantized_expert_linear take what hone.ExpertRouting returns: starts and rows, the fields of their
descriptions by the tensors that are there, and `gather`, whether x has a row for each token (else top_k of them, by
expert). With routing_weights a token's results are added up.

attention has the arguments of torch.nn.functional.scaled_dot_product_attention, [batch, heads, tokens,
head_dim] and its masks, for which PyTorch's own runs, but no dropout. attention_with_cache reads a KV cache [batch, room,
kv_heads, head_dim], or pages [pages, page_size, kv_heads, head_dim] with a page_table [batch, pages of a
sequence], or any keys and values, for q [batch, tokens, heads, head_dim]; causal is aligned at the end, a
window counts the query's own key, and kv_lengths [batch] the call's own tokens. attention_with_cache_lse
returns the log-sum-exp of the scores, too. rope_kv_append is what goes before: it returns q rotated and
writes k, rotated, and v to the caches, as the last of kv_lengths; with positions and slots [tokens], each
token to its own place, outer * room + inner. Lengths, tables, positions and slots are int32; k_scale and
v_scale [kv_heads] go with a cache of float8_e4m3fn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Tuple

from ._torch.registered import calls as _calls

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["attention", "attention_with_cache", "attention_with_cache_lse"]
# Generated by `./hone generate`: names.
__all__ += [
    "embedding", "expert_linear", "linear", "fused_ffn", "rms_norm", "rms_norm_residual", "rms_norm_offset",
    "rms_norm_residual_offset", "rms_norm_quantized", "rms_norm_residual_quantized", "layer_norm",
    "layer_norm_residual", "quantized_expert_linear", "quantized_linear", "quantized_ffn",
    "rms_norm_backward", "rope_kv_append", "sample", "sample_log_probability",
]
# End of names.


def attention(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Optional[float] = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(q * k^T * scale) * v, of q [batch, heads, tokens, head_dim] and k and v [batch, kv_heads,
    tokens, head_dim], with the arguments of torch.nn.functional.scaled_dot_product_attention; dropout_p has to
    be 0. is_causal is aligned at the beginning, whatever the numbers of tokens. With an attn_mask, boolean or of
    q's dtype, PyTorch's attention runs: Hone has no kernels for masks, and says so once."""
    return _calls.attention(q, k, v, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def attention_with_cache(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, kv_lengths: Optional[Tensor] = None,
    page_table: Optional[Tensor] = None, causal: bool = True, window: int = 0, softcap: float = 0.0,
    scale: Optional[float] = None, kv_len: Optional[int] = None, k_scale: Optional[Tensor] = None,
    v_scale: Optional[Tensor] = None, sinks: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    """Attention of q [batch, tokens, heads, head_dim] over a cache [batch, room, kv_heads, head_dim], or pages
    of one with a page_table; help(hone.ops) says what the others are."""
    return _calls.attention_with_cache(
        q, k_cache, v_cache, kv_lengths, page_table, causal, window, softcap, scale, kv_len, k_scale, v_scale,
        sinks,
    )


def attention_with_cache_lse(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, kv_lengths: Optional[Tensor] = None,
    page_table: Optional[Tensor] = None, causal: bool = True, window: int = 0, softcap: float = 0.0,
    scale: Optional[float] = None, kv_len: Optional[int] = None, k_scale: Optional[Tensor] = None,
    v_scale: Optional[Tensor] = None, sinks: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """The same, and the log-sum-exp of the scores, fp32 [batch, heads, tokens]."""
    return _calls.attention_with_cache_lse(
        q, k_cache, v_cache, kv_lengths, page_table, causal, window, softcap, scale, kv_len, k_scale, v_scale,
        sinks,
    )


# Generated by `./hone generate`: operators. One for each torch_call of kernel_templates/*/operators.py.


def embedding(
    ids: Tensor, table: Tensor, scale: Optional[float] = None, position_ids: Optional[Tensor] = None,
    position_table: Optional[Tensor] = None,
) -> Tensor:
    """out = table[ids] * scale + position_table[position_ids], the last two where the operator has them,
    computed in fp32 and rounded once. A token whose id or position has no row gets zeros.

    It is hone.Embedding as a function: help(hone.EmbeddingOperator.__call__) has the shapes and dtypes of its
    tensors.
    """
    return _calls.embedding(ids, table, scale, position_ids, position_table)


def expert_linear(
    x: Tensor, starts: Tensor, weight: Tensor, rows: Optional[Tensor], top_k: int, activation: str,
    gather: bool, up: Optional[Tensor] = None, bias: Optional[Tensor] = None,
    up_bias: Optional[Tensor] = None, routing_weights: Optional[Tensor] = None,
) -> Tensor:
    """A linear layer of a mixture of experts: row p of x, sorted by expert as ExpertRouting says, times the
    weight of expert e with starts[e] <= p < starts[e + 1], accumulated in fp32. activation(x * weight^T +
    bias); gated: activation(x * weight^T + bias) * (x * up^T + up_bias), but with swiglu_oai what Activation
    says of both. With gather, x has a row for each token, and place p takes that of token rows[p] / top_k.
    With combine, out has a row for each token: the sum over slots, in their order and in fp32, of
    routing_weights[token, slot] times the result of that pair, which was rounded to dtype before.

    The operator combines where there are routing_weights, and is gated where there is an up.

    It is hone.ExpertLinear as a function: help(hone.ExpertLinearOperator.__call__) has the shapes and dtypes
    of its tensors.
    """
    return _calls.expert_linear(
        x, starts, weight, rows, top_k, activation, gather, up, bias, up_bias, routing_weights,
    )


def linear(
    x: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], activation: str,
    norm_weight: Optional[Tensor] = None, epsilon: Optional[float] = None,
) -> Tensor:
    """out = activation(x * weight^T + bias) + residual, accumulated in fp32. Rows of x are tokens. With a
    norm x * rsqrt(mean(x^2) + epsilon) * norm_weight, an RmsNorm, takes the place of x; it may be rounded to
    dtype before it is multiplied, as that of an RmsNorm is.

    It is hone.Linear as a function: help(hone.LinearOperator.__call__) has the shapes and dtypes of its
    tensors.
    """
    return _calls.linear(x, weight, bias, residual, activation, norm_weight, epsilon)


def fused_ffn(
    x: Tensor, gate: Optional[Tensor], up: Tensor, down: Tensor, up_bias: Optional[Tensor],
    down_bias: Optional[Tensor], residual: Optional[Tensor], activation: str,
    norm_weight: Optional[Tensor] = None, epsilon: Optional[float] = None,
) -> Tensor:
    """The feed-forward network of a transformer layer. Gated (SwiGLU and its like):
      out = (activation(x * gate^T) * (x * up^T)) * down^T + residual,
    else out = activation(x * up^T + up_bias) * down^T + down_bias + residual. The product of the first half
    [tokens, intermediate], rounded to dtype, lies in the workspace. With a norm an RmsNorm of x takes the
    place of x, as in Linear, but not of a residual that is x itself: out = x + ffn(norm(x)) is one call.

    It is hone.FusedFfn as a function: help(hone.FusedFfnOperator.__call__) has the shapes and dtypes of its
    tensors.
    """
    return _calls.fused_ffn(x, gate, up, down, up_bias, down_bias, residual, activation, norm_weight, epsilon)


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements, accumulated in fp32.
    With a residual, x + residual (rounded to dtype) takes the place of x and is written to `sum`. With
    unit_offset, as in Gemma's models, the weight counts as 1 + weight, which is not rounded.

    It is hone.RmsNorm as a function: help(hone.Norm.__call__) has the shapes and dtypes of its tensors.
    """
    return _calls.rms_norm(x, weight, epsilon)


def rms_norm_residual(x: Tensor, residual: Tensor, weight: Tensor, epsilon: float) -> Tuple[Tensor, Tensor]:
    """y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements, accumulated in fp32.
    With a residual, x + residual (rounded to dtype) takes the place of x and is written to `sum`. With
    unit_offset, as in Gemma's models, the weight counts as 1 + weight, which is not rounded.

    It is hone.RmsNorm as a function: help(hone.Norm.__call__) has the shapes and dtypes of its tensors.
    """
    return _calls.rms_norm_residual(x, residual, weight, epsilon)


def rms_norm_offset(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements, accumulated in fp32.
    With a residual, x + residual (rounded to dtype) takes the place of x and is written to `sum`. With
    unit_offset, as in Gemma's models, the weight counts as 1 + weight, which is not rounded.

    The operator has unit_offset.

    It is hone.RmsNorm as a function: help(hone.Norm.__call__) has the shapes and dtypes of its tensors.
    """
    return _calls.rms_norm_offset(x, weight, epsilon)


def rms_norm_residual_offset(
    x: Tensor, residual: Tensor, weight: Tensor, epsilon: float,
) -> Tuple[Tensor, Tensor]:
    """y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements, accumulated in fp32.
    With a residual, x + residual (rounded to dtype) takes the place of x and is written to `sum`. With
    unit_offset, as in Gemma's models, the weight counts as 1 + weight, which is not rounded.

    The operator has unit_offset.

    It is hone.RmsNorm as a function: help(hone.Norm.__call__) has the shapes and dtypes of its tensors.
    """
    return _calls.rms_norm_residual_offset(x, residual, weight, epsilon)


def rms_norm_quantized(x: Tensor, weight: Tensor, epsilon: float, output: str) -> Tuple[Tensor, Tensor]:
    """y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements, accumulated in fp32.
    With a residual, x + residual (rounded to dtype) takes the place of x and is written to `sum`. With
    unit_offset, as in Gemma's models, the weight counts as 1 + weight, which is not rounded.

    It is hone.RmsNorm as a function: help(hone.Norm.__call__) has the shapes and dtypes of its tensors.
    """
    return _calls.rms_norm_quantized(x, weight, epsilon, output)


def rms_norm_residual_quantized(
    x: Tensor, residual: Tensor, weight: Tensor, epsilon: float, output: str,
) -> Tuple[Tensor, Tensor, Tensor]:
    """y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements, accumulated in fp32.
    With a residual, x + residual (rounded to dtype) takes the place of x and is written to `sum`. With
    unit_offset, as in Gemma's models, the weight counts as 1 + weight, which is not rounded.

    It is hone.RmsNorm as a function: help(hone.Norm.__call__) has the shapes and dtypes of its tensors.
    """
    return _calls.rms_norm_residual_quantized(x, residual, weight, epsilon, output)


def layer_norm(x: Tensor, weight: Tensor, bias: Optional[Tensor], epsilon: float) -> Tensor:
    """y = (x - mean(x)) * rsqrt(var(x) + epsilon) * weight + bias over each row; otherwise like RmsNorm.

    It is hone.LayerNorm as a function: help(hone.Norm.__call__) has the shapes and dtypes of its tensors.
    """
    return _calls.layer_norm(x, weight, bias, epsilon)


def layer_norm_residual(
    x: Tensor, residual: Tensor, weight: Tensor, bias: Optional[Tensor], epsilon: float,
) -> Tuple[Tensor, Tensor]:
    """y = (x - mean(x)) * rsqrt(var(x) + epsilon) * weight + bias over each row; otherwise like RmsNorm.

    It is hone.LayerNorm as a function: help(hone.Norm.__call__) has the shapes and dtypes of its tensors.
    """
    return _calls.layer_norm_residual(x, residual, weight, bias, epsilon)


def quantized_expert_linear(
    x: Tensor, starts: Tensor, codes: Tensor, scales: Tensor, rows: Optional[Tensor], format: str, group: int,
    out_features: int, top_k: int, activation: str, gather: bool, zeros: Optional[Tensor] = None,
    up: Optional[Tensor] = None, up_scales: Optional[Tensor] = None, up_zeros: Optional[Tensor] = None,
    bias: Optional[Tensor] = None, up_bias: Optional[Tensor] = None, routing_weights: Optional[Tensor] = None,
) -> Tensor:
    """ExpertLinear with quantized weights, all of one format: row p of x, sorted by expert as ExpertRouting
    says, times the weight of expert e with starts[e] <= p < starts[e + 1], whose elements are (code - zero
    point) * scale. gather, combine, biases and gates are as there.

    w4a16 and w8a16 multiply x as it is; weights may be rounded to dtype before that. w8a8 and fp8 multiply
    codes with codes, which are made of x first, with a scale for each row (fp8 with a group: for each 128
    columns of it), the largest magnitude at 127 or 448.

    The operator combines where there are routing_weights, and is gated where there is an up.

    It is hone.QuantizedExpertLinear as a function: help(hone.QuantizedExpertLinearOperator.__call__) has the
    shapes and dtypes of its tensors.
    """
    return _calls.quantized_expert_linear(
        x, starts, codes, scales, rows, format, group, out_features, top_k, activation, gather, zeros, up,
        up_scales, up_zeros, bias, up_bias, routing_weights,
    )


def quantized_linear(
    x: Tensor, codes: Tensor, scales: Tensor, format: str, group: int, out_features: int, activation: str,
    zeros: Optional[Tensor] = None, bias: Optional[Tensor] = None, residual: Optional[Tensor] = None,
    x_scales: Optional[Tensor] = None, norm_weight: Optional[Tensor] = None, epsilon: Optional[float] = None,
    out_dtype: Optional[str] = None,
) -> Tensor:
    """out = activation(x * weight^T + bias) + residual, accumulated in fp32 (w8a8: in 32-bit integers), where
    an element of weight is (code - zero point) * scale. Rows of x are tokens.

    w4a16 and w8a16 multiply x as it is; weights may be rounded to dtype before that. w8a8 and fp8 multiply
    codes with codes: either the caller gives those of x (quantized_x), as an RmsNorm writes them, or they are
    made of x first, with a scale for each token (fp8 with a group: for each 128 columns of it), the largest
    magnitude at 127 or 448. With a norm x * rsqrt(mean(x^2) + epsilon) * norm_weight takes the place of x, as
    in Linear.

    It is hone.QuantizedLinear as a function: help(hone.QuantizedLinearOperator.__call__) has the shapes and
    dtypes of its tensors.
    """
    return _calls.quantized_linear(
        x, codes, scales, format, group, out_features, activation, zeros, bias, residual, x_scales,
        norm_weight, epsilon, out_dtype,
    )


def quantized_ffn(
    x: Tensor, gate: Optional[Tensor], gate_scales: Optional[Tensor], up: Tensor, up_scales: Tensor,
    down: Tensor, down_scales: Tensor, format: str, group: int, intermediate: int, activation: str,
    gate_zeros: Optional[Tensor] = None, up_zeros: Optional[Tensor] = None,
    down_zeros: Optional[Tensor] = None, up_bias: Optional[Tensor] = None, down_bias: Optional[Tensor] = None,
    residual: Optional[Tensor] = None, x_scales: Optional[Tensor] = None,
    norm_weight: Optional[Tensor] = None, epsilon: Optional[float] = None, out_dtype: Optional[str] = None,
) -> Tensor:
    """FusedFfn with quantized weights, all of one format. The product of the first half [tokens,
    intermediate], rounded to dtype, lies in the workspace; where codes are multiplied with codes, the second
    half makes its own of that.

    It is hone.QuantizedFfn as a function: help(hone.QuantizedFfnOperator.__call__) has the shapes and dtypes
    of its tensors.
    """
    return _calls.quantized_ffn(
        x, gate, gate_scales, up, up_scales, down, down_scales, format, group, intermediate, activation,
        gate_zeros, up_zeros, down_zeros, up_bias, down_bias, residual, x_scales, norm_weight, epsilon,
        out_dtype,
    )


def rms_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor, dsum: Optional[Tensor], epsilon: float,
) -> Tuple[Tensor, Tensor]:
    """Gradients of an RMSNorm: with r = rsqrt(mean(x^2) + epsilon) of a row and g = dy * weight,
      dx = r * (g - x * r^2 * mean(g * x)) (+ dsum),     dweight = sum over rows of dy * x * r,
    accumulated in fp32 in a fixed order: the same bits at every call. x is what was normalized: for a norm
    with a residual its `sum`, whose own gradient dsum then joins dx, which is the gradient of both x and
    residual.

    It is hone.RmsNormBackward as a function: help(hone.NormBackward.__call__) has the shapes and dtypes of
    its tensors.
    """
    return _calls.rms_norm_backward(dy, x, weight, dsum, epsilon)


def rope_kv_append(
    q: Tensor, k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, cos: Optional[Tensor],
    sin: Optional[Tensor], style: str, kv_lengths: Optional[Tensor] = None,
    page_table: Optional[Tensor] = None, positions: Optional[Tensor] = None, slots: Optional[Tensor] = None,
    k_scale: Optional[Tensor] = None, v_scale: Optional[Tensor] = None, q_weight: Optional[Tensor] = None,
    k_weight: Optional[Tensor] = None, epsilon: Optional[float] = None,
) -> Tensor:
    """The rotary embedding of new queries and keys, and the append of keys and values to a KV cache, in one
    launch: a pair (x, y) of a token at position p becomes (x cos - y sin, y cos + x sin) with row p of the
    tables. With a norm each head of q and k is normalized first: x * rsqrt(mean(x^2) + epsilon) * weight.
    With unit_offset, as in Gemma 3, a weight counts as 1 + weight.

    A token whose position is negative, or has no row in the tables, is left out altogether; of one for which
    the cache has no room, page or slot, only the query is written.

    It is hone.RopeKvAppend as a function: help(hone.RopeKvAppendOperator.__call__) has the shapes and dtypes
    of its tensors.
    """
    return _calls.rope_kv_append(
        q, k, v, k_cache, v_cache, cos, sin, style, kv_lengths, page_table, positions, slots, k_scale,
        v_scale, q_weight, k_weight, epsilon,
    )


def sample(
    logits: Tensor, temperature: Tensor, seed: Tensor, counter: Tensor, top_k: Optional[Tensor] = None,
    top_p: Optional[Tensor] = None, min_p: Optional[Tensor] = None,
) -> Tensor:
    """A token for each row of logits: the likeliest where the row's temperature is 0, else one drawn from the
    softmax of logits / temperature. With filters, of the top_k likeliest tokens first, then of the likeliest
    until their part of the probability reaches top_p, then of those at least min_p times as likely as the
    likeliest; tokens that are as likely as the last one that stays stay, too. A seed and a counter give the
    same token whatever the batch, the row's place or the GPU. NaN is never chosen; a row without a number
    gives token 0.

    PyTorch's generators have no part in it: a captured CUDA graph draws anew where a counter has changed in
    place.

    It is hone.Sample as a function: help(hone.SampleOperator.__call__) has the shapes and dtypes of its
    tensors.
    """
    return _calls.sample(logits, temperature, seed, counter, top_k, top_p, min_p)


def sample_log_probability(
    logits: Tensor, temperature: Tensor, seed: Tensor, counter: Tensor, top_k: Optional[Tensor] = None,
    top_p: Optional[Tensor] = None, min_p: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:
    """A token for each row of logits: the likeliest where the row's temperature is 0, else one drawn from the
    softmax of logits / temperature. With filters, of the top_k likeliest tokens first, then of the likeliest
    until their part of the probability reaches top_p, then of those at least min_p times as likely as the
    likeliest; tokens that are as likely as the last one that stays stay, too. A seed and a counter give the
    same token whatever the batch, the row's place or the GPU. NaN is never chosen; a row without a number
    gives token 0.

    As sample, with the log-probabilities of its tokens: those of log_softmax(logits).

    It is hone.Sample as a function: help(hone.SampleOperator.__call__) has the shapes and dtypes of its
    tensors.
    """
    return _calls.sample_log_probability(logits, temperature, seed, counter, top_k, top_p, min_p)


# End of operators.

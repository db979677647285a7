"""What an operator is: frozen values that :func:`hone.prepare` and :func:`hone.explain` take.

Generated from kernel_templates/*/operators.py by `./hone generate`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ._native import structs
from ._operators.description import (
    Description,
    OfAttention,
    OfAttentionAppend,
    OfExpertLinear,
    OfExpertRouting,
    OfNorm,
    OfQuantizedExpertLinear,
    OfQuantizedFfn,
    OfQuantizedLinear,
    OfRopeKvAppend,
)

__all__ = [
    "Attention",
    "AttentionAppend",
    "Embedding",
    "ExpertLinear",
    "ExpertRouting",
    "FusedFfn",
    "LayerNorm",
    "Linear",
    "QuantizedExpertLinear",
    "QuantizedFfn",
    "QuantizedLinear",
    "RmsNorm",
    "RmsNormBackward",
    "RopeKvAppend",
    "Sample",
]


@dataclass(frozen=True)
class AttentionAppend(OfAttentionAppend):
    """A decoding step's attention of one new token a sequence, with what goes before it, in one launch: what
    RopeKvAppend does with q, k and v, and Attention of the rotated query over the cache, the new key and
    value included. Queries and keys are rounded to dtype between rotation and product, as there. q, k and v
    may be parts of one row, as a projection of all three leaves them; q is not written.

    What is not q, k or v may be read before the kernels enqueued ahead of this one have ended: older rows of
    the cache, lengths, pages, tables and weights must not be written by those, but by work that ended before
    them, such as the launch of another graph.

    Fast is the kernel of sm_90 for 16-bit elements, heads of multiples of 8 elements and rotations of
    multiples of 16. The other one is right everywhere, and slower than the two operators.
    """

    heads: int  # heads of q and out
    kv_heads: int  # heads of k and v, a divisor of heads; 0: as many
    head_dim: int  # 1 to 256
    rotary_dim: int = -1  # leading elements of a head that turn, even; 0: none; -1: all
    max_batch: int = 64  # most sequences of one call
    max_kv_len: int = 8192  # most keys of a sequence: its capacity in the cache
    # element type of q, k, v, the cache, the norms' weights and out; fp32, fp16 or bf16, or a torch.dtype
    dtype: str = "bf16"
    style: str = "half"  # "half", "interleaved"
    norm: bool = False  # each head of q and k is normalized first: x * rsqrt(mean(x^2) + epsilon) * weight
    softcap: bool = False  # scores s become softcap * tanh(s / softcap), after scale
    window: int = 0  # most keys that a query sees, its own included; 0: all
    page_size: int = 0  # tokens of a page of the cache; 0: not paged
    unit_offset: bool = False  # with a norm: its weights count as 1 + weight, which is not rounded

    C_NAME = "attention_append"
    STRUCT = structs.AttentionAppend
    SIZES = ("heads", "kv_heads", "head_dim", "rotary_dim", "max_batch", "max_kv_len", "window", "page_size")
    LIMIT = "max_batch"
    WORDS = {"dtype": structs.DTYPES, "style": structs.ROPE_STYLES}
    CALL_SIZES = ("batch", "kv_len")


@dataclass(frozen=True)
class Attention(OfAttention):
    """out = softmax(scale * q k^T + mask) v for each sequence and head, accumulated in fp32. `heads /
    kv_heads` neighbouring heads of q share one of k and v. Causal is aligned at the end: of a sequence with
    q_len queries and kv_len keys, query i sees key j <= i + kv_len - q_len. A query that sees no key gets
    zeros, and -infinity as its log-sum-exp; what stands in k and v beyond a sequence's end, also NaN, changes
    nothing.

    One operator serves prefill and decode: calls of up to 16 queries a sequence (not packed) take kernels
    that read a KV cache at the speed of memory, others those of prefill, which read codes of fp8, too. Packed
    queries over a paged cache are chunks of prompts, prompts behind a cached prefix and single tokens in one
    call, which enqueues kernels of both kinds, beside each other, where it may have single tokens: of each
    only what is its own is read. Lengths, starts and page tables are on the device: a captured graph may be
    replayed with others.
    """

    heads: int  # heads of q and out
    kv_heads: int  # heads of k and v, a divisor of heads; 0: as many
    head_dim: int  # 1 to 256
    max_batch: int = 64  # most sequences of one call
    max_q_len: int = 8192  # most queries of a sequence
    max_kv_len: int = 8192  # most keys of a sequence: its capacity in a cache
    min_q_len: int = 1  # fewest queries of a call, from 1: kernels for fewer are not prepared
    dtype: str = "bf16"  # element type of q and out, and of k and v; fp32, fp16 or bf16, or a torch.dtype
    kv_dtype: str = "same"  # element type of k and v; fp8: codes, with k_scale and v_scale; "same", "fp8"
    causal: bool = True
    lengths: bool = False  # kv_lengths says how many keys each sequence has; else all have kv_len
    # q_starts and kv_starts cut packed tensors into sequences, not with lengths; with a page_size only q is
    # packed, and kv_lengths says how many keys there are in pages
    packed: bool = False
    softcap: bool = False  # scores s become softcap * tanh(s / softcap), after scale, before the mask
    lse: bool = False  # the log-sum-exp of the scores is written, too
    window: int = 0  # most keys that a query sees, its own included; needs causal; 0: all
    page_size: int = 0  # tokens of a page of the KV cache; 0: not paged
    # a learned logit a head, beside scores times scale, counts in the softmax's sum and in lse, and has no
    # value
    sinks: bool = False

    C_NAME = "attention"
    STRUCT = structs.Attention
    SIZES = (
        "heads", "kv_heads", "head_dim", "max_batch", "max_q_len", "max_kv_len", "min_q_len", "window",
        "page_size",
    )
    LIMIT = "max_batch"
    WORDS = {"dtype": structs.DTYPES, "kv_dtype": structs.KV_DTYPES}
    CALL_SIZES = ("batch", "q_len", "kv_len")


@dataclass(frozen=True)
class Embedding(Description):
    """out = table[ids] * scale + position_table[position_ids], the last two where the operator has them,
    computed in fp32 and rounded once. A token whose id or position has no row gets zeros.
    """

    hidden: int  # elements of a row; 1 to 262144
    max_tokens: int = 8192  # most tokens of one call
    dtype: str = "bf16"  # element type of the tables and out; fp32, fp16 or bf16, or a torch.dtype
    index: str = "int32"  # "int32", "int64"
    scale: bool = False
    positions: bool = False

    C_NAME = "embedding"
    STRUCT = structs.Embedding
    FAMILY = "embedding"
    SIZES = ("hidden", "max_tokens")
    LIMIT = "max_tokens"
    WORDS = {"dtype": structs.DTYPES, "index": structs.INDEX_TYPES}


@dataclass(frozen=True)
class ExpertLinear(OfExpertLinear):
    """A linear layer of a mixture of experts: row p of x, sorted by expert as ExpertRouting says, times the
    weight of expert e with starts[e] <= p < starts[e + 1], accumulated in fp32. activation(x * weight^T +
    bias); gated: activation(x * weight^T + bias) * (x * up^T + up_bias), but with swiglu_oai what Activation
    says of both. With gather, x has a row for each token, and place p takes that of token rows[p] / top_k.
    With combine, out has a row for each token: the sum over slots, in their order and in fp32, of
    routing_weights[token, slot] times the result of that pair, which was rounded to dtype before.
    """

    in_features: int  # elements of a row of x; 1 to 262144
    out_features: int  # elements of a row of out; 1 to 1048576
    experts: int  # 1 to 512
    top_k: int  # experts of a token; 1 to 32
    max_tokens: int = 8192  # most tokens of one call
    dtype: str = "bf16"  # element type of x, weights and out; fp32, fp16 or bf16, or a torch.dtype
    activation: str = "none"  # "none", "gelu_tanh", "gelu_erf", "silu", "relu", "swiglu_oai"
    gated: bool = False  # there is a second weight, up
    bias: bool = False
    gather: bool = False  # x has a row for each token
    combine: bool = False  # out has a row for each token

    C_NAME = "expert_linear"
    STRUCT = structs.ExpertLinear
    FAMILY = "expert_linear"
    SIZES = ("in_features", "out_features", "experts", "top_k", "max_tokens")
    LIMIT = "max_tokens"
    WORDS = {"dtype": structs.DTYPES, "activation": structs.ACTIVATIONS}
    C_FIELDS = {"in_features": "in", "out_features": "out"}


@dataclass(frozen=True)
class ExpertRouting(OfExpertRouting):
    """Routing of a mixture of experts: of each token's softmax over all experts the top_k largest, in this
    order, of equal ones the first, with `renormalize` divided by their sum; and all pairs of a token and a
    slot, number token * top_k + slot, sorted by expert, those of one expert in their own order. The result is
    the same in every call. NaN counts as minus infinity.
    """

    experts: int  # logits a token; 1 to 512
    top_k: int  # experts that a token goes to; 1 to 32
    max_tokens: int = 8192  # most tokens of one call
    dtype: str = "bf16"  # element type of the logits; fp32, fp16 or bf16, or a torch.dtype
    renormalize: bool = False

    C_NAME = "expert_routing"
    STRUCT = structs.ExpertRouting
    FAMILY = "expert_routing"
    SIZES = ("experts", "top_k", "max_tokens")
    LIMIT = "max_tokens"
    WORDS = {"dtype": structs.DTYPES}


@dataclass(frozen=True)
class Linear(Description):
    """out = activation(x * weight^T + bias) + residual, accumulated in fp32. Rows of x are tokens. With a
    norm x * rsqrt(mean(x^2) + epsilon) * norm_weight, an RmsNorm, takes the place of x; it may be rounded to
    dtype before it is multiplied, as that of an RmsNorm is.
    """

    in_features: int  # elements of a row of x; 1 to 262144
    out_features: int  # elements of a row of out; 1 to 1048576
    max_tokens: int = 8192  # most tokens of one call
    dtype: str = "bf16"  # element type of every tensor; fp32, fp16 or bf16, or a torch.dtype
    activation: str = "none"  # "none", "gelu_tanh", "gelu_erf", "silu", "relu"
    bias: bool = False
    residual: bool = False
    norm: bool = False  # x is normalized first

    C_NAME = "linear"
    STRUCT = structs.Linear
    FAMILY = "linear"
    SIZES = ("in_features", "out_features", "max_tokens")
    LIMIT = "max_tokens"
    WORDS = {"dtype": structs.DTYPES, "activation": structs.ACTIVATIONS}
    C_FIELDS = {"in_features": "in", "out_features": "out"}


@dataclass(frozen=True)
class FusedFfn(Description):
    """The feed-forward network of a transformer layer. Gated (SwiGLU and its like):
      out = (activation(x * gate^T) * (x * up^T)) * down^T + residual,
    else out = activation(x * up^T + up_bias) * down^T + down_bias + residual. The product of the first half
    [tokens, intermediate], rounded to dtype, lies in the workspace. With a norm an RmsNorm of x takes the
    place of x, as in Linear, but not of a residual that is x itself: out = x + ffn(norm(x)) is one call.
    """

    hidden: int  # elements of a row of x and out
    intermediate: int  # elements of a row between the halves
    max_tokens: int = 8192  # most tokens of one call
    dtype: str = "bf16"  # element type of every tensor; fp32, fp16 or bf16, or a torch.dtype
    activation: str = "silu"  # "none", "gelu_tanh", "gelu_erf", "silu", "relu"
    gated: bool = True
    bias: bool = False  # biases of both halves; not with gated
    residual: bool = False  # added to out
    norm: bool = False  # x is normalized first

    C_NAME = "fused_ffn"
    STRUCT = structs.FusedFfn
    SIZES = ("hidden", "intermediate", "max_tokens")
    LIMIT = "max_tokens"
    WORDS = {"dtype": structs.DTYPES, "activation": structs.ACTIVATIONS}


@dataclass(frozen=True)
class RmsNorm(OfNorm):
    """y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements, accumulated in fp32.
    With a residual, x + residual (rounded to dtype) takes the place of x and is written to `sum`. With
    unit_offset, as in Gemma's models, the weight counts as 1 + weight, which is not rounded.
    """

    hidden: int  # elements of a row; 1 to 262144
    max_rows: int = 8192  # most rows of one call
    dtype: str = "bf16"  # element type of x, residual, weight and sum; fp32, fp16 or bf16, or a torch.dtype
    output: str = "same"  # "same", "int8", "fp8"
    residual: bool = False
    unit_offset: bool = False

    C_NAME = "rms_norm"
    STRUCT = structs.RmsNorm
    FAMILY = "rmsnorm"
    SIZES = ("hidden", "max_rows")
    LIMIT = "max_rows"
    WORDS = {"dtype": structs.DTYPES, "output": structs.NORM_OUTPUTS}


@dataclass(frozen=True)
class LayerNorm(OfNorm):
    """y = (x - mean(x)) * rsqrt(var(x) + epsilon) * weight + bias over each row; otherwise like RmsNorm."""

    hidden: int  # elements of a row; 1 to 262144
    max_rows: int = 8192  # most rows of one call
    # element type of x, residual, weight, bias and sum; fp32, fp16 or bf16, or a torch.dtype
    dtype: str = "bf16"
    output: str = "same"  # "same", "int8", "fp8"
    residual: bool = False
    bias: bool = True
    unit_offset: bool = False

    C_NAME = "layer_norm"
    STRUCT = structs.LayerNorm
    FAMILY = "layernorm"
    SIZES = ("hidden", "max_rows")
    LIMIT = "max_rows"
    WORDS = {"dtype": structs.DTYPES, "output": structs.NORM_OUTPUTS}


@dataclass(frozen=True)
class QuantizedExpertLinear(OfQuantizedExpertLinear):
    """ExpertLinear with quantized weights, all of one format: row p of x, sorted by expert as ExpertRouting
    says, times the weight of expert e with starts[e] <= p < starts[e + 1], whose elements are (code - zero
    point) * scale. gather, combine, biases and gates are as there.

    w4a16 and w8a16 multiply x as it is; weights may be rounded to dtype before that. w8a8 and fp8 multiply
    codes with codes, which are made of x first, with a scale for each row (fp8 with a group: for each 128
    columns of it), the largest magnitude at 127 or 448.
    """

    in_features: int  # elements of a row of x; 1 to 262144
    out_features: int  # elements of a row of out; 1 to 1048576
    experts: int  # 1 to 512
    top_k: int  # experts of a token; 1 to 32
    format: str = "w4a16"  # "w4a16", "w8a16", "w8a8", "fp8"
    # columns of a weight that share a scale; 0: all of a row. As in QuantizedLinear: w4a16: 32, 64 or 128,
    # dividing in_features; fp8: 128, dividing in_features, for a scale each 128 x 128; others: 0; 0 to 128
    group: int = 0
    max_tokens: int = 8192  # most tokens of one call
    dtype: str = "bf16"  # element type of x, biases and out; fp16 or bf16, or a torch.dtype
    zeros: bool = False  # w4a16: codes have zero points, one a group
    activation: str = "none"  # "none", "gelu_tanh", "gelu_erf", "silu", "relu", "swiglu_oai"
    gated: bool = False  # there is a second weight, up
    bias: bool = False
    gather: bool = False  # x has a row for each token
    combine: bool = False  # out has a row for each token

    C_NAME = "quantized_expert_linear"
    STRUCT = structs.QuantizedExpertLinear
    FAMILY = "quantized_expert_linear"
    SIZES = ("in_features", "out_features", "experts", "top_k", "group", "max_tokens")
    LIMIT = "max_tokens"
    WORDS = {"dtype": structs.DTYPES, "format": structs.QUANT_FORMATS, "activation": structs.ACTIVATIONS}
    C_FIELDS = {"in_features": "in", "out_features": "out"}


@dataclass(frozen=True)
class QuantizedLinear(OfQuantizedLinear):
    """out = activation(x * weight^T + bias) + residual, accumulated in fp32 (w8a8: in 32-bit integers), where
    an element of weight is (code - zero point) * scale. Rows of x are tokens.

    w4a16 and w8a16 multiply x as it is; weights may be rounded to dtype before that. w8a8 and fp8 multiply
    codes with codes: either the caller gives those of x (quantized_x), as an RmsNorm writes them, or they are
    made of x first, with a scale for each token (fp8 with a group: for each 128 columns of it), the largest
    magnitude at 127 or 448. With a norm x * rsqrt(mean(x^2) + epsilon) * norm_weight takes the place of x, as
    in Linear.
    """

    in_features: int  # elements of a row of x; 1 to 262144
    out_features: int  # elements of a row of out; 1 to 1048576
    format: str = "w4a16"  # "w4a16", "w8a16", "w8a8", "fp8"
    # columns of the weight that share a scale; 0: all of a row. w4a16: 32, 64 or 128, dividing in_features.
    # fp8: 128, dividing in_features, for a scale each 128 x 128 of the weight and each 128 columns of x.
    # Others: 0; 0 to 128
    group: int = 0
    max_tokens: int = 8192  # most tokens of one call
    # element type of x that is no codes, bias, residual, norm_weight and out; fp16 or bf16, or a torch.dtype
    dtype: str = "bf16"
    zeros: bool = False  # w4a16: codes have zero points, one a group
    one_scale: bool = False  # w8a8, fp8 with group 0: one scale for the whole weight, not one a row
    quantized_x: bool = False  # w8a8, fp8: x comes as codes with scales; not with norm
    one_x_scale: bool = False  # quantized_x, group 0: one scale for all of x, not one a token
    activation: str = "none"  # "none", "gelu_tanh", "gelu_erf", "silu", "relu"
    bias: bool = False
    residual: bool = False
    norm: bool = False  # x is normalized first

    C_NAME = "quantized_linear"
    STRUCT = structs.QuantizedLinear
    FAMILY = "quantized_linear"
    NOT_IN_FAMILY = ("one_scale", "one_x_scale")
    SIZES = ("in_features", "out_features", "group", "max_tokens")
    LIMIT = "max_tokens"
    WORDS = {"dtype": structs.DTYPES, "format": structs.QUANT_FORMATS, "activation": structs.ACTIVATIONS}
    C_FIELDS = {"in_features": "in", "out_features": "out"}


@dataclass(frozen=True)
class QuantizedFfn(OfQuantizedFfn):
    """FusedFfn with quantized weights, all of one format. The product of the first half [tokens,
    intermediate], rounded to dtype, lies in the workspace; where codes are multiplied with codes, the second
    half makes its own of that.
    """

    hidden: int  # elements of a row of x and out
    intermediate: int  # elements of a row between the halves
    format: str = "w4a16"  # "w4a16", "w8a16", "w8a8", "fp8"
    group: int = 0  # as in QuantizedLinear; divides hidden and intermediate
    max_tokens: int = 8192  # most tokens of one call
    dtype: str = "bf16"  # as in QuantizedLinear; fp32, fp16 or bf16, or a torch.dtype
    zeros: bool = False  # zero points of all weights
    one_scale: bool = False  # one for each weight
    quantized_x: bool = False  # x, and only x, comes as codes with scales; not with norm
    one_x_scale: bool = False
    activation: str = "silu"  # "none", "gelu_tanh", "gelu_erf", "silu", "relu"
    gated: bool = True
    bias: bool = False  # biases of both halves; not with gated
    residual: bool = False  # added to out
    norm: bool = False  # x is normalized first

    C_NAME = "quantized_ffn"
    STRUCT = structs.QuantizedFfn
    SIZES = ("hidden", "intermediate", "group", "max_tokens")
    LIMIT = "max_tokens"
    WORDS = {"dtype": structs.DTYPES, "format": structs.QUANT_FORMATS, "activation": structs.ACTIVATIONS}


@dataclass(frozen=True)
class RmsNormBackward(Description):
    """Gradients of an RMSNorm: with r = rsqrt(mean(x^2) + epsilon) of a row and g = dy * weight,
      dx = r * (g - x * r^2 * mean(g * x)) (+ dsum),     dweight = sum over rows of dy * x * r,
    accumulated in fp32 in a fixed order: the same bits at every call. x is what was normalized: for a norm
    with a residual its `sum`, whose own gradient dsum then joins dx, which is the gradient of both x and
    residual.
    """

    hidden: int  # elements of a row; 1 to 262144
    max_rows: int = 8192  # most rows of one call
    dtype: str = "bf16"  # element type of every tensor; fp32, fp16 or bf16, or a torch.dtype
    residual: bool = False  # dsum is added

    C_NAME = "rms_norm_backward"
    STRUCT = structs.RmsNormBackward
    FAMILY = "rmsnorm_backward"
    SIZES = ("hidden", "max_rows")
    LIMIT = "max_rows"
    WORDS = {"dtype": structs.DTYPES}


@dataclass(frozen=True)
class RopeKvAppend(OfRopeKvAppend):
    """The rotary embedding of new queries and keys, and the append of keys and values to a KV cache, in one
    launch: a pair (x, y) of a token at position p becomes (x cos - y sin, y cos + x sin) with row p of the
    tables. With a norm each head of q and k is normalized first: x * rsqrt(mean(x^2) + epsilon) * weight.
    With unit_offset, as in Gemma 3, a weight counts as 1 + weight.

    A token whose position is negative, or has no row in the tables, is left out altogether; of one for which
    the cache has no room, page or slot, only the query is written.
    """

    heads: int  # heads of q
    kv_heads: int  # heads of k and v; 0: as many
    head_dim: int  # 1 to 256
    rotary_dim: int = -1  # leading elements of a head that turn, even; 0: none; -1: all
    max_tokens: int = 8192  # most tokens of one call, of all its sequences
    dtype: str = "bf16"  # element type of q, k, v and out; fp32, fp16 or bf16, or a torch.dtype
    kv_dtype: str = "same"  # element type of the cache; "same", "fp8"
    style: str = "half"  # "half", "interleaved"
    norm: bool = False
    # each token has its position and its slot in the cache; else every sequence has q_len new tokens, the
    # last of its kv_lengths
    slots: bool = False
    page_size: int = 0  # tokens of a page of the cache; 0: not paged
    unit_offset: bool = False  # with a norm: its weights count as 1 + weight, which is not rounded

    C_NAME = "rope_kv_append"
    STRUCT = structs.RopeKvAppend
    SIZES = ("heads", "kv_heads", "head_dim", "rotary_dim", "max_tokens", "page_size")
    LIMIT = "max_tokens"
    WORDS = {"dtype": structs.DTYPES, "kv_dtype": structs.KV_DTYPES, "style": structs.ROPE_STYLES}


@dataclass(frozen=True)
class Sample(Description):
    """A token for each row of logits: the likeliest where the row's temperature is 0, else one drawn from the
    softmax of logits / temperature. With filters, of the top_k likeliest tokens first, then of the likeliest
    until their part of the probability reaches top_p, then of those at least min_p times as likely as the
    likeliest; tokens that are as likely as the last one that stays stay, too. A seed and a counter give the
    same token whatever the batch, the row's place or the GPU. NaN is never chosen; a row without a number
    gives token 0.
    """

    vocabulary: int  # 1 to 1048576
    max_rows: int = 256  # most rows of one call
    dtype: str = "bf16"  # element type of the logits; fp32, fp16 or bf16, or a torch.dtype
    filters: bool = False
    log_probability: bool = False
    # logits x count as softcap * tanh(x / softcap) in what is drawn; 0: as they are; 0 to 65536
    softcap: int = 0

    C_NAME = "sample"
    STRUCT = structs.Sample
    FAMILY = "sample"
    SIZES = ("vocabulary", "max_rows", "softcap")
    LIMIT = "max_rows"
    ROWS_ARE_SEQUENCES = True
    WORDS = {"dtype": structs.DTYPES}

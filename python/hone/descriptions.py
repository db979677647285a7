"""What an operator is: frozen values that :func:`hone.prepare` and :func:`hone.explain` take."""

from __future__ import annotations

from ctypes import Structure, sizeof
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Dict, Tuple, Type

from . import _attention_structs, _quantized_structs, _structs

_ALIASES = {
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
}


def dtype_name(dtype: Any, field: str = "dtype") -> str:
    """Our name, "bf16", for "bf16", "bfloat16" or torch.bfloat16. Raises ValueError."""
    text = str(dtype)
    if text.startswith("torch."):
        text = text[len("torch.") :]
    return _one_of(field, _ALIASES.get(text, text), _structs.DTYPES)


def _one_of(field: str, value: Any, allowed: Dict[str, int]) -> Any:
    if value not in allowed:
        raise ValueError(f"{field}: {value!r}; allowed are {', '.join(allowed)}")
    return value


# Queries of a sequence that the kernels of attention over a cache take; more are those of a prompt.
MOST_DECODED = 16

# Fields whose value is one of some words, and the words' numbers in C.
_WORDS = {
    "dtype": _structs.DTYPES,
    "scale_dtype": _structs.DTYPES,
    "output": _structs.OUTPUTS,
    "activation": _structs.ACTIVATIONS,
    "kv_dtype": _attention_structs.KV_DTYPES,
    "style": _attention_structs.ROPE_STYLES,
    "format": _quantized_structs.QUANT_FORMATS,
}


class Description:
    """Base of the descriptions. C_NAME is the middle of its C functions' names: hone_<C_NAME>_prepare."""

    C_NAME: ClassVar[str]
    STRUCT: ClassVar[Type[Structure]]
    SIZES: ClassVar[Tuple[str, ...]]  # fields that are sizes; the last is the most rows of one call
    C_FIELDS: ClassVar[Dict[str, str]] = {}  # members of STRUCT that have another name than their field
    CALL_SIZES: ClassVar[Tuple[str, ...]] = ("rows",)  # that say how much one call is of
    dtype: str

    def __post_init__(self) -> None:
        """Checks types, and brings names into their one form; sizes are libhone's to judge."""
        for field in self.SIZES:
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{field}: {value!r}; allowed is an int")
            if not -(2**63) <= value < 2**63:  # ctypes would cut it off
                raise ValueError(f"{field}: {value}; allowed are numbers of 64 bits")
        for field in (field.name for field in fields(self) if field.type == "bool"):
            if not isinstance(getattr(self, field), bool):
                raise TypeError(f"{field}: {getattr(self, field)!r}; allowed is a bool")
        for field in ("dtype", "scale_dtype"):
            if hasattr(self, field):
                object.__setattr__(self, field, dtype_name(getattr(self, field), field))
        for field, words in _WORDS.items():
            if hasattr(self, field):
                _one_of(field, getattr(self, field), words)

    def _set_default(self, field: str, default: int, value: int) -> None:
        """Two descriptions of the same are equal."""
        if getattr(self, field) == default:
            object.__setattr__(self, field, value)

    @property
    def most_rows(self) -> int:
        """Of one call: max_rows, or max_tokens."""
        return getattr(self, self.SIZES[-1])

    def to_struct(self) -> Structure:
        """The C struct of this description."""
        values = {self.C_FIELDS.get(field, field): value for field, value in vars(self).items()}
        for field, words in _WORDS.items():
            if field in values:
                values[field] = words[values[field]]
        return self.STRUCT(struct_size=sizeof(self.STRUCT), **values)


@dataclass(frozen=True)
class RmsNorm(Description):
    """y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements, accumulated in fp32.

    With a residual, x + residual (rounded to dtype) takes the place of x and is returned, too.
    """

    hidden: int  # elements of a row, 1 to 262144
    max_rows: int = 8192  # most rows of one call
    dtype: str = "bf16"  # of x, residual, weight and sum: fp32, fp16 or bf16, or a torch.dtype
    output: str = "same"  # "same": dtype; "int8" or "fp8" (E4M3): codes and one fp32 scale a row
    residual: bool = False

    C_NAME = "rms_norm"
    STRUCT = _structs.RmsNorm
    SIZES = ("hidden", "max_rows")


@dataclass(frozen=True)
class LayerNorm(Description):
    """y = (x - mean(x)) * rsqrt(var(x) + epsilon) * weight + bias over each row; otherwise like RmsNorm."""

    hidden: int
    max_rows: int = 8192
    dtype: str = "bf16"
    output: str = "same"
    residual: bool = False
    bias: bool = True

    C_NAME = "layer_norm"
    STRUCT = _structs.LayerNorm
    SIZES = ("hidden", "max_rows")


@dataclass(frozen=True)
class RmsNormBackward(Description):
    """Gradients of an RmsNorm: dx [rows, hidden] and dweight [hidden], accumulated in fp32, the same at every
    call.

    For a norm with a residual, x is its sum, whose own gradient dsum joins dx, the gradient of both x and
    residual.
    """

    hidden: int
    max_rows: int = 8192
    dtype: str = "bf16"  # of every tensor
    residual: bool = False

    C_NAME = "rms_norm_backward"
    STRUCT = _structs.RmsNormBackward
    SIZES = ("hidden", "max_rows")


@dataclass(frozen=True)
class Linear(Description):
    """out = activation(x * weight^T + bias) + residual, accumulated in fp32; the rows of x are tokens.

    With a norm, x * rsqrt(mean(x^2) + epsilon) * norm_weight, an RmsNorm, takes the place of x.
    """

    in_features: int  # elements of a row of x, 1 to 262144
    out_features: int  # elements of a row of out, 1 to 1048576
    max_tokens: int = 8192  # most rows of one call
    dtype: str = "bf16"  # of every tensor
    activation: str = "none"  # or "gelu_tanh", "gelu_erf", "silu", "relu"
    bias: bool = False
    residual: bool = False
    norm: bool = False

    C_NAME = "linear"
    STRUCT = _structs.Linear
    SIZES = ("in_features", "out_features", "max_tokens")
    C_FIELDS = {"in_features": "in", "out_features": "out"}


@dataclass(frozen=True)
class FusedFfn(Description):
    """The feed-forward network of a transformer layer. Gated (SwiGLU and its like):

        out = (activation(x * gate^T) * (x * up^T)) * down^T + residual,

    else out = activation(x * up^T + up_bias) * down^T + down_bias + residual. What lies between the halves
    is rounded to dtype. With a norm, an RmsNorm of x takes the place of x, as in a Linear, but not of a
    residual that is x itself.
    """

    hidden: int  # elements of a row of x and out
    intermediate: int  # elements of a row between the halves
    max_tokens: int = 8192
    dtype: str = "bf16"
    activation: str = "silu"
    gated: bool = True
    bias: bool = False  # of both halves; not with gated
    residual: bool = False
    norm: bool = False

    C_NAME = "fused_ffn"
    STRUCT = _structs.FusedFfn
    SIZES = ("hidden", "intermediate", "max_tokens")


@dataclass(frozen=True)
class Attention(Description):
    """out = softmax(scale * q k^T + mask) v for each sequence and head, accumulated in fp32, over new keys or
    a KV cache, contiguous or paged; heads / kv_heads neighbouring heads of q share one of k and v.

    Causal is aligned at the end: of a sequence with q_len queries and kv_len keys, query i sees key j <= i +
    kv_len - q_len. A query that sees no key gets zeros, and -infinity as its log-sum-exp. Calls of up to 16
    queries a sequence (not packed) take kernels that read a cache at the speed of memory.
    """

    heads: int  # of q and out
    kv_heads: int  # of k and v, a divisor of heads; 0: as many
    head_dim: int  # 1 to 256
    max_batch: int = 64  # most sequences of one call
    max_q_len: int = 8192  # most queries of a sequence
    max_kv_len: int = 8192  # most keys of a sequence: its capacity in a cache
    min_q_len: int = 1  # fewest queries of a call: kernels for fewer are not prepared
    dtype: str = "bf16"  # of q and out, and of k and v
    kv_dtype: str = "same"  # of k and v; "fp8" (E4M3): with a scale for each of kv_heads; max_q_len up to 16
    causal: bool = True
    window: int = 0  # most keys that a query sees, its own included; needs causal; 0: all
    softcap: bool = False  # scores s become softcap * tanh(s / softcap), after scale, before the mask
    lse: bool = False  # the log-sum-exp of the scores is returned, too
    lengths: bool = False  # kv_lengths says how many keys each sequence has; else all have as many
    packed: bool = False  # q_starts and kv_starts cut packed tensors into sequences; not with lengths
    page_size: int = 0  # tokens of a page of the cache, for max_q_len up to 16, not packed; 0: not paged

    C_NAME = "attention"
    STRUCT = _attention_structs.Attention
    SIZES = (
        "heads", "kv_heads", "head_dim", "window", "page_size", "max_batch", "max_q_len", "max_kv_len",
        "min_q_len",
    )  # fmt: skip
    CALL_SIZES = ("batch", "q_len", "kv_len")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_default("kv_heads", 0, self.heads)


@dataclass(frozen=True)
class RopeKvAppend(Description):
    """The rotary embedding of new queries and keys, and the append of keys and values to a KV cache, in one
    launch: a pair (x, y) of a token at position p becomes (x cos - y sin, y cos + x sin) with row p of the
    tables, which hone.nn.rope_table() makes.

    With a norm each head of q and k is normalized first, by an RmsNorm. A token whose position is negative,
    or has no row in the tables, is left out altogether; of one for which the cache has no room, page or slot,
    only the query is written.
    """

    heads: int  # of q
    kv_heads: int  # of k and v; 0: as many
    head_dim: int  # 1 to 256
    rotary_dim: int = -1  # leading elements of a head that turn, even; 0: none; -1: all
    max_tokens: int = 8192  # most tokens of one call, of all its sequences
    dtype: str = "bf16"  # of q, k, v and out
    kv_dtype: str = "same"  # of the cache; "fp8" (E4M3) gets k / k_scale
    style: str = "half"  # i and i + rotary_dim / 2 turn together, as in Llama; "interleaved": 2 i and 2 i + 1
    norm: bool = False
    # Each token has its position and its slot in the cache; else every sequence has as many new tokens, the
    # last of its kv_lengths.
    slots: bool = False
    page_size: int = 0  # tokens of a page of the cache; 0: not paged

    C_NAME = "rope_kv_append"
    STRUCT = _attention_structs.RopeKvAppend
    SIZES = ("heads", "kv_heads", "head_dim", "rotary_dim", "page_size", "max_tokens")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_default("kv_heads", 0, self.heads)
        self._set_default("rotary_dim", -1, self.head_dim)

"""Prepared operators for the steps of an engine: one for each kind of layer, whatever layer asks."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from .. import descriptions
from .._operators.prepare import prepare_operator


# libhone's bounds: sequences x heads x queries of the longest of a packed operator, elements of the keys that all
# sequences of any could have, and, of few queries, pieces of 16 keys for 4 rows of queries.
_MOST_QUERIES = 2**32
_MOST_ELEMENTS = 2**40
_MOST_UNITS = 2**30


class Limits(NamedTuple):
    """The most of everything in a step."""

    sequences: int
    tokens: int
    kv_len: int  # tokens of a sequence
    decoded: int  # queries of a sequence that is decoded: 1, or with speculation more
    page_size: int


class Heads(NamedTuple):
    """What the attention of a layer is."""

    heads: int
    kv_heads: int
    head_dim: int
    dtype: str
    kv_dtype: str  # "same" or "fp8"
    window: int = 0
    softcap: bool = False
    sinks: bool = False


def decode_description(heads: Heads, limits: Limits) -> descriptions.Attention:
    """Sequences of a few queries over pages. Of very long contexts fewer than the limits say: a step may take several
    calls."""
    rows = heads.heads // heads.kv_heads * (1 << (limits.decoded - 1).bit_length())
    units = heads.kv_heads * -(-rows // 4) * -(-limits.kv_len // 16)
    most = min(_most_sequences(heads, limits), max(1, _MOST_UNITS // units))
    return descriptions.Attention(
        **heads._asdict(), lengths=True, page_size=limits.page_size, max_kv_len=limits.kv_len,
        max_batch=min(limits.sequences, most), max_q_len=limits.decoded,
    )  # fmt: skip


def packed_description(heads: Heads, limits: Limits) -> descriptions.Attention:
    """Queries of any lengths over pages. Of very long prompts and contexts fewer sequences than the limits say."""
    most = min(_most_sequences(heads, limits), max(1, _MOST_QUERIES // (heads.heads * limits.tokens)))
    return descriptions.Attention(
        **heads._asdict(), packed=True, page_size=limits.page_size, max_kv_len=limits.kv_len,
        max_batch=min(limits.sequences, most), max_q_len=limits.tokens,
    )  # fmt: skip


def _most_sequences(heads: Heads, limits: Limits) -> int:
    return max(1, _MOST_ELEMENTS // (limits.kv_len * heads.kv_heads * heads.head_dim))


def append_description(
    heads: Heads, limits: Limits, rotary_dim: int = 0, style: str = "half"
) -> descriptions.RopeKvAppend:
    """Keys and values to their slots. Without a rotation queries have no part in it: one head stands for them, since
    the operator wants some."""
    return descriptions.RopeKvAppend(
        heads=heads.heads if rotary_dim else 1, kv_heads=heads.kv_heads, head_dim=heads.head_dim,
        rotary_dim=rotary_dim, max_tokens=limits.tokens, dtype=heads.dtype, kv_dtype=heads.kv_dtype, style=style,
        slots=True, page_size=limits.page_size,
    )  # fmt: skip


@functools.lru_cache(maxsize=None)
def prepared(description: Any, device: int) -> Any:
    """Loads or compiles at the first call. Raises HoneError."""
    return prepare_operator(description, device, stacklevel=3)

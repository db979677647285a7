"""Prepared operators for the steps of an engine: one for each kind of layer, whatever layer asks."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from .. import descriptions
from .._operators.description import MOST_DECODED
from .._operators.prepare import prepare_operator


class Limits(NamedTuple):
    """The most of everything in a step."""

    sequences: int
    tokens: int
    kv_len: int  # tokens of a sequence
    decoded: int  # queries of a sequence that is decoded: 1, or with speculation more
    page_size: int

    @property
    def pieces(self) -> int:
        """Pieces of a step, decoding sequences included."""
        return self.sequences + -(-self.tokens // MOST_DECODED)


class Heads(NamedTuple):
    """What the attention of a layer is."""

    heads: int
    kv_heads: int
    head_dim: int
    dtype: str
    kv_dtype: str  # "same" or "fp8"
    window: int = 0
    softcap: bool = False


def decode_description(heads: Heads, limits: Limits) -> descriptions.Attention:
    """Sequences of a few queries over pages. With an fp8 cache the pieces of prompts, too."""
    fp8 = heads.kv_dtype == "fp8"
    return descriptions.Attention(
        **heads._asdict(), lengths=True, page_size=limits.page_size, max_kv_len=limits.kv_len,
        max_batch=limits.pieces if fp8 else limits.sequences, max_q_len=MOST_DECODED if fp8 else limits.decoded,
    )  # fmt: skip


def packed_description(heads: Heads, limits: Limits) -> descriptions.Attention:
    """Queries of any lengths over pages."""
    return descriptions.Attention(
        **heads._asdict(), packed=True, page_size=limits.page_size, max_kv_len=limits.kv_len,
        max_batch=limits.sequences, max_q_len=limits.tokens,
    )  # fmt: skip


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

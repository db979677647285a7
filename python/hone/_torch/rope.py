"""What PyTorch's rotary embedding of Hone with its append to a KV cache does: on CUDA tensors, and on fake
ones that have only shapes. As attention.py."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Tuple

import torch
from torch import Tensor

from .. import descriptions
from .declared import DECLARED
from .heads import (
    FP8,
    check_option,
    check_query,
    check_scales,
    check_tensor,
    compact,
    options_of,
    readable_heads,
)
from .prepared import DTYPES, PreparedBySize, on


# What a RopeKvAppend is but for the tokens of its calls.
_Kind = namedtuple("_Kind", "heads kv_heads head_dim rotary_dim dtype kv_dtype style norm slots page_size")


def _describe(kind: _Kind, most: Tuple[int, ...]) -> descriptions.RopeKvAppend:
    return descriptions.RopeKvAppend(**kind._asdict(), max_tokens=most[0])


_PREPARED = PreparedBySize("rope_kv_append", _describe, (8192,))
_Options = options_of(next(declared.schema for declared in DECLARED if declared.name == "rope_kv_append"))


def rope_kv_append(
    q: Tensor, k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, *options: Any
) -> Tensor:
    """q [batch, q_len, heads, head_dim], k and v [batch, q_len, kv_heads, head_dim], with slots without a
    batch -> like q; writes the caches."""
    given = _Options(*options)
    _check(q, k, v, k_cache, v_cache, given)
    if q.is_meta or not q.numel():
        return q.new_empty(q.shape)
    kind = _Kind(
        q.shape[-2], k.shape[-2], q.shape[-1], 0 if given.cos is None else 2 * given.cos.shape[1],
        DTYPES[q.dtype], "fp8" if k_cache.dtype == FP8 else "same", given.style, given.q_weight is not None, given.slots is not None,
        0 if given.page_table is None else k_cache.shape[1],
    )  # fmt: skip
    with on(q.get_device()):
        operator = _PREPARED.for_call(kind, q.get_device(), (q.numel() // (kind.heads * kind.head_dim),))
        tensors = {
            name: compact(value) for name, value in given._asdict().items() if isinstance(value, Tensor)
        }
        epsilon = 0.0 if given.epsilon is None else given.epsilon
        return operator(*map(_evenly, (q, k, v)), k_cache, v_cache, epsilon=epsilon, **tensors)


def _evenly(x: Tensor) -> Tensor:
    """x, or a copy where its tokens have no one common stride."""
    if x.dim() == 4 and x.shape[0] > 1 and x.stride(0) != x.shape[1] * x.stride(1):
        return x.contiguous()
    return readable_heads(x)


def _check(q: Tensor, k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, options: Any) -> None:
    """Raises TypeError or ValueError; of fake tensors, too."""
    slotted = options.slots is not None
    check_query(q, ("tokens", "heads", "head_dim") if slotted else ("batch", "q_len", "heads", "head_dim"))
    tokens, head_dim = tuple(q.shape[:-2]), q.shape[-1]
    check_tensor(q, "k", k, (*tokens, "kv_heads", head_dim))
    check_tensor(q, "v", v, tuple(k.shape))
    paged = options.page_table is not None
    room = ("pages", "page_size") if paged else ("sequences" if slotted else tokens[0], "room")
    check_tensor(q, "k_cache", k_cache, (*room, k.shape[-2], head_dim), q.dtype, FP8)
    check_tensor(q, "v_cache", v_cache, tuple(k_cache.shape), k_cache.dtype)
    check_scales(q, k_cache, options.k_scale, options.v_scale, k.shape[-2])
    _check_turning(q, options)
    int32, without = torch.int32, "without slots"
    check_option(q, "kv_lengths", options.kv_lengths, not slotted, without, tokens[:1], int32)
    if_paged = False if slotted else None
    check_option(q, "page_table", options.page_table, if_paged, without, (tokens[0], "pages"), int32)
    check_option(q, "slots", options.slots, None, "", tokens, int32)
    turning = slotted and options.cos is not None
    check_option(q, "positions", options.positions, turning, "with slots, and cos and sin", tokens, int32)


def _check_turning(q: Tensor, options: Any) -> None:
    """What the rotation and the norm need."""
    head_dim, cos = q.shape[-1], options.cos
    check_option(q, "cos", cos, None, "", ("positions", "rotary_dim / 2"), torch.float32)
    table = () if cos is None else tuple(cos.shape)
    check_option(q, "sin", options.sin, cos is not None, "with cos", table, torch.float32)
    if cos is not None and not 0 < 2 * cos.shape[1] <= head_dim:
        raise ValueError(f"cos: its shape is {list(cos.shape)}; allowed are up to {head_dim // 2} columns")
    if options.style not in ("half", "interleaved"):
        raise ValueError(f"style: {options.style!r}; allowed are 'half' and 'interleaved'")
    norm = options.q_weight is not None
    check_option(q, "q_weight", options.q_weight, None, "", (head_dim,))
    check_option(q, "k_weight", options.k_weight, norm, "with q_weight", (head_dim,))
    if norm != (options.epsilon is not None):
        raise ValueError(f"epsilon: {options.epsilon}; it goes with q_weight and k_weight")


def rope_kv_append_fake(
    q: Tensor, k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, *options: Any
) -> Tensor:
    _check(q, k, v, k_cache, v_cache, _Options(*options))
    return q.new_empty(q.shape)

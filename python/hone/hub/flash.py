"""Attention with the names and arguments of flash-attn 2, for what calls that: transformers takes these functions
from a folder of the Hub. They run forward only, and refuse what Hone has no kernel for. A window is (left, right),
-1 meaning all; right counts only where nothing is causal, and has to be -1 then. s_aux [heads] are sinks: logits that
count in the softmax's sum and have no value."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from .. import descriptions
from .._nn.common import needs_gradient
from .._torch.heads import check_query, check_tensor, readable_heads
from .._torch.prepared import DTYPES, PreparedBySize, on
from .._torch.registered import calls

Window = Tuple[int, int]

_Kind = namedtuple("_Kind", "heads kv_heads head_dim dtype causal window softcap sinks")


def _describe(kind: _Kind, most: Tuple[int, ...]) -> descriptions.Attention:
    return descriptions.Attention(
        **kind._asdict(), packed=True, max_batch=most[0], max_q_len=most[1], max_kv_len=most[2]
    )


_PACKED = PreparedBySize("flash_attn_varlen_func", _describe, (64, 8192, 8192))


def flash_attn_func(
    q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
    causal: bool = False, window_size: Window = (-1, -1), softcap: float = 0.0,
    alibi_slopes: Optional[Tensor] = None, s_aux: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    """q [batch, q_len, heads, head_dim], k and v [batch, kv_len, kv_heads, head_dim] -> like q; causal is aligned
    at the end."""
    _check(dropout_p=dropout_p, alibi_slopes=alibi_slopes)
    _check_forward_only("flash_attn_func", q, k, v)
    window = window_of(window_size, causal)
    return calls.attention_with_cache(
        q, k, v, None, None, causal, window, softcap or 0.0, softmax_scale, sinks=_sinks_of(s_aux)
    )


@torch.compiler.disable  # type: ignore[misc]  # PyTorch's types are not there
def flash_attn_varlen_func(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: Any,
    max_seqlen_k: Any, dropout_p: float = 0.0, softmax_scale: Optional[float] = None, causal: bool = False,
    window_size: Window = (-1, -1), softcap: float = 0.0, alibi_slopes: Optional[Tensor] = None,
    s_aux: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    """Packed sequences: q [q_tokens, heads, head_dim], k and v [kv_tokens, kv_heads, head_dim], starts [batch + 1]
    -> like q. A part of its own under torch.compile."""
    _check(dropout_p=dropout_p, alibi_slopes=alibi_slopes)
    _check_forward_only("flash_attn_varlen_func", q, k, v)
    check_query(q, ("q_tokens", "heads", "head_dim"))
    check_tensor(q, "k", k, ("kv_tokens", "kv_heads", q.shape[2]))
    check_tensor(q, "v", v, tuple(k.shape))
    kind = _Kind(
        q.shape[1], k.shape[1], q.shape[2], DTYPES[q.dtype], causal, window_of(window_size, causal),
        bool(softcap), s_aux is not None,
    )  # fmt: skip
    sizes = (cu_seqlens_q.shape[0] - 1, int(max_seqlen_q), int(max_seqlen_k))
    with on(q.get_device()):
        operator = _PACKED.for_call(kind, q.get_device(), sizes)
        q_starts, kv_starts = (starts.to(torch.int32).contiguous() for starts in (cu_seqlens_q, cu_seqlens_k))
        return operator(
            *map(readable_heads, (q, k, v)), q_starts=q_starts, kv_starts=kv_starts, q_len=sizes[1],
            kv_len=sizes[2], scale=softmax_scale, softcap=softcap or None, sinks=_sinks_of(s_aux),
        )  # fmt: skip


def flash_attn_with_kvcache(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Optional[Tensor] = None, v: Optional[Tensor] = None,
    cache_seqlens: Optional[Tensor] = None, block_table: Optional[Tensor] = None,
    softmax_scale: Optional[float] = None, causal: bool = False, window_size: Window = (-1, -1),
    softcap: float = 0.0, s_aux: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    """q [batch, q_len, heads, head_dim] over a cache [batch, room, kv_heads, head_dim], or pages of one with a
    block_table [batch, pages] -> like q. k and v [batch, q_len, kv_heads, head_dim], where there are any, go into
    the cache behind its cache_seqlens [batch] tokens first."""
    if (k is None) != (v is None):
        raise ValueError("k, v: one of them is given; allowed are both or neither")
    if k is not None and cache_seqlens is None:
        raise ValueError("cache_seqlens: it is missing; it is needed with k and v")
    _check_forward_only("flash_attn_with_kvcache", q, k, v)
    window = window_of(window_size, causal)
    lengths = None if cache_seqlens is None else cache_seqlens.to(torch.int32)
    if k is not None and lengths is not None:
        lengths = lengths + k.shape[1]
        calls.rope_kv_append(k, k, v, k_cache, v_cache, None, None, "half", lengths, block_table)
    return calls.attention_with_cache(
        q, k_cache, v_cache, lengths, block_table, causal, window, softcap or 0.0, softmax_scale,
        sinks=_sinks_of(s_aux),
    )  # fmt: skip


def _sinks_of(s_aux: Optional[Tensor]) -> Optional[Tensor]:
    """As Hone takes them: fp32."""
    return None if s_aux is None else s_aux.detach().float().contiguous()


def window_of(window_size: Window, causal: bool) -> int:
    """Keys that a query sees, its own included; 0: all. Raises ValueError."""
    left, right = window_size
    if not causal and (left >= 0 or right >= 0):
        raise ValueError(f"window_size: {window_size}; allowed where causal is False is (-1, -1)")
    return left + 1 if left >= 0 else 0


def _check(**wishes: Any) -> None:
    """Raises ValueError for what no kernel does."""
    for name, value in wishes.items():
        if value is not None and (isinstance(value, Tensor) or value):
            raise ValueError(f"{name}: it is given; allowed are {'0' if name == 'dropout_p' else 'None'} alone")


def _check_forward_only(name: str, *tensors: Optional[Tensor]) -> None:
    if needs_gradient(*tensors):
        raise NotImplementedError(
            f"{name} of Hone has no gradient; train with attn_implementation='sdpa', or call it under torch.no_grad()"
        )

"""What PyTorch's attention of Hone does: on CUDA tensors, and on fake ones that have only shapes.

Called by the dispatcher (registered.py), and by the autograd kernels (autograd.py). Nothing here
records gradients. May be called from any thread.
"""

from __future__ import annotations

import math
import warnings
from collections import namedtuple
from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional

from .. import descriptions
from .._operators.description import MOST_DECODED
from ..errors import HoneWarning
from .heads import (
    FP8,
    check_groups,
    check_option,
    check_positive,
    check_query,
    check_scales,
    check_tensor,
    compact,
    options_of,
    readable_heads,
)
from .prepared import DTYPES, PreparedBySize, on

Pair = Tuple[Tensor, Tensor]


# What an Attention is but for the sizes of its calls. `decoded`: the most queries of calls for a cache, 1, 2, 4, 8
# or 16; 0: of others.
_Kind = namedtuple(
    "_Kind",
    "heads kv_heads head_dim dtype kv_dtype causal window softcap sinks lse lengths page_size decoded",
)


def _describe(kind: _Kind, most: Tuple[int, ...]) -> descriptions.Attention:
    fields = kind._asdict()
    decoded = fields.pop("decoded")
    fewest = decoded // 2 + 1 if decoded else MOST_DECODED + 1
    return descriptions.Attention(
        **fields, max_batch=most[0], max_q_len=decoded or most[1], min_q_len=fewest, max_kv_len=most[2]
    )


# At first for up to so many sequences, queries and keys.
_PREPARED = PreparedBySize("attention", _describe, (64, 8192, 8192))


SCHEMA = (  # of q and a cache
    "(Tensor q, Tensor k_cache, Tensor v_cache, Tensor? kv_lengths=None, Tensor? page_table=None,"
    " bool causal=True, int window=0, float softcap=0.0, float? scale=None, SymInt? kv_len=None,"
    " Tensor? k_scale=None, Tensor? v_scale=None, Tensor? sinks=None)"
)
_Options = options_of(SCHEMA)


def attention(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Optional[float] = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """q [batch, heads, q_len, head_dim], k and v [batch, kv_heads, kv_len, head_dim] -> like q."""
    _check_attention(q, k, v, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    q_len, kv_len = q.shape[2], k.shape[2]
    if attn_mask is not None:
        return _masked_by_pytorch(q, k, v, attn_mask, scale)
    if is_causal and q_len < kv_len:  # PyTorch's is aligned at the beginning: nobody sees later keys
        k, v = k[:, :, :q_len], v[:, :, :q_len]
    options = _Options(causal=is_causal, scale=scale)
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    if is_causal and q_len > kv_len > 0 and q.numel() and not q.is_meta:  # later queries see all keys
        out = q.new_empty(q.shape)
        _run(q[:, :kv_len], k, v, options, False, out[:, :kv_len])
        _run(q[:, kv_len:], k, v, options._replace(causal=False), False, out[:, kv_len:])
        return out.transpose(1, 2)
    return _run(q, k, v, options, False)[0].transpose(1, 2)


_said_masks = False


def _masked_by_pytorch(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: Optional[float]) -> Tensor:
    """PyTorch's attention for masks, for which Hone has no kernels; says so once in a process."""
    global _said_masks
    if not _said_masks:
        _said_masks = True
        text = "hone.ops.attention: attn_mask is given, for which Hone has no kernels: PyTorch's attention runs"
        warnings.warn(text, HoneWarning, stacklevel=3)
    if q.is_meta:
        return _results(q.transpose(1, 2))[0].transpose(1, 2)
    group = q.shape[1] // k.shape[1]
    if group > 1:
        k, v = (tensor.repeat_interleave(group, 1) for tensor in (k, v))
    out = functional.scaled_dot_product_attention(q, k, v, mask, scale=scale)
    return out.transpose(1, 2).contiguous().transpose(1, 2)  # as it lies everywhere


def attention_with_cache(q: Tensor, k_cache: Tensor, v_cache: Tensor, *options: Any) -> Tensor:
    """q [batch, q_len, heads, head_dim] -> the same."""
    given = _Options(*options)
    _check_cached(q, k_cache, v_cache, given)
    return _run(q, k_cache, v_cache, given, False)[0]


def attention_with_cache_lse(q: Tensor, k_cache: Tensor, v_cache: Tensor, *options: Any) -> Pair:
    """-> (out, lse [batch, heads, q_len] of float32)."""
    given = _Options(*options)
    _check_cached(q, k_cache, v_cache, given)
    return _run(q, k_cache, v_cache, given, True)


def _run(q: Tensor, k: Tensor, v: Tensor, options: Any, lse: bool, out: Optional[Tensor] = None) -> Pair:
    """On checked tensors [batch, tokens, heads, head_dim], or pages: prepares, and copies what kernels cannot
    read. Without `lse` the second result means nothing. `out` is written where it is given, and returned."""
    if q.is_meta or not q.numel():
        return _results(q)
    if not k.numel():
        out, sums = _results(q)
        sums.fill_(-math.inf)
        return out.zero_(), sums if options.sinks is None else sums.copy_(options.sinks[:, None])
    batch, q_len, heads, head_dim = q.shape
    page_size = 0 if options.page_table is None else k.shape[1]
    kv_len = _room(k, options) if options.kv_len is None else options.kv_len
    decoded = 0 if q_len > MOST_DECODED else 1 << (q_len - 1).bit_length()
    kind = _Kind(
        heads, k.shape[2], head_dim, DTYPES[q.dtype], "fp8" if k.dtype == FP8 else "same", options.causal,
        options.window, options.softcap > 0, options.sinks is not None, lse, options.kv_lengths is not None, page_size, decoded,
    )  # fmt: skip
    with on(q.get_device()):
        operator = _PREPARED.for_call(kind, q.get_device(), (batch, q_len, kv_len))
        k, v = readable_heads(k), readable_heads(v)
        if decoded and k.stride() != v.stride():  # which the kernels for a cache need to be the same
            k, v = k.contiguous(), v.contiguous()
        found = operator(
            readable_heads(q), k, v, kv_lengths=compact(options.kv_lengths),
            page_table=compact(options.page_table), kv_len=kv_len, k_scale=compact(options.k_scale),
            v_scale=compact(options.v_scale), sinks=compact(options.sinks), scale=options.scale,
            softcap=options.softcap or None, out=out,
        )  # fmt: skip
    return found if lse else (found, found)


def _results(q: Tensor) -> Pair:
    """out and lse for q [batch, q_len, heads, head_dim]."""
    batch, q_len, heads, _ = q.shape
    return q.new_empty(q.shape), q.new_empty((batch, heads, q_len), dtype=torch.float32)


def _room(k: Tensor, options: Any) -> int:
    """Keys that a sequence can have."""
    return k.shape[1] if options.page_table is None else k.shape[1] * options.page_table.shape[1]


# Checks, of fake tensors, too: they raise TypeError or ValueError.


def _check_attention(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool,
    scale: Optional[float], enable_gqa: bool,
) -> None:  # fmt: skip
    if dropout_p:
        raise ValueError(f"dropout_p: {dropout_p}; allowed is 0")
    check_query(q, ("batch", "heads", "q_len", "head_dim"))
    batch, heads, q_len, head_dim = q.shape
    check_tensor(q, "k", k, (batch, "kv_heads", "kv_len", head_dim))
    check_tensor(q, "v", v, tuple(k.shape))
    kv_heads, kv_len = k.shape[1], k.shape[2]
    check_groups(heads, kv_heads)
    if heads != kv_heads and not enable_gqa:
        raise ValueError(f"enable_gqa: False; needed is True, as q has {heads} heads and k has {kv_heads}")
    check_positive("scale", scale)
    if attn_mask is not None:
        _check_mask(q, attn_mask, is_causal, (batch, heads, q_len, kv_len))


def _check_mask(q: Tensor, mask: Tensor, is_causal: bool, sizes: Tuple[Any, ...]) -> None:
    """It has a shape that can be broadcast to these sizes."""
    if is_causal:
        raise ValueError("attn_mask: it is given; allowed is None where is_causal is True")
    if mask.device != q.device:
        raise ValueError(f"attn_mask: it is on device '{mask.device}'; allowed is that of q, '{q.device}'")
    if mask.dtype not in (torch.bool, q.dtype):
        raise TypeError(f"attn_mask: its dtype is {mask.dtype}; allowed are torch.bool and {q.dtype}, that of q")
    shape = tuple(mask.shape)
    fits = 2 <= len(shape) <= 4 and all(one == 1 or one == size for one, size in zip(shape[::-1], sizes[::-1]))
    if not fits:
        allowed = ", ".join(map(str, sizes))
        raise ValueError(f"attn_mask: its shape is {list(shape)}; allowed is [{allowed}], or what broadcasts to it")


def _check_cached(q: Tensor, k: Tensor, v: Tensor, options: Any) -> None:
    check_query(q, ("batch", "q_len", "heads", "head_dim"))
    batch, _, heads, head_dim = q.shape
    paged = options.page_table is not None
    outer = ("pages", "page_size") if paged else (batch, "kv_len")
    check_tensor(q, "k_cache", k, (*outer, "kv_heads", head_dim), q.dtype, FP8)
    check_tensor(q, "v_cache", v, tuple(k.shape), k.dtype)
    check_groups(heads, k.shape[2])
    check_scales(q, k, options.k_scale, options.v_scale, k.shape[2])
    check_option(q, "kv_lengths", options.kv_lengths, None, "", (batch,), torch.int32)
    check_option(q, "page_table", options.page_table, None, "", (batch, "pages"), torch.int32)
    check_option(q, "sinks", options.sinks, None, "", (heads,), torch.float32)
    if options.kv_len is not None and not 0 <= options.kv_len <= _room(k, options):
        raise ValueError(f"kv_len: {options.kv_len}; allowed are 0 to {_room(k, options)}, its room")
    if options.window < 0 or (options.window and not options.causal):
        raise ValueError(f"window: {options.window}; allowed are 0 and, where causal is True, more")
    if not 0 <= options.softcap < math.inf:
        raise ValueError(f"softcap: {options.softcap}; allowed are 0, which means none, and more")
    check_positive("scale", options.scale)


# What the operators return for tensors without memory: the same checks, shapes, dtypes and strides.


def attention_fake(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Optional[float] = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    _check_attention(q, k, v, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    batch, heads, q_len, head_dim = q.shape
    return q.new_empty((batch, q_len, heads, head_dim)).transpose(1, 2)


def attention_with_cache_fake(q: Tensor, k_cache: Tensor, v_cache: Tensor, *options: Any) -> Tensor:
    _check_cached(q, k_cache, v_cache, _Options(*options))
    return _results(q)[0]


def attention_with_cache_lse_fake(q: Tensor, k_cache: Tensor, v_cache: Tensor, *options: Any) -> Pair:
    _check_cached(q, k_cache, v_cache, _Options(*options))
    return _results(q)

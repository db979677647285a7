"""What PyTorch's attention operators of Hone share: checks of tensors of heads, fake ones, too, and how they
have to lie for kernels."""

from __future__ import annotations

import ast
import collections
import math
from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from .._native.arrays import has_sizes
from .prepared import ALIGNMENT, DTYPES

FP8 = torch.float8_e4m3fn
Sizes = Tuple[Any, ...]  # a word allows any size


def options_of(schema: str) -> Any:
    """A NamedTuple of the arguments of a call behind v_cache, with their defaults."""
    text = schema.partition(" v_cache, ")[2].partition(")")[0]
    pieces = [piece.rpartition(" ")[2].partition("=") for piece in text.split(", ")]
    defaults = [ast.literal_eval(value) for _, mark, value in pieces if mark]
    return collections.namedtuple("Options", [name for name, _, _ in pieces], defaults=defaults)


def check_query(q: Tensor, sizes: Sizes) -> None:
    """Raises TypeError or ValueError for a q that no kernel takes."""
    if q.device.type not in ("cuda", "meta"):
        raise ValueError(f"q: it is on device '{q.device}'; allowed are CUDA devices")
    check_tensor(q, "q", q, sizes, *DTYPES)


def check_tensor(q: Tensor, name: str, tensor: Tensor, sizes: Sizes, *dtypes: torch.dtype) -> None:
    """Raises TypeError or ValueError for a tensor of another device than q's, dtype (none given: q's) or
    shape."""
    if tensor.device != q.device:
        raise ValueError(f"{name}: it is on device '{tensor.device}'; allowed is that of q, '{q.device}'")
    allowed = dtypes or (q.dtype,)
    if tensor.dtype not in allowed:
        raise TypeError(f"{name}: its dtype is {tensor.dtype}; allowed is {' or '.join(map(str, allowed))}")
    if not has_sizes(tensor.shape, sizes):
        allowed_sizes = ", ".join(map(str, sizes))
        raise ValueError(f"{name}: its shape is {list(tensor.shape)}; allowed is [{allowed_sizes}]")


def check_option(
    q: Tensor, name: str, tensor: Optional[Tensor], wanted: Optional[bool], why: str, sizes: Sizes,
    *dtypes: torch.dtype,
) -> None:  # fmt: skip
    """The same for a tensor that a call has to have, or must not (`wanted` None: as it likes); `why` says
    when it has."""
    if tensor is not None and wanted is False:
        raise ValueError(f"{name}: it is given; it goes {why}")
    if tensor is None and wanted:
        raise ValueError(f"{name}: it is missing; it is needed {why}")
    if tensor is not None:
        check_tensor(q, name, tensor, sizes, *dtypes)


def check_scales(
    q: Tensor, cache: Tensor, k_scale: Optional[Tensor], v_scale: Optional[Tensor], kv_heads: int
) -> None:
    for name, scale in (("k_scale", k_scale), ("v_scale", v_scale)):
        check_option(q, name, scale, cache.dtype == FP8, "with a cache of fp8", (kv_heads,), torch.float32)


def check_groups(heads: int, kv_heads: int) -> None:
    if kv_heads == 0 or heads % kv_heads:
        raise ValueError(f"q: it has {heads} heads; allowed are multiples of those of k and v, {kv_heads}")


def check_positive(name: str, value: Optional[float]) -> None:
    if value is not None and not 0 < value < math.inf:
        raise ValueError(f"{name}: {value}; allowed are numbers above 0")


def reads_heads(x: Tensor) -> bool:
    """Whether kernels can read x [..., head_dim] where it lies. Where heads are no multiple of 16 bytes,
    whole ones between neighbours are enough."""
    head_dim, item = x.shape[-1], x.element_size()
    steps = [stride for size, stride in zip(x.shape[:-1], x.stride()[:-1]) if size > 1]
    return (
        (x.stride(-1) == 1 or head_dim == 1)
        and all(step > 0 and (step * item % ALIGNMENT == 0 or step % head_dim == 0) for step in steps)
        and x.data_ptr() % ALIGNMENT == 0
        and not x.is_neg()
    )


def readable_heads(x: Tensor) -> Tensor:
    """x, or a contiguous copy where kernels cannot read it."""
    return x if reads_heads(x) else x.resolve_neg().clone(memory_format=torch.contiguous_format)


def compact(tensor: Optional[Tensor]) -> Optional[Tensor]:
    return None if tensor is None else tensor.contiguous()

"""What quantized linear layers and feed-forward networks of PyTorch ask of their arguments, on fake tensors,
too: every check raises TypeError or ValueError."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from .._native.structs import ACTIVATIONS, QUANT_FORMATS
from .._operators.stored import StoredWeight
from .prepared import CODES

RESULTS = {"bf16": torch.bfloat16, "fp16": torch.float16}
# The formats of codes that are multiplied with codes.
X_CODES = {"w8a8": CODES["int8"], "fp8": CODES["fp8"]}


class Source(NamedTuple):
    """How x comes."""

    dtype: str  # of the result
    quantized: bool
    one_scale: bool


class Weight(NamedTuple):
    """The tensors of a stored weight [rows, columns], and what their arguments are called."""

    rows: int
    columns: int
    codes: Tensor
    scales: Tensor
    zeros: Optional[Tensor]
    names: Tuple[str, str, str] = ("codes", "scales", "zeros")


def check_words(format: str, group: int, activation: str) -> None:
    for name, value, allowed in (("format", format, QUANT_FORMATS), ("activation", activation, ACTIVATIONS)):
        if value not in allowed:
            raise ValueError(f"{name}: {value!r}; allowed are {', '.join(allowed)}")
    if group < 0:
        raise ValueError(f"group: {group}; allowed are numbers from 0")


def check_size(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{name}: {value}; allowed are numbers from 1")


def check_x(
    x: Tensor, last: str, format: str, group: int, x_scales: Optional[Tensor], out_dtype: Optional[str]
) -> Source:
    """What x [..., last] is given as."""
    if x.device.type not in ("cuda", "meta"):
        raise ValueError(f"x: it is on device '{x.device}'; allowed are CUDA devices")
    if x.dim() == 0 or x.shape[-1] == 0:
        raise ValueError(f"x: its shape is {list(x.shape)}; allowed is [..., {last}], {last} from 1")
    codes = X_CODES.get(format)
    if x.dtype not in (*RESULTS.values(), codes):
        allowed = ", ".join(str(dtype) for dtype in (*RESULTS.values(), codes) if dtype is not None)
        raise TypeError(f"x: its dtype is {x.dtype}; allowed with format {format!r} are {allowed}")
    if (x.dtype == codes) != (x_scales is not None):
        found = "missing" if x.dtype == codes else "given"
        raise ValueError(f"x_scales: it is {found}; it goes with an x of codes, and x is {x.dtype}")
    dtype = _result(x, x.dtype == codes, out_dtype)
    return Source(dtype, x.dtype == codes, x_scales is not None and _check_x_scales(x, x_scales, group))


def _result(x: Tensor, quantized: bool, out_dtype: Optional[str]) -> str:
    """The dtype of the result, which only codes leave open."""
    if quantized:
        if out_dtype not in (None, *RESULTS):
            raise ValueError(f"out_dtype: {out_dtype!r}; allowed are {', '.join(RESULTS)}")
        return out_dtype or "bf16"
    dtype = "bf16" if x.dtype == torch.bfloat16 else "fp16"
    if out_dtype not in (None, dtype):
        raise ValueError(f"out_dtype: {out_dtype!r}; allowed is {dtype!r}, that of x, or None")
    return dtype


def _check_x_scales(x: Tensor, x_scales: Tensor, group: int) -> bool:
    """Whether there is one scale for all tokens."""
    shape: Tuple[int, ...] = x.shape[:-1]
    if group:
        shape = (*shape, x.shape[-1] // group)
    elif x_scales.shape != shape and x_scales.numel() == 1:
        check_tensor(x, "x_scales", x_scales, tuple(x_scales.shape), torch.float32)
        return True
    check_tensor(x, "x_scales", x_scales, shape, torch.float32)
    return False


def _make_shapes(
    rows: int, columns: int, format: str, group: int, one_scale: bool
) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """The shapes of codes and of scales."""
    stored = StoredWeight(rows, columns, format, group, one_scale)
    return stored.codes_shape, stored.scales_shape


_known_shapes = functools.lru_cache(maxsize=None)(_make_shapes)


def has_one_scale(format: str, group: int, *weights: Weight) -> bool:
    """Whether each weight has one scale, and not one for each of its rows."""
    return (
        format in X_CODES
        and not group
        and all(tuple(weight.scales.shape) == (1,) for weight in weights)
        and any(weight.rows != 1 for weight in weights)
    )


def check_weight(x: Tensor, weight: Weight, format: str, group: int, one_scale: bool, dtype: str) -> None:
    """Raises TypeError or ValueError for a weight that an operator of `dtype` does not take."""
    symbols = type(weight.rows) is not int or type(weight.columns) is not int
    shapes: Any = _make_shapes if symbols else _known_shapes  # symbols are not to be kept
    codes_shape, scales_shape = shapes(weight.rows, weight.columns, format, group, one_scale)
    codes, scales, zeros = weight.names
    check_tensor(x, codes, weight.codes, codes_shape, X_CODES.get(format, torch.uint8))
    scales_dtype = RESULTS[dtype] if format == "w4a16" else torch.float32
    check_tensor(x, scales, weight.scales, scales_shape, scales_dtype)
    if weight.zeros is not None:
        if format != "w4a16":
            raise ValueError(f"{zeros}: it is given; allowed is None with format {format!r}")
        check_tensor(x, zeros, weight.zeros, scales_shape, torch.uint8)


def check_norm(
    x: Tensor, norm_weight: Optional[Tensor], epsilon: Optional[float], source: Source
) -> None:
    if norm_weight is not None:
        if source.quantized:
            raise ValueError("norm_weight: it is given; allowed is None with an x of codes")
        check_tensor(x, "norm_weight", norm_weight, x.shape[-1:], RESULTS[source.dtype])
    if (norm_weight is None) != (epsilon is None):
        raise ValueError(f"epsilon: {epsilon}; it goes with norm_weight")


def check_tensor(x: Tensor, name: str, tensor: Tensor, shape: Tuple[int, ...], dtype: torch.dtype) -> None:
    if tensor.device != x.device:
        raise ValueError(f"{name}: it is on device '{tensor.device}'; allowed is that of x, '{x.device}'")
    if tensor.dtype != dtype:
        raise TypeError(f"{name}: its dtype is {tensor.dtype}; allowed is {dtype}")
    if tuple(tensor.shape) != tuple(shape):
        raise ValueError(
            f"{name}: its shape is {list(tensor.shape)}; allowed is {list(shape)}, as x is {list(x.shape)}"
        )

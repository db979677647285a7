"""What PyTorch's quantised linear layer of Hone does: on CUDA tensors, and on fake ones that have only
shapes. As _torch_linear.py."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

import hone

from ._quantized_structs import QUANT_FORMATS
from ._structs import ACTIVATIONS
from ._torch_prepared import (
    CODES,
    FIRST_ROWS,
    PreparedBySize,
    on,
    pointer,
    raw_stream,
    readable_rows,
    readable_vector,
    workspace_for,
)
from .quantized_descriptions import StoredWeight

RESULTS = {"bf16": torch.bfloat16, "fp16": torch.float16}
# Of codes that are multiplied with codes.
_X_CODES = {"w8a8": CODES["int8"], "fp8": CODES["fp8"]}


class _Kind(NamedTuple):
    """What a QuantizedLinear is but for the tokens of its calls."""

    in_features: int
    out_features: int
    format: str
    group: int
    dtype: str
    zeros: bool
    one_scale: bool
    quantised_x: bool
    one_x_scale: bool
    activation: str
    bias: bool
    residual: bool
    norm: bool


def _describe(kind: _Kind, most: Tuple[int, ...]) -> hone.QuantizedLinear:
    return hone.QuantizedLinear(**kind._asdict(), max_tokens=most[0])


_PREPARED = PreparedBySize("quantized_linear", _describe, (FIRST_ROWS,))


class _Options(NamedTuple):
    """The arguments of quantized_linear after its first three."""

    format: str
    group: int
    out_features: int
    activation: str
    zeros: Optional[Tensor] = None
    bias: Optional[Tensor] = None
    residual: Optional[Tensor] = None
    x_scales: Optional[Tensor] = None
    norm_weight: Optional[Tensor] = None
    epsilon: Optional[float] = None
    out_dtype: Optional[str] = None


def quantized_linear(x: Tensor, codes: Tensor, scales: Tensor, *options: Any) -> Tensor:
    """x [..., in] of bf16, fp16 or codes; codes, scales and zeros as a QuantizedLinear stores them; bias
    [out], residual [..., out], norm_weight [in] -> [..., out]."""
    given = _Options(*options)
    kind = _check(x, codes, scales, given)
    out = x.new_empty((*x.shape[:-1], kind.out_features), dtype=RESULTS[kind.dtype])
    if not x.numel() or x.is_meta:
        return out
    tokens, device = x.numel() // kind.in_features, x.get_device()
    with on(device):
        operator = _PREPARED.for_call(kind, device, (tokens,))
        source, x_stride = readable_rows(x)
        x_scales, x_scale_stride = _readable_x_scales(given.x_scales, kind)
        in_rows = kind.format in _X_CODES
        weight, weight_stride = readable_rows(codes) if in_rows else (readable_vector(codes), 0)
        residual, residual_stride = (None, 0) if given.residual is None else readable_rows(given.residual)
        vectors = [_readable(tensor) for tensor in (scales, given.zeros, given.bias, given.norm_weight)]
        scales_pointer, zeros, bias, norm_weight = map(pointer, vectors)
        workspace = workspace_for(operator, tokens, x)
        operator.run_pointers(
            raw_stream(device), tokens, source.data_ptr(), weight.data_ptr(), scales_pointer, out.data_ptr(),
            zeros=zeros, x_scales=pointer(x_scales), norm_weight=norm_weight, bias=bias,
            residual=pointer(residual), workspace=pointer(workspace), x_stride=x_stride,
            x_scale_stride=x_scale_stride, weight_stride=weight_stride, residual_stride=residual_stride,
            epsilon=given.epsilon or 0.0,
        )  # fmt: skip
    return out


def quantized_linear_fake(x: Tensor, codes: Tensor, scales: Tensor, *options: Any) -> Tensor:
    kind = _check(x, codes, scales, _Options(*options))
    return x.new_empty((*x.shape[:-1], kind.out_features), dtype=RESULTS[kind.dtype])


def _readable(tensor: Optional[Tensor]) -> Optional[Tensor]:
    return None if tensor is None else readable_vector(tensor)


def _readable_x_scales(x_scales: Optional[Tensor], kind: _Kind) -> Tuple[Optional[Tensor], int]:
    if x_scales is None or not kind.group:
        return _readable(x_scales), 0
    return readable_rows(x_scales)


# Checks, of fake tensors, too: they raise TypeError or ValueError.


def _make_shapes(
    rows: int, columns: int, format: str, group: int, one_scale: bool
) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """Of codes and of scales."""
    stored = StoredWeight(rows, columns, format, group, one_scale)
    return stored.codes_shape, stored.scales_shape


_known_shapes = functools.lru_cache(maxsize=None)(_make_shapes)


def _check(x: Tensor, codes: Tensor, scales: Tensor, given: _Options) -> _Kind:
    """What the call asks for."""
    _check_words(given)
    quantised_x = _check_x(x, given)
    out, kind = given.out_features, given.format
    dtype = _result(x, given, quantised_x)
    one_scale = kind in _X_CODES and not given.group and tuple(scales.shape) == (1,) and out != 1
    shapes = _known_shapes if type(x.shape[-1]) is int else _make_shapes  # symbols are not to be kept
    codes_shape, scales_shape = shapes(out, x.shape[-1], kind, given.group, one_scale)
    _check_tensor(x, "codes", codes, codes_shape, _X_CODES.get(kind, torch.uint8))
    scales_dtype = RESULTS[dtype] if kind == "w4a16" else torch.float32
    _check_tensor(x, "scales", scales, scales_shape, scales_dtype)
    if given.zeros is not None:
        if kind != "w4a16":
            raise ValueError(f"zeros: it is given; allowed is None with format {kind!r}")
        _check_tensor(x, "zeros", given.zeros, scales_shape, torch.uint8)
    for name, tensor, shape in (
        ("bias", given.bias, (out,)),
        ("residual", given.residual, (*x.shape[:-1], out)),
        ("norm_weight", given.norm_weight, x.shape[-1:]),
    ):
        if tensor is not None:
            _check_tensor(x, name, tensor, shape, RESULTS[dtype])
    if (given.norm_weight is None) != (given.epsilon is None):
        raise ValueError(f"epsilon: {given.epsilon}; it goes with norm_weight")
    return _Kind(
        x.shape[-1], out, kind, given.group, dtype, given.zeros is not None, one_scale, quantised_x,
        quantised_x and _check_x_scales(x, given), given.activation, given.bias is not None,
        given.residual is not None, given.norm_weight is not None,
    )  # fmt: skip


def _check_words(given: _Options) -> None:
    for name, value, allowed in (
        ("format", given.format, QUANT_FORMATS),
        ("activation", given.activation, ACTIVATIONS),
    ):
        if value not in allowed:
            raise ValueError(f"{name}: {value!r}; allowed are {', '.join(allowed)}")
    if given.out_features < 1:
        raise ValueError(f"out_features: {given.out_features}; allowed are numbers from 1")
    if given.group < 0:
        raise ValueError(f"group: {given.group}; allowed are numbers from 0")


def _check_x(x: Tensor, given: _Options) -> bool:
    """Whether x holds codes."""
    if x.device.type not in ("cuda", "meta"):
        raise ValueError(f"x: it is on device '{x.device}'; allowed are CUDA devices")
    if x.dim() == 0 or x.shape[-1] == 0:
        raise ValueError(f"x: its shape is {list(x.shape)}; allowed is [..., in], in from 1")
    codes = _X_CODES.get(given.format)
    if x.dtype not in (*RESULTS.values(), codes):
        allowed = ", ".join(str(dtype) for dtype in (*RESULTS.values(), codes) if dtype is not None)
        raise TypeError(f"x: its dtype is {x.dtype}; allowed with format {given.format!r} are {allowed}")
    if (x.dtype == codes) != (given.x_scales is not None):
        found = "missing" if x.dtype == codes else "given"
        raise ValueError(f"x_scales: it is {found}; it goes with an x of codes, and x is {x.dtype}")
    return x.dtype == codes


def _result(x: Tensor, given: _Options, quantised_x: bool) -> str:
    """The dtype of the result, which only codes leave open."""
    if quantised_x:
        if given.out_dtype not in (None, *RESULTS):
            raise ValueError(f"out_dtype: {given.out_dtype!r}; allowed are {', '.join(RESULTS)}")
        return given.out_dtype or "bf16"
    dtype = "bf16" if x.dtype == torch.bfloat16 else "fp16"
    if given.out_dtype not in (None, dtype):
        raise ValueError(f"out_dtype: {given.out_dtype!r}; allowed is {dtype!r}, that of x, or None")
    return dtype


def _check_x_scales(x: Tensor, given: _Options) -> bool:
    """Whether there is one scale for all tokens."""
    assert given.x_scales is not None
    shape: Tuple[int, ...] = x.shape[:-1]
    if given.group:
        shape = (*shape, x.shape[-1] // given.group)
    elif given.x_scales.shape != shape and given.x_scales.numel() == 1:
        shape = tuple(given.x_scales.shape)
        _check_tensor(x, "x_scales", given.x_scales, shape, torch.float32)
        return True
    _check_tensor(x, "x_scales", given.x_scales, shape, torch.float32)
    return False


def _check_tensor(x: Tensor, name: str, tensor: Tensor, shape: Tuple[int, ...], dtype: torch.dtype) -> None:
    if tensor.device != x.device:
        raise ValueError(f"{name}: it is on device '{tensor.device}'; allowed is that of x, '{x.device}'")
    if tensor.dtype != dtype:
        raise TypeError(f"{name}: its dtype is {tensor.dtype}; allowed is {dtype}")
    if tuple(tensor.shape) != tuple(shape):
        raise ValueError(
            f"{name}: its shape is {list(tensor.shape)}; allowed is {list(shape)}, as x is {list(x.shape)}"
        )

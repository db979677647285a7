"""What PyTorch's linear layers of Hone do: on CUDA tensors, and on fake ones that have only shapes.

Called by the dispatcher (torch_ops.py), and by the autograd kernels (_torch_autograd.py). Nothing here
records gradients. Good calls are recognized by one look-up in a dict and a few attributes; every other call,
good or not, goes through ..._with_care(). May be called from any thread.
"""

from __future__ import annotations

import itertools
from typing import Any, Dict, Optional, Tuple

import torch
from torch import Tensor

import hone

from ._structs import ACTIVATIONS
from ._torch_prepared import (
    Prepared,
    check_like,
    check_x,
    current_device,
    fits,
    lies_well,
    on,
    pointer,
    raw_stream,
    readable_rows,
    readable_vector,
    workspace_for,
)

_FLAG = (False, True)


def _linear_operators(activation: str, bias: bool, residual: bool, norm: bool) -> Prepared:
    return Prepared(
        "linear",
        lambda shape, tokens, dtype: hone.Linear(
            shape[1], shape[0], max_tokens=tokens, dtype=dtype, activation=activation, bias=bias,
            residual=residual, norm=norm,
        ),
    )  # fmt: skip


def _ffn_operators(activation: str, gated: bool, bias: bool, residual: bool, norm: bool) -> Prepared:
    """Their weight is up, [intermediate, hidden]."""
    return Prepared(
        "fused_ffn",
        lambda shape, tokens, dtype: hone.FusedFfn(
            shape[1], shape[0], max_tokens=tokens, dtype=dtype, activation=activation, gated=gated, bias=bias,
            residual=residual, norm=norm,
        ),
    )  # fmt: skip


# By activation, bias, residual, norm.
_LINEAR: Dict[Tuple[Any, ...], Prepared] = {
    kind: _linear_operators(*kind) for kind in itertools.product(ACTIVATIONS, _FLAG, _FLAG, _FLAG)
}
# By activation, gated, bias, residual, norm.
_FFN: Dict[Tuple[Any, ...], Prepared] = {
    kind: _ffn_operators(*kind) for kind in itertools.product(ACTIVATIONS, _FLAG, _FLAG, _FLAG, _FLAG)
}


def _norm_fits(norm_weight: Optional[Tensor], epsilon: Optional[float], x: Tensor, device: int) -> bool:
    return (norm_weight is None) == (epsilon is None) and fits(norm_weight, x.dtype, device, x.shape[-1:])


def linear(
    x: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], activation: str,
    norm_weight: Optional[Tensor] = None, epsilon: Optional[float] = None,
) -> Tensor:  # fmt: skip
    """x [..., in], weight [out, in], bias [out], residual [..., out], norm_weight [in] -> [..., out]."""
    kind = (activation, bias is not None, residual is not None, norm_weight is not None)
    try:
        run, columns, most, device, operator = _LINEAR[kind][
            x.dtype, x.shape[-1], x.get_device(), weight.dtype, weight.shape, weight.get_device()
        ]
    except (KeyError, IndexError):
        return _linear_with_care(x, weight, bias, residual, activation, norm_weight, epsilon)
    tokens, dtype = x.numel() // columns, x.dtype
    row = weight.shape[:1]
    shape = x.shape[:-1] + row
    if (
        not 0 < tokens <= most
        or not (lies_well(x) and lies_well(weight))
        or not (fits(bias, dtype, device, row) and fits(residual, dtype, device, shape))
        or not _norm_fits(norm_weight, epsilon, x, device)
        or device != current_device()
    ):
        return _linear_with_care(x, weight, bias, residual, activation, norm_weight, epsilon)
    out = x.new_empty(shape)
    workspace = workspace_for(operator, tokens, x)
    run(
        raw_stream(device), tokens, x.data_ptr(), weight.data_ptr(), pointer(bias), pointer(residual),
        out.data_ptr(), pointer(workspace), 0, 0, 0, 0, pointer(norm_weight), epsilon or 0.0,
    )  # fmt: skip
    return out


def _linear_with_care(
    x: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], activation: str,
    norm_weight: Optional[Tensor], epsilon: Optional[float],
) -> Tensor:  # fmt: skip
    """On any tensors: checks, prepares, copies what kernels cannot read."""
    out = x.new_empty(_check_linear(x, weight, bias, residual, activation, norm_weight, epsilon))
    if not x.numel() or x.is_meta:
        return out
    operators = _LINEAR[activation, bias is not None, residual is not None, norm_weight is not None]
    run, columns, _, device, operator = operators.for_call(x, weight)
    tokens = x.numel() // columns
    with on(device):
        source, x_stride = readable_rows(x)
        weight, weight_stride = readable_rows(weight)
        bias = None if bias is None else readable_vector(bias)
        norm_weight = None if norm_weight is None else readable_vector(norm_weight)
        residual, residual_stride = (None, 0) if residual is None else readable_rows(residual)
        workspace = workspace_for(operator, tokens, x)
        run(
            raw_stream(device), tokens, source.data_ptr(), weight.data_ptr(), pointer(bias),
            pointer(residual), out.data_ptr(), pointer(workspace), x_stride, weight_stride, residual_stride,
            0, pointer(norm_weight), epsilon or 0.0,
        )  # fmt: skip
    return out


def fused_ffn(
    x: Tensor, gate: Optional[Tensor], up: Tensor, down: Tensor, up_bias: Optional[Tensor],
    down_bias: Optional[Tensor], residual: Optional[Tensor], activation: str,
    norm_weight: Optional[Tensor] = None, epsilon: Optional[float] = None,
) -> Tensor:  # fmt: skip
    """x and residual [..., hidden], gate and up [intermediate, hidden], down [hidden, intermediate], up_bias
    [intermediate], down_bias and norm_weight [hidden] -> like x."""
    kind = (activation, gate is not None, up_bias is not None, residual is not None, norm_weight is not None)
    try:
        run, columns, most, device, operator = _FFN[kind][
            x.dtype, x.shape[-1], x.get_device(), up.dtype, up.shape, up.get_device()
        ]
    except (KeyError, IndexError):
        return _ffn_with_care(
            x, gate, up, down, up_bias, down_bias, residual, activation, norm_weight, epsilon
        )
    tokens, dtype = x.numel() // columns, x.dtype
    if (
        not 0 < tokens <= most
        or (up_bias is None) != (down_bias is None)
        or not (lies_well(x) and lies_well(up))
        or not (fits(gate, dtype, device, up.shape) and fits(down, dtype, device, up.shape[::-1]))
        or not (fits(up_bias, dtype, device, up.shape[:1]) and fits(down_bias, dtype, device, x.shape[-1:]))
        or not (fits(residual, dtype, device, x.shape) and _norm_fits(norm_weight, epsilon, x, device))
        or device != current_device()
    ):
        return _ffn_with_care(
            x, gate, up, down, up_bias, down_bias, residual, activation, norm_weight, epsilon
        )
    out = x.new_empty(x.shape)
    workspace = workspace_for(operator, tokens, x)
    run(
        raw_stream(device), tokens, x.data_ptr(), pointer(gate), up.data_ptr(), pointer(up_bias),
        down.data_ptr(), pointer(down_bias), pointer(residual), out.data_ptr(), pointer(workspace), 0, 0, 0,
        pointer(norm_weight), epsilon or 0.0,
    )  # fmt: skip
    return out


def _ffn_with_care(
    x: Tensor, gate: Optional[Tensor], up: Tensor, down: Tensor, up_bias: Optional[Tensor],
    down_bias: Optional[Tensor], residual: Optional[Tensor], activation: str, norm_weight: Optional[Tensor],
    epsilon: Optional[float],
) -> Tensor:  # fmt: skip
    """On any tensors: checks, prepares, copies what kernels cannot read."""
    _check_ffn(x, gate, up, down, up_bias, down_bias, residual, activation, norm_weight, epsilon)
    out = x.new_empty(x.shape)
    if not x.numel() or x.is_meta:
        return out
    kind = (activation, gate is not None, up_bias is not None, residual is not None, norm_weight is not None)
    operators = _FFN[kind]
    run, columns, _, device, operator = operators.for_call(x, up)
    tokens = x.numel() // columns
    with on(device):
        source, x_stride = readable_rows(x)
        *weights, norm_weight = [
            None if weight is None else readable_vector(weight)
            for weight in (gate, up, up_bias, down, down_bias, norm_weight)
        ]
        residual, residual_stride = (None, 0) if residual is None else readable_rows(residual)
        workspace = workspace_for(operator, tokens, x)
        run(
            raw_stream(device), tokens, source.data_ptr(), *map(pointer, weights), pointer(residual),
            out.data_ptr(), pointer(workspace), x_stride, residual_stride, 0, pointer(norm_weight),
            epsilon or 0.0,
        )  # fmt: skip
    return out


# Checks, of fake tensors, too: they raise TypeError or ValueError.


def _check_activation(activation: str, gated: bool = False) -> None:
    """A gate without one would be a plain product."""
    allowed = [name for name in ACTIVATIONS if not (gated and name == "none")]
    if activation not in allowed:
        raise ValueError(
            f"activation: {activation!r}; allowed are {', '.join(allowed)}{' with a gate' if gated else ''}"
        )


def _check_weight(x: Tensor, name: str, weight: Tensor) -> None:
    """Of a first layer: its rows may be any from 1."""
    if weight.dim() != 2 or weight.shape[0] == 0:
        raise ValueError(
            f"{name}: its shape is {list(weight.shape)}; allowed is [out, {x.shape[-1]}], out from 1"
        )
    check_like(x, name, weight, (weight.shape[0], x.shape[-1]))


def _check_norm(x: Tensor, norm_weight: Optional[Tensor], epsilon: Optional[float]) -> None:
    if norm_weight is None:
        if epsilon is not None:
            raise ValueError(f"epsilon: {epsilon}; allowed is None without a norm_weight")
        return
    check_like(x, "norm_weight", norm_weight, x.shape[-1:])
    if epsilon is None:
        raise ValueError("epsilon: it is missing; it is needed with norm_weight")


def _check_linear(
    x: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], activation: str,
    norm_weight: Optional[Tensor], epsilon: Optional[float],
) -> Tuple[int, ...]:  # fmt: skip
    """Returns the shape of the result."""
    _check_activation(activation)
    check_x(x, "in")
    _check_weight(x, "weight", weight)
    shape = (*x.shape[:-1], weight.shape[0])
    if bias is not None:
        check_like(x, "bias", bias, (weight.shape[0],))
    if residual is not None:
        check_like(x, "residual", residual, shape)
    _check_norm(x, norm_weight, epsilon)
    return shape


def _check_ffn(
    x: Tensor, gate: Optional[Tensor], up: Tensor, down: Tensor, up_bias: Optional[Tensor],
    down_bias: Optional[Tensor], residual: Optional[Tensor], activation: str, norm_weight: Optional[Tensor],
    epsilon: Optional[float],
) -> None:  # fmt: skip
    _check_activation(activation, gated=gate is not None)
    check_x(x, "hidden")
    _check_weight(x, "up", up)
    intermediate, hidden = up.shape
    check_like(x, "down", down, (hidden, intermediate))
    if gate is not None:
        check_like(x, "gate", gate, (intermediate, hidden))
        if up_bias is not None or down_bias is not None:
            name = "down_bias" if up_bias is None else "up_bias"
            raise ValueError(f"{name}: it is given; allowed is None with a gate")
    if (up_bias is None) != (down_bias is None):
        name, other = ("up_bias", "down_bias") if up_bias is None else ("down_bias", "up_bias")
        raise ValueError(f"{name}: it is missing; it is needed with {other}")
    if up_bias is not None and down_bias is not None:
        check_like(x, "up_bias", up_bias, (intermediate,))
        check_like(x, "down_bias", down_bias, (hidden,))
    if residual is not None:
        check_like(x, "residual", residual, x.shape)
    _check_norm(x, norm_weight, epsilon)


# What the operators return for tensors without memory: the same checks, shapes, dtypes and strides.


def linear_fake(
    x: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], activation: str,
    norm_weight: Optional[Tensor] = None, epsilon: Optional[float] = None,
) -> Tensor:  # fmt: skip
    return x.new_empty(_check_linear(x, weight, bias, residual, activation, norm_weight, epsilon))


def fused_ffn_fake(
    x: Tensor, gate: Optional[Tensor], up: Tensor, down: Tensor, up_bias: Optional[Tensor],
    down_bias: Optional[Tensor], residual: Optional[Tensor], activation: str,
    norm_weight: Optional[Tensor] = None, epsilon: Optional[float] = None,
) -> Tensor:  # fmt: skip
    _check_ffn(x, gate, up, down, up_bias, down_bias, residual, activation, norm_weight, epsilon)
    return x.new_empty(x.shape)

"""What PyTorch's norms of Hone do: on CUDA tensors, and on fake ones that have only shapes.

Called by the dispatcher (torch_ops.py), and by the autograd kernels (_torch_autograd.py). Nothing here
records gradients. rms_norm and rms_norm_residual recognize a good call by one look-up in a dict; every other
call, good or not, goes through _with_care(). May be called from any thread.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from ._torch_prepared import (
    ALIGNMENT,
    CODES,
    Prepared,
    backward_operators,
    check,
    check_output,
    current_device,
    fresh,
    layer_norm_operators,
    on,
    pointer,
    raw_stream,
    readable_rows,
    readable_vector,
    rms_norm_operators,
    workspace_for,
)

Pair = Tuple[Tensor, Tensor]
Triple = Tuple[Tensor, Tensor, Tensor]

_RMS_NORM = rms_norm_operators("rms_norm", residual=False)
_RMS_NORM_RESIDUAL = rms_norm_operators("rms_norm_residual", residual=True)
_QUANTIZED = {o: rms_norm_operators("rms_norm_quantized", residual=False, output=o) for o in CODES}
_RESIDUAL_QUANTIZED = {
    o: rms_norm_operators("rms_norm_residual_quantized", residual=True, output=o) for o in CODES
}
_LAYER_NORM = {b: layer_norm_operators("layer_norm", residual=False, bias=b) for b in (False, True)}
_LAYER_NORM_RESIDUAL = {
    b: layer_norm_operators("layer_norm_residual", residual=True, bias=b) for b in (False, True)
}
_BACKWARD = {residual: backward_operators(residual=residual) for residual in (False, True)}

_empty_like = torch.empty_like


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """x [..., hidden], weight [hidden] -> y like x."""
    try:
        run, hidden, most, device, _ = _RMS_NORM[
            x.dtype, x.shape[-1], x.get_device(), weight.dtype, weight.shape, weight.get_device()
        ]
    except (KeyError, IndexError):
        return _with_care(_RMS_NORM, x, weight, epsilon)[0]
    rows = x.numel() // hidden
    x_pointer, weight_pointer = x.data_ptr(), weight.data_ptr()
    if (
        (x_pointer | weight_pointer) % ALIGNMENT
        or not 0 < rows <= most
        or not (x.is_contiguous() and weight.is_contiguous())
        or device != current_device()
    ):
        return _with_care(_RMS_NORM, x, weight, epsilon)[0]
    out = _empty_like(x)
    run(
        raw_stream(device), rows, x_pointer, 0, weight_pointer, 0, out.data_ptr(), 0, 0, 0, 0, 0, 0, epsilon
    )
    return out


def rms_norm_residual(x: Tensor, residual: Tensor, weight: Tensor, epsilon: float) -> Pair:
    """x and residual [..., hidden], weight [hidden] -> (y, x + residual), both like x."""
    try:
        run, hidden, most, device, _ = _RMS_NORM_RESIDUAL[
            x.dtype, x.shape[-1], x.get_device(), weight.dtype, weight.shape, weight.get_device()
        ]
    except (KeyError, IndexError):
        return _with_care(_RMS_NORM_RESIDUAL, x, weight, epsilon, residual=residual)
    rows = x.numel() // hidden
    x_pointer, residual_pointer, weight_pointer = x.data_ptr(), residual.data_ptr(), weight.data_ptr()
    if (
        (x_pointer | residual_pointer | weight_pointer) % ALIGNMENT
        or not 0 < rows <= most
        or not (x.is_contiguous() and residual.is_contiguous() and weight.is_contiguous())
        or residual.shape != x.shape
        or residual.dtype != x.dtype
        or residual.get_device() != device
        or device != current_device()
    ):
        return _with_care(_RMS_NORM_RESIDUAL, x, weight, epsilon, residual=residual)
    out, total = _empty_like(x), _empty_like(x)
    run(
        raw_stream(device), rows, x_pointer, residual_pointer, weight_pointer, 0, out.data_ptr(),
        total.data_ptr(), 0, 0, 0, 0, 0, epsilon,
    )  # fmt: skip
    return out, total


def rms_norm_quantized(x: Tensor, weight: Tensor, epsilon: float, output: str) -> Pair:
    """-> (codes like x of int8 or fp8, scale x.shape[:-1] of float32): codes * scale is about y."""
    codes = check_output(output)
    return _with_care(_QUANTIZED[output], x, weight, epsilon, codes=codes)


def rms_norm_residual_quantized(
    x: Tensor, residual: Tensor, weight: Tensor, epsilon: float, output: str
) -> Triple:
    """-> (codes, x + residual like x, scale)."""
    codes = check_output(output)
    return _with_care(_RESIDUAL_QUANTIZED[output], x, weight, epsilon, residual=residual, codes=codes)


def layer_norm(x: Tensor, weight: Tensor, bias: Optional[Tensor], epsilon: float) -> Tensor:
    """x [..., hidden], weight and bias [hidden] -> y like x."""
    return _with_care(_LAYER_NORM[bias is not None], x, weight, epsilon, bias=bias)[0]


def layer_norm_residual(
    x: Tensor, residual: Tensor, weight: Tensor, bias: Optional[Tensor], epsilon: float
) -> Pair:
    """-> (y, x + residual), both like x."""
    operators = _LAYER_NORM_RESIDUAL[bias is not None]
    return _with_care(operators, x, weight, epsilon, residual=residual, bias=bias)


def rms_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor, dsum: Optional[Tensor], epsilon: float
) -> Pair:
    """dy, dsum and x (what was normalized) [..., hidden], weight [hidden] -> (dx like x, dweight like it)."""
    check(x, weight, dy=dy, dsum=dsum)
    if not x.numel() or x.is_meta:
        return fresh(x), torch.zeros_like(weight, memory_format=torch.contiguous_format)
    run, hidden, _, device, operator = _BACKWARD[dsum is not None].for_call(x, weight)
    dx, dweight = fresh(x), fresh(weight)
    rows = x.numel() // hidden
    with on(device):
        dy, dy_stride = readable_rows(dy)
        source, x_stride = readable_rows(x)
        added, dsum_stride = (None, 0) if dsum is None else readable_rows(dsum)
        weight = readable_vector(weight)
        workspace = workspace_for(operator, rows, x)
        run(
            raw_stream(device), rows, dy.data_ptr(), source.data_ptr(), weight.data_ptr(), pointer(added),
            dx.data_ptr(), dweight.data_ptr(), pointer(workspace), dy_stride, x_stride, dsum_stride, 0,
            epsilon,
        )  # fmt: skip
    return dx, dweight


def _with_care(
    operators: Prepared, x: Tensor, weight: Tensor, epsilon: float, *, residual: Optional[Tensor] = None,
    bias: Optional[Tensor] = None, codes: Optional[torch.dtype] = None,
) -> Tuple[Any, ...]:  # fmt: skip
    """Any forward operator on any tensors: checks, prepares, copies what kernels cannot read.

    Returns out, the sum where there is a residual, and the scale where there are codes. Tensors of the meta
    device come here, too: nobody stands between them and the autograd kernels.
    """
    check(x, weight, residual=residual, bias=bias)
    out = fresh(x, codes)
    total = fresh(x) if residual is not None else None
    scale = x.new_empty(x.shape[:-1], dtype=torch.float32) if codes is not None else None
    if x.numel() and not x.is_meta:
        run, hidden, _, device, _ = operators.for_call(x, weight)
        with on(device):
            source, stride = readable_rows(x)
            added, added_stride = (None, 0) if residual is None else readable_rows(residual)
            weight, bias = readable_vector(weight), None if bias is None else readable_vector(bias)
            run(
                raw_stream(device), x.numel() // hidden, source.data_ptr(), pointer(added),
                weight.data_ptr(), pointer(bias), out.data_ptr(), pointer(total), pointer(scale),
                stride, added_stride, 0, 0, epsilon,
            )  # fmt: skip
    return tuple(tensor for tensor in (out, total, scale) if tensor is not None)


# What the operators return for tensors without memory: the same checks, shapes, dtypes and strides.


def rms_norm_fake(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    check(x, weight)
    return fresh(x)


def rms_norm_residual_fake(x: Tensor, residual: Tensor, weight: Tensor, epsilon: float) -> Pair:
    check(x, weight, residual=residual)
    return fresh(x), fresh(x)


def rms_norm_quantized_fake(x: Tensor, weight: Tensor, epsilon: float, output: str) -> Pair:
    check(x, weight)
    return fresh(x, check_output(output)), x.new_empty(x.shape[:-1], dtype=torch.float32)


def rms_norm_residual_quantized_fake(
    x: Tensor, residual: Tensor, weight: Tensor, epsilon: float, output: str
) -> Triple:
    check(x, weight, residual=residual)
    return fresh(x, check_output(output)), fresh(x), x.new_empty(x.shape[:-1], dtype=torch.float32)


def layer_norm_fake(x: Tensor, weight: Tensor, bias: Optional[Tensor], epsilon: float) -> Tensor:
    check(x, weight, bias=bias)
    return fresh(x)


def layer_norm_residual_fake(
    x: Tensor, residual: Tensor, weight: Tensor, bias: Optional[Tensor], epsilon: float
) -> Pair:
    check(x, weight, residual=residual, bias=bias)
    return fresh(x), fresh(x)


def rms_norm_backward_fake(
    dy: Tensor, x: Tensor, weight: Tensor, dsum: Optional[Tensor], epsilon: float
) -> Pair:
    check(x, weight, dy=dy, dsum=dsum)
    return fresh(x), fresh(weight)

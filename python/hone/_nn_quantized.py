"""A linear layer with a weight of 4 or 8 bits as a module, for nn.py."""

from __future__ import annotations

from typing import Any, Optional, Union

import torch
from torch import Tensor
from torch.nn import functional

from . import _packing, torch_ops
from ._nn_common import ACTIVATIONS, checked_activation, has_columns, needs_gradient
from ._quantized_structs import QUANT_FORMATS
from .quantized_descriptions import StoredWeight

Bits = Union[int, str]

_FORMATS = {4: "w4a16", 8: "w8a16", **{name: name for name in QUANT_FORMATS}}
_USUAL_GROUP = 128
_DTYPES = (torch.bfloat16, torch.float16)  # of which there are kernels
_FP8 = torch.float8_e4m3fn


def format_of(bits: Bits) -> str:
    """Raises ValueError."""
    if bits not in _FORMATS:
        allowed = ", ".join(map(repr, _FORMATS))
        raise ValueError(f"bits: {bits!r}; allowed are {allowed}")
    return _FORMATS[bits]


def group_of(format: str, in_features: int, group: Optional[int]) -> int:
    """Of None for w4a16 128, or 64 or 32 where that does not divide, for other formats a scale a row."""
    if group is not None:
        return group
    if format != "w4a16":
        return 0
    return next((size for size in (_USUAL_GROUP, 64, 32) if in_features % size == 0), 0)


class QuantizedLinear(torch.nn.Module):
    """torch.nn.Linear with a weight of codes and scales; from_float() makes one of it. It cannot be trained,
    but hands gradients on to what comes before it.

    bits: 4 ("w4a16": codes of 4 bits, multiplied with x as it is), 8 ("w8a16"), "fp8" (E4M3) or "w8a8",
    which quantise x, too, token by token. group: columns that share a scale (None: 128 for 4 bits, or less
    where that does not divide in_features; 0: all of a row; fp8: 0, or 128 for a scale each 128 x 128).
    zeros: codes of 4 bits have zero points.

    codes, scales and zeros are buffers, stored as hone.QuantizedLinear says (fp8's codes as bytes), bias is a
    parameter. Moving the module to another dtype changes scales of 4 bits and the bias; the other formats'
    scales are float32 always. The state_dict says in what layout its codes are; another one is refused.

    Hone's kernels run for CUDA tensors of bf16 and fp16, of 4 bits for the dtype of its scales. Everywhere
    else, and where a gradient is needed, x is multiplied, as it is, with the dequantised weight.
    """

    codes: Tensor
    scales: Tensor
    zeros: Optional[Tensor]

    def __init__(
        self, in_features: int, out_features: int, bits: Bits = 4, group: Optional[int] = None,
        bias: bool = True, device: Any = None, dtype: torch.dtype = torch.bfloat16, *, zeros: bool = False,
        activation: str = "none",
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.format = format_of(bits)
        self.group = group_of(self.format, in_features, group)
        self._check_options(zeros)
        self.activation = checked_activation(activation)
        stored = self.stored_weight
        codes_dtype = torch.int8 if self.format == "w8a8" else torch.uint8
        scales_dtype = dtype if self.format == "w4a16" else torch.float32
        points = torch.full(stored.scales_shape, 8, dtype=torch.uint8, device=device) if zeros else None
        self.register_buffer("codes", torch.zeros(stored.codes_shape, dtype=codes_dtype, device=device))
        self.register_buffer("scales", torch.zeros(stored.scales_shape, dtype=scales_dtype, device=device))
        self.register_buffer("zeros", points)
        parameter = torch.zeros(out_features, dtype=dtype, device=device) if bias else None
        self.bias = None if parameter is None else torch.nn.Parameter(parameter, requires_grad=False)

    def _check_options(self, zeros: bool) -> None:
        allowed = {"w4a16": (0, 32, 64, 128), "fp8": (0, 128)}.get(self.format, (0,))
        if self.group not in allowed or (self.group and self.in_features % self.group):
            raise ValueError(
                f"group: {self.group}; allowed for {self.format} are {', '.join(map(str, allowed))} that "
                f"divide in_features, {self.in_features}"
            )
        if zeros and self.format != "w4a16":
            raise ValueError(f"zeros: True; allowed for {self.format} is False")

    @classmethod
    def from_float(
        cls, linear: torch.nn.Linear, bits: Bits = 4, group: Optional[int] = None, *, zeros: bool = False
    ) -> QuantizedLinear:
        """Quantises a layer's weight, on the device where it is; the bias, and the activation of a
        hone.nn.Linear, stay. A layer of float32 becomes one of bf16.

        Raises ValueError for weights that are infinite or no number.
        """
        if getattr(linear, "norm", None) is not None:
            raise ValueError("linear: it has a norm; allowed are layers without one")
        weight = linear.weight.detach()
        dtype = weight.dtype if weight.dtype in _DTYPES else torch.bfloat16
        activation = getattr(linear, "activation", "none")
        made = cls(
            linear.in_features, linear.out_features, bits, group, linear.bias is not None, "meta", dtype,
            zeros=zeros, activation=activation,
        )  # fmt: skip
        packed = _packing.quantize(weight, made.stored_weight, dtype, zeros)
        made.codes = packed.codes.view(torch.uint8) if made.format == "fp8" else packed.codes
        made.scales, made.zeros = packed.scales, packed.zeros
        if linear.bias is not None:
            bias = linear.bias.detach().to(dtype, copy=True)
            made.bias = torch.nn.Parameter(bias, requires_grad=False)
        return made.train(linear.training)

    @property
    def stored_weight(self) -> StoredWeight:
        return StoredWeight(self.out_features, self.in_features, self.format, self.group)

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Tensor:
        """x [..., in_features] and residual [..., out_features] -> activation(...) + residual, [...,
        out_features]."""
        if self._runs_natively(x, residual):
            codes = self.codes.view(_FP8) if self.format == "fp8" else self.codes
            return torch_ops.quantized_linear(
                x, codes, self.scales, self.format, self.group, self.out_features, self.activation,
                self.zeros, self.bias, residual,
            )  # fmt: skip
        bias = None if self.bias is None else self.bias.to(x.dtype)
        y = ACTIVATIONS[self.activation](functional.linear(x, self.dequantized(x.dtype), bias))
        return y if residual is None else y + residual

    def dequantized(self, dtype: torch.dtype) -> Tensor:
        """The weight [out_features, in_features] that the codes stand for."""
        codes = self.codes.view(_FP8) if self.format == "fp8" else self.codes
        packed = _packing.Packed(codes, self.scales, self.zeros)
        return _packing.dequantize(packed, self.stored_weight, dtype)

    def extra_repr(self) -> str:
        said = f", group={self.group}" if self.group else ""
        said += ", zeros=True" if self.zeros is not None else ""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, format={self.format!r}{said}, activation={self.activation!r}"
        )

    def get_extra_state(self) -> Tensor:
        """A tensor, which every file format of tensors can hold."""
        return torch.tensor(self._layout(), dtype=torch.int32)

    def set_extra_state(self, state: Any) -> None:
        """Raises RuntimeError for a state_dict whose codes mean something else here."""
        found, wanted = [int(number) for number in state], self._layout()
        if found[:1] != wanted[:1]:
            raise RuntimeError(
                f"state_dict: the codes of a QuantizedLinear are in layout version {found[0]}; this package "
                f"reads version {wanted[0]}: quantise the weights again"
            )
        if found != wanted:
            raise RuntimeError(
                f"state_dict: the codes of a QuantizedLinear have [layout version, format, group, zeros] "
                f"{found}; those of this module have {wanted}: make it with the same bits, group and zeros"
            )

    def _layout(self) -> list:
        zeros = int(self.zeros is not None)
        return [_packing.LAYOUT_VERSION, QUANT_FORMATS[self.format], self.group, zeros]

    def _apply(self, *arguments: Any, **named: Any) -> QuantizedLinear:
        """What moves a module casts whatever is a floating-point number."""
        scales = self.scales
        super()._apply(*arguments, **named)
        if self.format != "w4a16" and self.scales.dtype != scales.dtype:
            self.scales = scales.to(self.scales.device)
        return self

    def _runs_natively(self, x: Tensor, residual: Optional[Tensor]) -> bool:
        given = (residual, self.bias, self.scales if self.format == "w4a16" else None)
        return (
            x.is_cuda
            and x.dtype in _DTYPES
            and all(tensor is None or tensor.dtype == x.dtype for tensor in given)
            and (residual is None or has_columns(residual, x, self.out_features))
            and not torch.is_autocast_enabled()  # that is, for CUDA
            and not needs_gradient(x, residual, self.bias)
        )

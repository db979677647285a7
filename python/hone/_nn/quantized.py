"""A linear layer with a weight of 4 or 8 bits as a module, for nn.py."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Union

import torch
from torch import Tensor
from torch.nn import functional

from .._torch.registered import calls
from .._native.structs import QUANT_FORMATS
from .._operators.stored import StoredWeight
from .._torch.prepared import DTYPES
from .._torch.quantized_checks import RESULTS, X_CODES
from .._weights import packing
from .common import ACTIVATIONS, checked_activation, has_columns, needs_gradient

Bits = Union[int, str]

_FORMATS: Dict[Bits, str] = {4: "w4a16", 8: "w8a16", **{name: name for name in QUANT_FORMATS}}
_USUAL_GROUP = 128
_DTYPES = tuple(RESULTS.values())  # of which there are kernels
_FP8 = X_CODES["fp8"]


def format_of(bits: Bits) -> str:
    """Raises ValueError."""
    if bits not in _FORMATS:
        allowed = ", ".join(map(repr, _FORMATS))
        raise ValueError(f"bits: {bits!r}; allowed are {allowed}")
    return _FORMATS[bits]


def group_of(format: str, in_features: int, group: Optional[int]) -> int:
    """The group itself; in place of None for w4a16 128, or 64 or 32 where that does not divide, else a scale a row."""
    if group is not None:
        return group
    if format != "w4a16":
        return 0
    return next((size for size in (_USUAL_GROUP, 64, 32) if in_features % size == 0), 0)


def ffn_group(bits: Bits, hidden: int, intermediate: int, group: Optional[int]) -> int:
    """One for all layers of a feed-forward network: of None the smaller of its layers', which are powers of
    two, or whole rows where one of them has those."""
    return min(group_of(format_of(bits), columns, group) for columns in (hidden, intermediate))


def _dequantized_x(x: Tensor, x_scales: Tensor, dtype: torch.dtype) -> Tensor:
    """What codes stand for, with scales of tokens, of their groups, or of all."""
    if x_scales.shape == x.shape[:-1]:
        x_scales = x_scales.unsqueeze(-1)
    elif x_scales.numel() > 1:
        x_scales = x_scales.repeat_interleave(x.shape[-1] // x_scales.shape[-1], -1)
    return (x.float() * x_scales).to(dtype)


class QuantizedLinear(torch.nn.Module):
    """torch.nn.Linear with a weight of codes and scales; from_float() makes one of it. It cannot be trained,
    but hands gradients on to what comes before it.

    bits: 4 ("w4a16": codes of 4 bits, multiplied with x as it is), 8 ("w8a16"), "fp8" (E4M3) or "w8a8",
    which quantize x, too, token by token. group: columns that share a scale (None: 128 for 4 bits, or less
    where that does not divide in_features; 0: all of a row; fp8: 0, or 128 for a scale each 128 x 128).
    zeros: codes of 4 bits have zero points.

    input_order: columns of the weight of 4 bits stand in another order than the elements of x, which are
    gathered first, x[..., input_order], by a kernel of its own; packed checkpoints have it (docs/formats.md).

    codes, scales, zeros and input_order are buffers, stored as hone.QuantizedLinear says (fp8's codes as
    bytes), bias is a parameter. Moving the module to another dtype changes scales of 4 bits and the bias; the
    other formats' scales are float32 always. The state_dict says in what layout its codes are; another one is
    refused.

    Hone's kernels run for CUDA tensors of bf16 and fp16, of 4 bits for the dtype of its scales. Everywhere
    else, and where a gradient is needed, x is multiplied, as it is, with the dequantized weight.
    """

    codes: Tensor
    scales: Tensor
    zeros: Optional[Tensor]
    input_order: Optional[Tensor]

    def __init__(
        self, in_features: int, out_features: int, bits: Bits = 4, group: Optional[int] = None,
        bias: bool = True, device: Any = None, dtype: torch.dtype = torch.bfloat16, *, zeros: bool = False,
        activation: str = "none", input_order: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.format = format_of(bits)
        self.group = group_of(self.format, in_features, group)
        self._check_options(zeros=zeros, input_order=input_order)
        self.activation = checked_activation(activation)
        stored = self.stored_weight
        codes_dtype = torch.int8 if self.format == "w8a8" else torch.uint8
        scales_dtype = dtype if self.format == "w4a16" else torch.float32
        points = torch.full(stored.scales_shape, 8, dtype=torch.uint8, device=device) if zeros else None
        self.register_buffer("codes", torch.zeros(stored.codes_shape, dtype=codes_dtype, device=device))
        self.register_buffer("scales", torch.zeros(stored.scales_shape, dtype=scales_dtype, device=device))
        self.register_buffer("zeros", points)
        order = torch.arange(in_features, dtype=torch.int32, device=device) if input_order else None
        self.register_buffer("input_order", order)
        parameter = torch.zeros(out_features, dtype=dtype, device=device) if bias else None
        self.bias = None if parameter is None else torch.nn.Parameter(parameter, requires_grad=False)

    def _check_options(self, **of_4_bits: bool) -> None:
        allowed = {"w4a16": (0, 32, 64, 128), "fp8": (0, 128)}.get(self.format, (0,))
        if self.group not in allowed or (self.group and self.in_features % self.group):
            raise ValueError(
                f"group: {self.group}; allowed for {self.format} are {', '.join(map(str, allowed))} that "
                f"divide in_features, {self.in_features}"
            )
        for name, given in of_4_bits.items():
            if given and self.format != "w4a16":
                raise ValueError(f"{name}: True; allowed for {self.format} is False")

    @classmethod
    def from_float(
        cls, linear: torch.nn.Linear, bits: Bits = 4, group: Optional[int] = None, *, zeros: bool = False
    ) -> QuantizedLinear:
        """Quantizes a layer's weight: a GPU those in its memory, the host others, to the same bits. The bias,
        and the activation of a hone.nn.Linear, stay. A layer of float32 becomes one of bf16.

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
        packed = packing.quantize(weight, made.stored_weight, dtype, zeros)
        made.codes = packed.codes.view(torch.uint8) if made.format == "fp8" else packed.codes
        made.scales, made.zeros = packed.scales, packed.zeros
        if linear.bias is not None:
            bias = linear.bias.detach().to(dtype, copy=True)
            made.bias = torch.nn.Parameter(bias, requires_grad=False)
        return made.train(linear.training)

    @property
    def stored_weight(self) -> StoredWeight:
        return StoredWeight(self.out_features, self.in_features, self.format, self.group)

    @property
    def kernel_codes(self) -> Tensor:
        """codes, of the dtype that hone.ops takes."""
        return self.codes.view(_FP8) if self.format == "fp8" else self.codes

    def forward(
        self, x: Tensor, residual: Optional[Tensor] = None, x_scales: Optional[Tensor] = None
    ) -> Tensor:
        """x [..., in_features] and residual [..., out_features] -> activation(...) + residual, [...,
        out_features].

        Of w8a8 and fp8 x may be codes with x_scales [...], as hone.ops.rms_norm_quantized makes them, or
        scales of all [1], or of each group [..., in_features / group]. The result then has the dtype of
        residual or bias, or, where there is neither, bf16.
        """
        dtype = self._result_dtype(x, residual, x_scales)
        if x_scales is not None:
            x_scales = self._spread_x_scales(x, x_scales)
        if self._runs_natively(x, residual, dtype):
            return self._kernel(x, residual, x_scales, dtype)
        if x_scales is not None:
            x = _dequantized_x(x, x_scales, dtype)
        bias = None if self.bias is None else self.bias.to(dtype)
        y = ACTIVATIONS[self.activation](functional.linear(x, self.dequantized(dtype), bias))
        return y if residual is None else y + residual

    def _kernel(
        self, x: Tensor, residual: Optional[Tensor], x_scales: Optional[Tensor], dtype: torch.dtype
    ) -> Tensor:
        if self.input_order is not None:
            x = x.index_select(-1, self.input_order)
        return calls.quantized_linear(
            x, self.kernel_codes, self.scales, self.format, self.group, self.out_features, self.activation,
            self.zeros, self.bias, residual, x_scales, None, None, DTYPES[dtype],
        )  # fmt: skip

    def dequantized(self, dtype: torch.dtype) -> Tensor:
        """The weight [out_features, in_features] that the codes stand for, its columns as x has its
        elements."""
        packed = packing.Packed(self.kernel_codes, self.scales, self.zeros)
        values = packing.dequantize(packed, self.stored_weight, dtype)
        if self.input_order is None:
            return values
        return torch.empty_like(values).index_copy_(1, self.input_order.long(), values)

    def extra_repr(self) -> str:
        said = f", group={self.group}" if self.group else ""
        said += ", zeros=True" if self.zeros is not None else ""
        said += ", input_order=True" if self.input_order is not None else ""
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
                f"reads version {wanted[0]}: quantize the weights again"
            )
        if found != wanted:
            raise RuntimeError(
                f"state_dict: the codes of a QuantizedLinear have [layout version, format, group, zeros, "
                f"input_order] {found}; those of this module have {wanted}: make it with the same bits, "
                f"group, zeros and input_order"
            )

    def _layout(self) -> List[int]:
        present = [int(tensor is not None) for tensor in (self.zeros, self.input_order)]
        return [packing.LAYOUT_VERSION, QUANT_FORMATS[self.format], self.group, *present]

    def _apply(self, *arguments: Any, **named: Any) -> QuantizedLinear:
        """What moves a module casts whatever is a floating-point number."""
        scales = self.scales
        super()._apply(*arguments, **named)
        if self.format != "w4a16" and self.scales.dtype != scales.dtype:
            self.scales = scales.to(self.scales.device)
        return self

    def _result_dtype(
        self, x: Tensor, residual: Optional[Tensor], x_scales: Optional[Tensor]
    ) -> torch.dtype:
        is_codes = x.dtype == X_CODES.get(self.format)
        if is_codes != (x_scales is not None):
            found = "missing" if is_codes else "given"
            raise ValueError(f"x_scales: it is {found}; it goes with an x of codes, and x is {x.dtype}")
        if not is_codes:
            return x.dtype
        if residual is not None:
            return residual.dtype
        return torch.bfloat16 if self.bias is None else self.bias.dtype

    def _spread_x_scales(self, x: Tensor, x_scales: Tensor) -> Tensor:
        """As the format has them: where it has groups, a token's scale for each of them."""
        if not self.group or x_scales.shape != x.shape[:-1]:
            return x_scales
        groups = self.in_features // self.group
        return x_scales.unsqueeze(-1).expand(*x_scales.shape, groups).contiguous()

    def _runs_natively(self, x: Tensor, residual: Optional[Tensor], dtype: torch.dtype) -> bool:
        """Whether there is a kernel; the result is of `dtype`."""
        given = (residual, self.bias, self.scales if self.format == "w4a16" else None)
        return (
            x.is_cuda
            and dtype in _DTYPES
            and all(tensor is None or tensor.dtype == dtype for tensor in given)
            and (residual is None or has_columns(residual, x, self.out_features))
            and not torch.is_autocast_enabled()  # that is, for CUDA
            and not needs_gradient(x, residual, self.bias)
        )

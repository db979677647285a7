"""Modules that take the place of torch.nn.RMSNorm, LayerNorm and Linear, with the same parameters, of Linear
also with a weight of 4 or 8 bits, and the feed-forward network, with such weights, too, and the attention of
a transformer layer as modules; and rope_table(), the cosines and sines of rotary embeddings.

They run Hone's kernels for CUDA tensors of bf16, fp16 and fp32 with weights of the same dtype, and PyTorch's
functions for everything else: on the CPU, for float64, with mixed dtypes, without a weight, and under
torch.autocast, where PyTorch's functions choose the dtype of their result. Hone has no gradient of LayerNorm,
Linear, FusedFFN and Attention: where one is needed, PyTorch's functions run.
Their state_dict is that of PyTorch's modules; hone.patch() makes one of each norm that a model has.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor
from torch.nn import functional

from ._torch.registered import calls
from ._nn.attention import Attention as Attention
from ._nn.common import ACTIVATIONS, checked_activation, has_columns, needs_gradient
from ._nn.quantized import Bits, ffn_group
from ._nn.quantized import QuantizedLinear as QuantizedLinear
from ._nn.rope_table import rope_table as rope_table
from ._torch.prepared import DTYPES

Shape = Union[int, Sequence[int]]

_KERNEL_DTYPES = tuple(DTYPES)


def _adds_epsilon_in_float32() -> bool:
    """What PyTorch adds where eps is None: the epsilon of float32, in which it computes, from 2.7 on; that of
    x's dtype before, which for this x is far more than its square."""
    x = torch.full((1,), 0.01, dtype=torch.bfloat16, device="cpu")
    return functional.rms_norm(x, (1,)).item() > 0.5


_IN_FLOAT32 = _adds_epsilon_in_float32()
_FLOAT32_EPSILON = torch.finfo(torch.float32).eps


def runs_natively(x: Tensor, weight: Optional[Tensor]) -> bool:
    """Whether Hone has a kernel for x [..., hidden] and weight [hidden]."""
    return weight is not None and x.is_cuda and x.dtype in _KERNEL_DTYPES and weight.dtype == x.dtype


def one_dimension(normalized_shape: Shape) -> Tuple[int]:
    """normalized_shape as a tuple of one size. Raises ValueError for more dimensions."""
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if len(sizes) != 1:
        raise ValueError(f"normalized_shape: {normalized_shape!r}; allowed are an int and a tuple of one int")
    return (sizes[0],)


def _takes_kernel(x: Tensor, residual: Optional[Tensor], weight: Optional[Tensor]) -> bool:
    """Whether a module's call goes to Hone's kernel."""
    return (
        runs_natively(x, weight)
        and (residual is None or (residual.dtype == x.dtype and residual.shape == x.shape))
        and not torch.is_autocast_enabled()  # that is, for CUDA
    )


def _epsilon(eps: Optional[float], dtype: torch.dtype) -> float:
    """What a module of this eps adds for tensors of this dtype."""
    if eps is not None:
        return eps
    return _FLOAT32_EPSILON if _IN_FLOAT32 else torch.finfo(dtype).eps


class RMSNorm(torch.nn.RMSNorm):
    """torch.nn.RMSNorm over the last dimension, in place of which it can stand; trainable.

    forward(x, residual) normalizes x + residual and returns that sum, too, in one pass over memory.
    """

    def __init__(
        self, normalized_shape: Shape, eps: Optional[float] = None, elementwise_affine: bool = True,
        device: Any = None, dtype: Optional[torch.dtype] = None,
    ) -> None:  # fmt: skip
        super().__init__(one_dimension(normalized_shape), eps, elementwise_affine, device, dtype)

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Any:
        """x and residual [..., hidden] -> y, or (y, x + residual); all like x."""
        if not _takes_kernel(x, residual, self.weight):
            total = x if residual is None else x + residual
            y = functional.rms_norm(total, self.normalized_shape, self.weight, self.eps)
            return y if residual is None else (y, total)
        epsilon = _epsilon(self.eps, x.dtype)
        if residual is None:
            return calls.rms_norm(x, self.weight, epsilon)
        return calls.rms_norm_residual(x, residual, self.weight, epsilon)


class LayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm over the last dimension, in place of which it can stand.

    forward(x, residual) is that of RMSNorm.
    """

    def __init__(
        self, normalized_shape: Shape, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Optional[torch.dtype] = None,
    ) -> None:  # fmt: skip
        super().__init__(one_dimension(normalized_shape), eps, elementwise_affine, bias, device, dtype)

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Any:
        """x and residual [..., hidden] -> y, or (y, x + residual); all like x."""
        parameters = (self.weight, self.bias)
        if not _takes_kernel(x, residual, self.weight) or needs_gradient(x, residual, *parameters):
            total = x if residual is None else x + residual
            y = functional.layer_norm(total, self.normalized_shape, self.weight, self.bias, self.eps)
            return y if residual is None else (y, total)
        if residual is None:
            return calls.layer_norm(x, self.weight, self.bias, self.eps)
        return calls.layer_norm_residual(x, residual, self.weight, self.bias, self.eps)


class Linear(torch.nn.Linear):
    """torch.nn.Linear, in place of which it can stand, with an activation in the same kernel: "none",
    "gelu_tanh", "gelu_erf", "silu" or "relu". With norm, an RMSNorm of eps, its `norm`, comes before it."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: Optional[torch.dtype] = None, *, activation: str = "none", norm: bool = False,
        eps: Optional[float] = None,
    ) -> None:  # fmt: skip
        super().__init__(in_features, out_features, bias, device, dtype)
        self.activation = checked_activation(activation)
        self.norm = RMSNorm(in_features, eps, device=device, dtype=dtype) if norm else None

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Tensor:
        """x [..., in_features] and residual [..., out_features] -> activation(...) + residual, [...,
        out_features]."""
        norm = _norm_arguments(self.norm, x)
        if _multiplies(x, residual, self.out_features, self.weight, self.bias, norm[0]):
            return calls.linear(x, self.weight, self.bias, residual, self.activation, *norm)
        if self.norm is not None:
            x = self.norm(x)
        y = ACTIVATIONS[self.activation](functional.linear(x, self.weight, self.bias))
        return y if residual is None else y + residual

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, activation={self.activation!r}"


class FusedFFN(torch.nn.Module):
    """down_proj(activation(gate_proj(x)) * up_proj(x)) or, not gated, down_proj(activation(up_proj(x))).

    With norm, an RMSNorm of eps, its `norm`, comes before it; a block's x + ffn(norm(x)) is forward(x, x).

    Its layers are named as in Llama and hold the weights; Hone's kernel reads those, without a call of the
    layers and their hooks. A gated one has no biases.
    """

    def __init__(
        self, hidden: int, intermediate: int, activation: str = "silu", gated: bool = True,
        bias: bool = False, device: Any = None, dtype: Optional[torch.dtype] = None, *, norm: bool = False,
        eps: Optional[float] = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.activation = _ffn_activation(activation, gated, bias)
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.norm = RMSNorm(hidden, eps, device=device, dtype=dtype) if norm else None
        self.gate_proj = torch.nn.Linear(hidden, intermediate, **options) if gated else None
        self.up_proj = torch.nn.Linear(hidden, intermediate, **options)
        self.down_proj = torch.nn.Linear(intermediate, hidden, **options)

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Tensor:
        """x and residual [..., hidden] -> the same, with the residual added."""
        gate = None if self.gate_proj is None else self.gate_proj.weight
        up, down = self.up_proj, self.down_proj
        weights = (gate, up.weight, down.weight, up.bias, down.bias)
        norm = _norm_arguments(self.norm, x)
        if _multiplies(x, residual, down.out_features, *weights, norm[0]):
            return calls.fused_ffn(x, *weights, residual, self.activation, *norm)
        return _ffn_formula(self, x, residual)

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}"


class QuantizedFFN(torch.nn.Module):
    """FusedFFN with weights of 4 or 8 bits: gate_proj, up_proj and down_proj are QuantizedLinear layers of
    one format and group (None: for 4 bits the largest of 128, 64 and 32 that divides both hidden and
    intermediate), which hold them. from_float() makes one of a network's layers. It cannot be trained, but
    hands gradients on."""

    def __init__(
        self, hidden: int, intermediate: int, bits: Bits = 4, group: Optional[int] = None,
        activation: str = "silu", gated: bool = True, bias: bool = False, device: Any = None,
        dtype: torch.dtype = torch.bfloat16, *, zeros: bool = False, norm: bool = False,
        eps: Optional[float] = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.activation = _ffn_activation(activation, gated, bias)
        group = ffn_group(bits, hidden, intermediate, group)
        options = (bits, group, bias, device, dtype)
        self.norm = RMSNorm(hidden, eps, device=device, dtype=dtype) if norm else None
        self.gate_proj = QuantizedLinear(hidden, intermediate, *options, zeros=zeros) if gated else None
        self.up_proj = QuantizedLinear(hidden, intermediate, *options, zeros=zeros)
        self.down_proj = QuantizedLinear(intermediate, hidden, *options, zeros=zeros)

    @classmethod
    def from_float(
        cls, gate: Optional[torch.nn.Linear], up: torch.nn.Linear, down: torch.nn.Linear, bits: Bits = 4,
        group: Optional[int] = None, *, activation: str = "silu", zeros: bool = False,
        norm: Optional[torch.nn.RMSNorm] = None,
    ) -> QuantizedFFN:  # fmt: skip
        """Quantizes the weights of a network's layers, as QuantizedLinear.from_float() does; the norm before
        it stays as it is. gate is None for one that is not gated."""
        hidden, intermediate = up.in_features, up.out_features
        shapes = {"gate": (gate, [intermediate, hidden]), "down": (down, [hidden, intermediate])}
        for name, (layer, shape) in shapes.items():
            if layer is not None and list(layer.weight.shape) != shape:
                found = list(layer.weight.shape)
                raise ValueError(
                    f"{name}: its weight is {found}; allowed is {shape}, as up's is {[intermediate, hidden]}"
                )
        given = [layer for layer in (gate, up, down) if layer is not None]
        if any(getattr(layer, "activation", "none") != "none" for layer in given):
            raise ValueError("up: one of the layers has an activation; allowed is that of the network alone")
        biases = {layer.bias is not None for layer in given}
        if len(biases) == 2:
            raise ValueError("up: one of the layers has a bias; allowed is that all or none have one")
        made = cls(
            hidden, intermediate, bits, group, activation, gate is not None, biases.pop(), "meta", zeros=zeros
        )
        group = made.up_proj.group
        layers = {"gate_proj": gate, "up_proj": up, "down_proj": down}
        for name, layer in layers.items():
            if layer is not None:
                setattr(made, name, QuantizedLinear.from_float(layer, bits, group, zeros=zeros))
        made.norm = norm
        return made.train(up.training)

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Tensor:
        """x and residual [..., hidden] -> the same, with the residual added."""
        norm = _norm_arguments(self.norm, x)
        if not self._runs_natively(x, residual, norm[0]):
            return _ffn_formula(self, x, residual)
        gate, up, down = self.gate_proj, self.up_proj, self.down_proj
        codes, scales, zeros = (None,) * 3 if gate is None else (gate.kernel_codes, gate.scales, gate.zeros)
        return calls.quantized_ffn(
            x, codes, scales, up.kernel_codes, up.scales, down.kernel_codes, down.scales, up.format, up.group,
            up.out_features, self.activation, zeros, up.zeros, down.zeros, up.bias, down.bias, residual, None,
            *norm,
        )  # fmt: skip

    def _runs_natively(self, x: Tensor, residual: Optional[Tensor], norm_weight: Optional[Tensor]) -> bool:
        layers = [layer for layer in (self.gate_proj, self.up_proj, self.down_proj) if layer is not None]
        scales = [layer.scales for layer in layers if layer.format == "w4a16"]
        biases = [layer.bias for layer in layers]
        return x.dtype != torch.float32 and _multiplies(
            x, residual, self.down_proj.out_features, norm_weight, *scales, *biases
        )

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}"


def _ffn_activation(activation: str, gated: bool, bias: bool) -> str:
    if gated and bias:
        raise ValueError("bias: True; allowed is False where gated is True")
    if gated and activation == "none":
        raise ValueError("activation: 'none'; it is allowed where gated is False")
    return checked_activation(activation)


def _ffn_formula(ffn: Union[FusedFFN, QuantizedFFN], x: Tensor, residual: Optional[Tensor]) -> Tensor:
    """What a network computes, layer by layer."""
    if ffn.norm is not None:
        x = ffn.norm(x)
    activate, up = ACTIVATIONS[ffn.activation], ffn.up_proj
    between = activate(up(x)) if ffn.gate_proj is None else activate(ffn.gate_proj(x)) * up(x)
    y = ffn.down_proj(between)
    return y if residual is None else y + residual


def _norm_arguments(norm: Optional[RMSNorm], x: Tensor) -> Tuple[Optional[Tensor], Optional[float]]:
    """norm_weight and epsilon of the operators."""
    return (None, None) if norm is None else (norm.weight, _epsilon(norm.eps, x.dtype))


def _multiplies(x: Tensor, residual: Optional[Tensor], columns: int, *parameters: Optional[Tensor]) -> bool:
    """Whether a call of Linear or FusedFFN goes to Hone's kernel; its result has so many columns."""
    return (
        x.is_cuda
        and x.dtype in _KERNEL_DTYPES
        and all(tensor is None or tensor.dtype == x.dtype for tensor in (residual, *parameters))
        and (residual is None or has_columns(residual, x, columns))
        and not torch.is_autocast_enabled()  # that is, for CUDA
        and not needs_gradient(x, residual, *parameters)
    )

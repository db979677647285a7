"""Weights of a layer as what they are multiplied by: products and feed-forward networks of numbers or codes, and norms.

They hold the tensors of the model's own modules, or views of several of them that stand one behind another in memory.
"""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from .. import nn as hone_nn
from .._nn.common import ACTIVATIONS
from .._operators.stored import BLOCK
from .._torch.expert_routing import expert_routing
from .._torch.prepared import ALIGNMENT
from .._torch.registered import calls

MOST_EXPERTS = 512  # of a layer of kernels
NormArguments = Tuple[Optional[Tensor], Optional[float]]  # weight and epsilon of an RMSNorm in front of a product
NO_NORM: NormArguments = (None, None)


class Unsupported(ValueError):
    """Why a model, or a part of it, has no kernels; what is allowed instead stands in it."""


class Norm(NamedTuple):
    """An RMSNorm (`bias` is None and centred is False), one that scales by 1 + weight (unit_offset), or a LayerNorm."""

    weight: Tensor
    bias: Optional[Tensor]
    epsilon: float
    centred: bool = False
    unit_offset: bool = False

    def of(self, x: Tensor) -> Tensor:
        if self.centred:
            return calls.layer_norm(x, self.weight, self.bias, self.epsilon)
        run = calls.rms_norm_offset if self.unit_offset else calls.rms_norm
        return run(x, self.weight, self.epsilon)

    def of_sum(self, x: Tensor, residual: Tensor) -> Tuple[Tensor, Tensor]:
        """The norm of x + residual, and that sum."""
        if self.centred:
            return calls.layer_norm_residual(x, residual, self.weight, self.bias, self.epsilon)
        run = calls.rms_norm_residual_offset if self.unit_offset else calls.rms_norm_residual
        return run(x, residual, self.weight, self.epsilon)

    @property
    def arguments(self) -> NormArguments:
        return self.weight, self.epsilon


class Codes(NamedTuple):
    """A weight [out, in] of 4 or 8 bits, as hone.ops takes it."""

    codes: Tensor
    scales: Tensor
    zeros: Optional[Tensor]


class Product:
    """x -> x * weight^T + bias (+ residual), for a weight of numbers, or of codes."""

    def __init__(self, weight: Any, bias: Optional[Tensor], layer: Optional[hone_nn.QuantizedLinear], out: int) -> None:
        """`layer`: says how codes are stored; None: the weight is a tensor of numbers."""
        self.weight, self.bias, self.out = weight, bias, out
        self.format = "" if layer is None else layer.format
        self.group = 0 if layer is None else layer.group

    def __call__(
        self, x: Tensor, residual: Optional[Tensor] = None, norm: NormArguments = NO_NORM
    ) -> Tensor:
        if not self.format:
            return calls.linear(x, self.weight, self.bias, residual, "none", *norm)
        codes, scales, zeros = self.weight
        return calls.quantized_linear(
            x, codes, scales, self.format, self.group, self.out, "none", zeros, self.bias, residual, None, *norm
        )


class Network:
    """A feed-forward network, gated or not."""

    def __init__(self, gate: Optional[Product], up: Product, down: Product, activation: str) -> None:
        self._gate, self._up, self._down, self._activation = gate, up, down, activation
        self._apart = len({(part.format, part.group) for part in (gate, up, down) if part is not None}) > 1
        if gate is not None and (up.bias is not None or down.bias is not None):
            raise Unsupported("feed-forward network: it is gated and has biases; allowed are gated ones without")

    def __call__(
        self, x: Tensor, residual: Optional[Tensor] = None, norm: NormArguments = NO_NORM
    ) -> Tensor:
        gate, up, down = self._gate, self._up, self._down
        if self._apart:  # weights of several formats are products of their own
            activate = ACTIVATIONS[self._activation]
            between = activate(up(x, None, norm)) if gate is None else activate(gate(x, None, norm)) * up(x, None, norm)
            return down(between, residual)
        if not up.format:
            first = None if gate is None else gate.weight
            return calls.fused_ffn(
                x, first, up.weight, down.weight, up.bias, down.bias, residual, self._activation, *norm
            )
        codes: List[Any] = [None, None, None] if gate is None else list(gate.weight)
        return calls.quantized_ffn(
            x, codes[0], codes[1], up.weight.codes, up.weight.scales, down.weight.codes, down.weight.scales, up.format,
            up.group, up.out, self._activation, codes[2], up.weight.zeros, down.weight.zeros, up.bias, down.bias, residual,
            None, *norm,
        )  # fmt: skip


class Experts:
    """A feed-forward network of experts, gated ones, of which each token goes to some."""

    def __init__(
        self, router: Product, gate_up: Tensor, down: Tensor, top_k: int, renormalize: bool, activation: str
    ) -> None:
        """`gate_up`: [experts, 2 * intermediate, hidden], each expert's gate before its up; `down`: [experts, hidden,
        intermediate]. Raises Unsupported.

        Kernels take gates and ups as tensors of their own, of which an expert's stand one behind another. So each half is a
        matrix by itself: gates are all of them but the last one, ups all but the first, and every second one has no tokens.
        """
        experts, both, hidden = gate_up.shape
        halves = gate_up.view(2 * experts, both // 2, hidden)
        if 2 * experts - 1 > MOST_EXPERTS:
            raise Unsupported(f"experts: they are {experts}; allowed are up to {(MOST_EXPERTS + 1) // 2}")
        if halves[0].numel() * halves.element_size() % ALIGNMENT:
            raise Unsupported(
                f"experts: {both // 2} rows of {hidden} columns are no multiple of {ALIGNMENT} bytes; allowed are those"
            )
        self._router, self._gate, self._up, self._down = router, halves[:-1], halves[1:], down
        self._top_k, self._renormalize, self._activation = top_k, renormalize, activation
        self._doubled = torch.arange(1, 2 * experts + 1, device=gate_up.device) // 2  # places of the starts of halves

    def __call__(self, x: Tensor) -> Tensor:
        """[..., hidden] -> the same, each token's experts added up."""
        flat = x.reshape(-1, x.shape[-1])
        top_k = self._top_k
        weights, starts, rows = expert_routing(self._router(flat), top_k, self._renormalize)
        doubled = starts.index_select(0, self._doubled)
        between = calls.expert_linear(flat, doubled, self._gate, rows, top_k, self._activation, True, self._up)
        made: Tensor = calls.expert_linear(
            between, starts, self._down, rows, top_k, "none", False, None, None, None, weights
        )
        return made.view(x.shape)


# Reading layers.


def product_of(*layers: nn.Module) -> Product:
    """One product of layers with the same input: their weights are put one behind another in memory, where they do not
    stand so yet, and stay their parameters. Raises Unsupported."""
    for layer in layers:
        _check_layer(layer)
    if len({type(layer) for layer in layers}) > 1:
        raise Unsupported(f"layers of one input: they are {_names(layers)}; allowed is one kind")
    if len({layer.bias is None for layer in layers}) > 1:
        raise Unsupported("layers of one input: some of them have a bias; allowed are all or none")
    out = sum(_outputs(layer) for layer in layers)
    bias = None if layers[0].bias is None else joined([(layer._parameters, "bias") for layer in layers])
    first: Any = layers[0]
    if isinstance(first, hone_nn.QuantizedLinear):
        return Product(_joined_codes(layers), bias, first, out)
    if is_conv(first):
        return Product(_transposed(first), bias, None, out)
    return Product(joined([(layer._parameters, "weight") for layer in layers]), bias, None, out)


def experts_of(block: Any, renormalize: bool, activation: str) -> Experts:
    """A block of transformers' experts, whose weights are stacked. Raises Unsupported."""
    router, experts = block.gate, block.experts
    for name in ("gate_up_proj", "down_proj"):
        kind = type(getattr(experts, name, None))
        if kind is not nn.Parameter:
            raise Unsupported(f"experts: their {name} is a {kind.__name__}; allowed is torch.nn.Parameter")
    if getattr(experts, "is_transposed", False) or getattr(experts, "has_bias", False):
        raise Unsupported("experts: their weights are transposed or have biases; allowed are [experts, out, in] alone")
    if not getattr(experts, "is_concatenated", True):
        raise Unsupported("experts: rows of their gates and ups alternate; allowed are gates before ups")
    gate_up, down = (joined([(experts._parameters, name)]) for name in ("gate_up_proj", "down_proj"))
    weight = joined([(router._parameters, "weight")])
    return Experts(Product(weight, None, None, len(weight)), gate_up, down, router.top_k, renormalize, activation)


def halves_of(layer: Any) -> Tuple[Product, Product]:
    """The upper and the lower half of a layer's rows as products of their own (Phi-3's gate and up)."""
    whole = product_of(layer)
    half = whole.out // 2
    if whole.bias is not None:
        raise Unsupported("feed-forward network: it is gated and has biases; allowed are gated ones without")
    if not whole.format:
        return Product(whole.weight[:half], None, None, half), Product(whole.weight[half:], None, None, half)
    _check_rows(layer, half)
    parts = [Codes(*(part if part is None else part.chunk(2)[i] for part in whole.weight)) for i in (0, 1)]
    return Product(parts[0], None, layer, half), Product(parts[1], None, layer, half)


def is_conv(layer: nn.Module) -> bool:
    """Whether it is GPT-2's layer, a linear one whose weight is [in, out]."""
    return type(layer).__name__ == "Conv1D" and type(layer).__module__ == "transformers.pytorch_utils"


def _check_layer(layer: nn.Module) -> None:
    if type(layer) is not nn.Linear and type(layer) is not hone_nn.QuantizedLinear and not is_conv(layer):
        raise Unsupported(
            f"layer: it is a {type(layer).__module__}.{type(layer).__name__}; allowed are torch.nn.Linear and "
            f"hone.nn.QuantizedLinear (merge adapters into the weights first)"
        )
    if isinstance(layer, hone_nn.QuantizedLinear):
        if layer.input_order is not None or layer.activation != "none":
            raise Unsupported("layer: its QuantizedLinear has an input_order or an activation; allowed are those without")
    elif type(layer.weight) is not nn.Parameter:
        raise Unsupported(f"layer: its weight is a {type(layer.weight).__name__}; allowed is torch.nn.Parameter")


def _names(layers: Sequence[nn.Module]) -> str:
    return ", ".join(type(layer).__name__ for layer in layers)


def _outputs(layer: Any) -> int:
    return layer.nf if is_conv(layer) else layer.out_features


def _check_rows(layer: Any, rows: int) -> None:
    """Codes of packed formats stand in blocks of rows, those of fp8 in groups share scales with as many."""
    unit = BLOCK if layer.stored_weight.packed else (layer.group or 1)
    if rows % unit:
        raise Unsupported(
            f"format {layer.format}: {rows} rows of a weight stand beside others; allowed are multiples of {unit}"
        )


def _joined_codes(layers: Sequence[Any]) -> Codes:
    first = layers[0]
    if len({(layer.format, layer.group, layer.zeros is None) for layer in layers}) > 1:
        raise Unsupported("layers of one input: their codes have several formats; allowed is one")
    for layer in layers:
        if len(layers) > 1:
            _check_rows(layer, layer.out_features)
    codes = joined([(layer._buffers, "codes") for layer in layers])
    scales = joined([(layer._buffers, "scales") for layer in layers])
    zeros = None if first.zeros is None else joined([(layer._buffers, "zeros") for layer in layers])
    return Codes(codes.view(torch.float8_e4m3fn) if first.format == "fp8" else codes, scales, zeros)


Place = Tuple[Any, str]  # a module's _parameters or _buffers, and a name in it


def joined(places: Sequence[Place]) -> Tensor:
    """Tensors as one along their first dimension, of which they become views. The same objects stay parameters."""
    tensors = [store[name].detach() for store, name in places]
    if len(tensors) == 1:
        return tensors[0] if tensors[0].is_contiguous() else _made_contiguous(places[0])
    whole = _standing_together(tensors)
    if whole is None:
        whole = torch.cat(tensors)
        start = 0
        for (store, name), tensor in zip(places, tensors):
            view = whole[start : start + len(tensor)]
            start += len(tensor)
            if isinstance(store[name], nn.Parameter):
                store[name].data = view
            else:
                store[name] = view
    return whole


def _made_contiguous(place: Place) -> Tensor:
    store, name = place
    if isinstance(store[name], nn.Parameter):
        store[name].data = store[name].data.contiguous()
    else:
        store[name] = store[name].contiguous()
    return store[name].detach()


def _standing_together(tensors: List[Tensor]) -> Optional[Tensor]:
    """What they are views of, if each begins where the one before it ends."""
    at = tensors[0].data_ptr()
    for tensor in tensors:
        if not tensor.is_contiguous() or tensor.data_ptr() != at:
            return None
        at += tensor.numel() * tensor.element_size()
    if len({tensor.untyped_storage().data_ptr() for tensor in tensors}) > 1:
        return None
    rows = sum(map(len, tensors))
    return tensors[0].as_strided((rows, *tensors[0].shape[1:]), tensors[0].stride())


def _transposed(conv: Any) -> Tensor:
    """GPT-2's weight as [out, in]. The parameter stays [in, out], a view of that memory."""
    if not conv.weight.data.t().is_contiguous():
        conv.weight.data = conv.weight.data.t().contiguous().t()
    return conv.weight.detach().t()


def separated(parameter: nn.Parameter) -> None:
    """Gives a parameter that is a view of more, or lies transposed, memory of its own again."""
    data = parameter.data
    if not data.is_contiguous() or data.untyped_storage().nbytes() != data.numel() * data.element_size():
        parameter.data = data.clone(memory_format=torch.contiguous_format)


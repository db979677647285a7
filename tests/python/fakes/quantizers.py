"""Layers as the packages behind transformers' quantizers make them: their classes' names, attributes and buffers, as far as
they are documented, with codes that a test chooses."""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import torch
from torch import Tensor, nn


def words_of(codes: Tensor, along: int, bits: int = 4) -> Tensor:
    """int32 words of so many codes side by side, the first in the lowest bits."""
    parts = codes.long().movedim(along, -1).unflatten(-1, (-1, 32 // bits))
    whole = (parts << torch.arange(0, 32, bits, device=codes.device)).sum(-1)
    return ((whole + 2**31) % 2**32 - 2**31).int().movedim(-1, along)


class _Packed(nn.Module):
    def __init__(self, bits: int, group: int, bias: Optional[Tensor], shape: tuple) -> None:
        super().__init__()
        self.bits, self.group_size, self.adapter = bits, group, None
        self.out_features, self.in_features = shape
        self.register_buffer("bias", None if bias is None else bias.half())


class TorchLinear(_Packed):
    """Of gptqmodel, for GPTQ; its zero points less 1 in the first format."""

    def __init__(self, codes: Tensor, scales: Tensor, zeros: Tensor, group: int, bias: Any, bits: int = 4, version: int = 1):
        super().__init__(bits, group, bias, tuple(codes.shape))
        self._version = version
        columns = codes.shape[1]
        self.register_buffer("qweight", words_of(codes.t(), 0, bits))
        self.register_buffer("qzeros", words_of((zeros.t() - int(version == 1)) % 2**bits, 1, bits))
        self.register_buffer("scales", scales.t().half().contiguous())
        place = torch.arange(columns, dtype=torch.int32, device=codes.device)
        self.register_buffer("g_idx", place // (columns if group == -1 else group))

    def qzero_format(self) -> int:
        return self._version


class AwqTorchLinear(_Packed):
    """Of gptqmodel, for AWQ: words along rows, in an order of their own."""

    def __init__(self, codes: Tensor, scales: Tensor, zeros: Tensor, group: int, bias: Any) -> None:
        super().__init__(4, group, bias, tuple(codes.shape))
        self.register_buffer("qweight", words_of(_alternating(codes.t()), 1))
        self.register_buffer("qzeros", words_of(_alternating(zeros.t()), 1))
        self.register_buffer("scales", scales.t().half().contiguous())


class MarlinLinear(AwqTorchLinear):
    """Of gptqmodel; it shuffles its weights."""


for _class in (TorchLinear, AwqTorchLinear, MarlinLinear):
    _class.__module__ = "gptqmodel.nn_modules.qlinear.torch"


def _alternating(codes: Tensor) -> Tensor:
    return codes.unflatten(1, (-1, 8))[:, :, [0, 2, 4, 6, 1, 3, 5, 7]].flatten(1)


def grouped(make: Callable[..., nn.Module], linear: Any, group: int, symmetric: bool, **options: Any) -> tuple:
    """A layer of the shape of `linear`, made by `make`, and the weight that it stands for."""
    out, columns = linear.weight.shape
    generator = torch.Generator().manual_seed(out * columns)
    bits = options.get("bits", 4)
    groups = columns // (columns if group == -1 else group)
    codes = torch.randint(0, 2**bits, (out, columns), generator=generator)
    zeros = torch.full((out, groups), 2 ** (bits - 1))
    zeros = zeros if symmetric else torch.randint(1, 2**bits, (out, groups), generator=generator)
    scales = (torch.rand(out, groups, generator=generator) + 0.5) * (0.3 / 2**bits)
    scales = scales.bfloat16().float()  # which both dtypes hold
    device = linear.weight.device
    codes, zeros, scales = codes.to(device), zeros.to(device), scales.to(device)
    spread = [one.repeat_interleave(columns // groups, 1) for one in (zeros, scales)]
    layer = make(codes, scales, zeros, group, linear.bias, **options)
    return layer, (codes - spread[0]) * spread[1]


def replaced(model: Any, plain: Any, make: Callable[[nn.Linear], Tuple[nn.Module, Tensor]]) -> None:
    """Puts layers in the place of a model's linear layers, but for its head's, and the weights that they stand for into those
    of `plain`, the same model. `make` returns both."""
    linears = [module for module in plain.base_model.modules() if type(module) is nn.Linear]
    for parent in list(model.base_model.modules()):
        for name, child in list(parent._modules.items()):
            if type(child) is nn.Linear:
                parent._modules[name], weight = make(child)
                with torch.no_grad():
                    linears.pop(0).weight.copy_(weight)

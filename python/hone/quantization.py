"""hone.quantize_weights(weight), and hone.replace_linear_with_quantized(model): gives the linear layers of an
existing model weights of 4 or 8 bits.

    for name, old, new in hone.replace_linear_with_quantized(model, bits=4, skip=["lm_head"]):
        print(f"{name}: {old.__name__} -> {new.__name__}")

What it needs is the weights alone: no data, no training. It is meant for inference with models of bf16 or
fp16; for those of float32 there are no kernels.
"""

from __future__ import annotations

import fnmatch
from typing import Dict, Iterable, List, Optional, Tuple, Type

import torch
from torch import Tensor, nn

from . import nn as hone_nn
from ._nn.quantized import Bits, ffn_group, format_of, group_of
from ._operators.stored import MAX_IN, MAX_OUT, StoredWeight
from ._weights import packing
from ._weights.packing import Packed

Swap = Tuple[str, Type[nn.Module], Type[nn.Module]]

# These read the weights of their layers instead of calling them; a FusedFFN is replaced as a whole.
READERS = (hone_nn.FusedFFN, nn.MultiheadAttention, nn.TransformerEncoderLayer)


def quantize_weights(
    weight: Tensor, format: str = "w4a16", group: int = 0, *, zeros: bool = False, one_scale: bool = False,
    scale_dtype: Optional[torch.dtype] = None, search: bool = True,
) -> Packed:  # fmt: skip
    """(codes, scales, zeros) of a weight [out_features, in_features], as those of hone.QuantizedLinear.

    format, group, zeros and one_scale are those of hone.QuantizedLinear, scale_dtype (None: the weight's, or
    bf16) that of w4a16's scales; search=False takes scales that clip nothing. A CUDA tensor is quantized by
    its GPU, which the call waits for, others by the host: the same bits. Raises ValueError for weights that
    are infinite or NaN, and for scales beyond the range of scale_dtype.
    """
    if weight.dim() != 2 or not weight.is_floating_point():
        raise ValueError(
            f"weight: it is {list(weight.shape)} of {weight.dtype}; allowed is [out_features, in_features] "
            f"of floating-point numbers"
        )
    if scale_dtype is None:
        scale_dtype = weight.dtype if weight.dtype == torch.float16 else torch.bfloat16
    stored = StoredWeight(weight.shape[0], weight.shape[1], format, group, one_scale)
    return packing.quantize(weight, stored, scale_dtype, zeros, search)


def replace_linear_with_quantized(
    model: nn.Module, bits: Bits = 4, group: Optional[int] = None, *, skip: Iterable[str] = ()
) -> List[Swap]:
    """Puts a hone.nn.QuantizedLinear in the place of each torch.nn.Linear and hone.nn.Linear in `model`, and
    a hone.nn.QuantizedFFN in that of each hone.nn.FusedFFN, and returns (name, old class, new class).

    bits and group are those of from_float(); layers whose in_features the group does not divide are left as
    they are, as are those with a norm, with hooks, or in a module that reads their weights itself; a FusedFFN
    is, where one of its layers is. skip: names of layers, or of what they are in, as in named_modules(),
    their last parts, or patterns ("lm_head", "layers.0.*"). A module that stands in several places is
    quantized once. They are replaced one by one, so that memory for one more is enough. Replace before
    torch.compile().
    """
    format_of(bits)
    patterns = [skip] if isinstance(skip, str) else list(skip)
    made: Dict[int, nn.Module] = {}  # by the id of the old module, of which nothing is kept
    swapped: List[Swap] = []
    parents = [
        (name, module)
        for name, module in model.named_modules()
        if module._modules and not isinstance(module, READERS)
    ]
    for parent_name, parent in parents:
        for child_name in list(parent._modules):
            child = parent._modules[child_name]
            name = f"{parent_name}.{child_name}".lstrip(".")
            if id(child) not in made:
                new = _replacement(name, child, bits, group, patterns)
                if new is None:
                    continue
                made[id(child)] = new
                swapped.append((name, type(child), type(new)))
            elif _is_skipped(name, patterns):
                continue
            setattr(parent, child_name, made[id(child)])
    return swapped


def _replacement(
    name: str, module: Optional[nn.Module], bits: Bits, group: Optional[int], skip: List[str]
) -> Optional[nn.Module]:
    """What takes the place of a module; None: it stays."""
    if type(module) is hone_nn.FusedFFN:
        return _quantized_ffn(name, module, bits, group, skip)
    if _is_skipped(name, skip) or not _can_be_replaced(module, bits, group):
        return None
    assert isinstance(module, nn.Linear)
    return hone_nn.QuantizedLinear.from_float(module, bits, group)


def _quantized_ffn(
    name: str, ffn: hone_nn.FusedFFN, bits: Bits, group: Optional[int], skip: List[str]
) -> Optional[nn.Module]:
    layers = {part: getattr(ffn, part) for part in ("gate_proj", "up_proj", "down_proj")}
    group = ffn_group(bits, ffn.up_proj.in_features, ffn.up_proj.out_features, group)
    stays = [
        _is_skipped(f"{name}.{part}", skip) or not _can_be_replaced(layer, bits, group)
        for part, layer in layers.items()
        if layer is not None
    ]
    if any(stays) or ffn._forward_hooks or ffn._forward_pre_hooks:
        return None
    gate, up, down = layers.values()
    return hone_nn.QuantizedFFN.from_float(
        gate, up, down, bits, group, activation=ffn.activation, norm=ffn.norm
    )


def _is_skipped(name: str, patterns: List[str]) -> bool:
    """Whether a pattern names it, or a module that it is in."""
    parts = name.split(".") if name else []
    names = [".".join(parts[: count + 1]) for count in range(len(parts))]
    return any(fnmatch.fnmatchcase(part, pattern) for part in (*names, *parts) for pattern in patterns)


def _can_be_replaced(module: Optional[nn.Module], bits: Bits, group: Optional[int]) -> bool:
    if type(module) not in (nn.Linear, hone_nn.Linear) or getattr(module, "norm", None) is not None:
        return False
    assert module is not None
    size = group_of(format_of(bits), module.in_features, group)
    return (
        1 <= module.in_features <= MAX_IN
        and 1 <= module.out_features <= MAX_OUT
        and module.weight.is_floating_point()
        and not (module._forward_hooks or module._forward_pre_hooks)
        and (size == 0 or module.in_features % size == 0)
    )

"""hone.replace_linear_with_quantized(model): gives the linear layers of an existing model weights of 4 or 8
bits.

    for name, old, new in hone.replace_linear_with_quantized(model, bits=4, skip=["lm_head"]):
        print(f"{name}: {old.__name__} -> {new.__name__}")

What it needs is the weights alone: no data, no training. It is meant for inference with models of bf16 or
fp16; for those of float32 there are no kernels.
"""

from __future__ import annotations

import fnmatch
from typing import Dict, Iterable, List, Optional, Tuple, Type

from torch import nn

from . import nn as hone_nn
from ._nn_quantized import Bits, format_of, group_of

MAX_IN, MAX_OUT = 262144, 1048576  # of hone_quantized_linear
Swap = Tuple[str, Type[nn.Module], Type[nn.Module]]

# These read the weights of their layers instead of calling them.
_READERS = (hone_nn.FusedFFN, nn.MultiheadAttention, nn.TransformerEncoderLayer)


def replace_linear_with_quantized(
    model: nn.Module, bits: Bits = 4, group: Optional[int] = None, *, skip: Iterable[str] = ()
) -> List[Swap]:
    """Puts a hone.nn.QuantizedLinear in the place of each torch.nn.Linear and hone.nn.Linear in `model`, and
    returns (name, old class, new class).

    bits and group are those of QuantizedLinear.from_float(); layers whose in_features the group does not
    divide are left as they are, as are those with a norm, with hooks, or in a module that reads their weights
    itself. skip: names of layers, or of what they are in, as in named_modules(), their last parts, or
    patterns ("lm_head", "layers.0.*"). A layer that stands in several places is quantised once. Layers are
    replaced one by one, so that memory for one more is enough. Replace before torch.compile().
    """
    format_of(bits)
    patterns = [skip] if isinstance(skip, str) else list(skip)
    made: Dict[int, hone_nn.QuantizedLinear] = {}  # by the id of the old layer, of which nothing is kept
    swapped: List[Swap] = []
    for parent_name, parent in [(name, module) for name, module in model.named_modules() if module._modules]:
        if isinstance(parent, _READERS):
            continue
        for child_name, child in list(parent._modules.items()):
            name = f"{parent_name}.{child_name}".lstrip(".")
            if _is_skipped(name, patterns) or not _can_be_replaced(child, bits, group):
                continue
            if id(child) not in made:
                made[id(child)] = hone_nn.QuantizedLinear.from_float(child, bits, group)
                swapped.append((name, type(child), hone_nn.QuantizedLinear))
            setattr(parent, child_name, made[id(child)])
    return swapped


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

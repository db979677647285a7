"""Layers that quantizers of transformers put into models (GPTQ, AWQ and FP8), as hone.nn.QuantizedLinear.

A layer is known by its class and the package that this comes from. Of GPTQ and AWQ those are taken whose weights stand as in
the checkpoint; other kernels of these packages shuffle them for themselves.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch
from torch import Tensor, nn

from .. import nn as hone_nn
from .._operators.stored import StoredWeight
from .._weights.packing import Packed
from .._weights.repack import packed_4, packed_8, unpacked
from .weights import Unsupported

Swap = Tuple[str, Any, Any]

_IN_ORDER = ("TorchLinear", "TorchQuantLinear", "TritonV2Linear", "TritonV2QuantLinear", "QuantLinear")
_AWQ_IN_ORDER = ("AwqTorchLinear", "AwqTorchQuantLinear", "AwqGEMMLinear", "AwqGEMMQuantLinear", "WQLinear_GEMM")
_PACKAGES = ("gptqmodel", "auto_gptq", "optimum", "awq")
_FP8 = "transformers.integrations.finegrained_fp8"
_AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)  # where the rows of a word of eight stand in it
_BLOCK = 128  # rows and columns of fp8 with one scale


class _Form(NamedTuple):
    """What a layer becomes."""

    format: str
    group: int
    zeros: bool


class _Kind(NamedTuple):
    """How a class of layers is read: what it becomes, for a layer of it, and its codes, scales and zero points."""

    form: Callable[[Any], _Form]
    read: Callable[[Any, StoredWeight, torch.dtype], Packed]


class _Layer(NamedTuple):
    name: str
    parent: nn.Module
    child: str
    old: Any
    kind: _Kind
    form: _Form


def adopt(base: nn.Module, check: Callable[[], Any]) -> List[Swap]:
    """Puts Hone's layers in the place of such ones, one by one, and returns what it replaced. `check` is called before with
    layers in their places that have no weights: what it raises, and Unsupported for layers that do not fit, leaves the model
    as it was."""
    layers = _found(base)
    if not layers:
        return []
    dtype = next((p.dtype for p in base.parameters() if p.dtype in (torch.bfloat16, torch.float16)), torch.float32)
    if dtype == torch.float32:
        raise Unsupported("model: its other weights are not of bfloat16 or float16; allowed are these beside packed ones")
    try:
        for layer in layers:
            setattr(layer.parent, layer.child, _empty(layer, dtype, "meta"))
        check()
    finally:
        for layer in layers:
            setattr(layer.parent, layer.child, layer.old)
    swaps: List[Swap] = []
    while layers:
        layer = layers.pop(0)
        made = _empty(layer, dtype, "meta")
        packed = layer.kind.read(layer.old, made.stored_weight, dtype)
        made.codes = packed.codes.view(torch.uint8) if made.format == "fp8" else packed.codes
        made.scales, made.zeros = packed.scales, packed.zeros
        setattr(layer.parent, layer.child, made.train(layer.old.training))
        swaps.append((layer.name, type(layer.old), type(made)))
    return swaps


def packed_classes(base: nn.Module) -> List[str]:
    """Names of the classes of such layers in a model."""
    return sorted({type(module).__name__ for module in base.modules() if _is_packed(module)})


def _is_packed(module: nn.Module) -> bool:
    cls = type(module)
    return cls.__module__ == _FP8 or (cls.__module__.partition(".")[0] in _PACKAGES and hasattr(module, "qweight"))


def _found(base: nn.Module) -> List[_Layer]:
    found = []
    for parent_name, parent in base.named_modules():
        for child, old in parent._modules.items():
            if old is not None and _is_packed(old):
                name = f"{parent_name}.{child}".lstrip(".")
                kind = _kind_of(name, old)
                found.append(_Layer(name, parent, child, old, kind, kind.form(old)))
    return found


def _kind_of(name: str, layer: Any) -> _Kind:
    known = _KINDS.get(type(layer).__name__)
    if known is None:
        raise Unsupported(
            f"{name}: it is a {type(layer).__module__}.{type(layer).__name__}, which keeps its weights in an order of its "
            f"own; allowed are {', '.join(_KINDS)}: load the model with the backend 'torch'"
        )
    return known


def _empty(layer: _Layer, dtype: torch.dtype, device: str) -> hone_nn.QuantizedLinear:
    """One without codes, but with the bias."""
    old, form = layer.old, layer.form
    bias = getattr(old, "bias", None)
    made = hone_nn.QuantizedLinear(
        _features(old)[0], _features(old)[1], form.format, form.group, False, device, dtype, zeros=form.zeros
    )
    if bias is not None:
        made.bias = nn.Parameter(bias.detach().to(dtype), requires_grad=False)
    return made


def _features(layer: Any) -> Tuple[int, int]:
    """Columns and rows; older packages wrote them without a line between."""
    names = (("in_features", "infeatures"), ("out_features", "outfeatures"))
    found = [next(getattr(layer, name) for name in pair if hasattr(layer, name)) for pair in names]
    return found[0], found[1]


def _grouped(layer: Any) -> Tuple[int, int]:
    """Bits and columns of a group, 0: all, of GPTQ and AWQ. Raises Unsupported."""
    bits = getattr(layer, "bits", None) or getattr(layer, "w_bit", None)
    columns = _features(layer)[0]
    group = columns if layer.group_size in (-1, columns) else int(layer.group_size)
    if bits not in (4, 8) or (group != columns and (bits == 8 or group not in (32, 64, 128) or columns % group)):
        raise Unsupported(
            f"layer: it has {bits} bits in groups of {group} of {columns} columns; allowed are 4 bits in groups of 32, 64, "
            f"128 or all, and 8 bits in one of all"
        )
    if getattr(layer, "adapter", None) is not None or getattr(layer, "planar", False):
        raise Unsupported("layer: it has an adapter, or planes of bits; allowed are those without")
    return bits, 0 if group == columns else group


def _gptq_form(layer: Any) -> _Form:
    bits, group = _grouped(layer)
    columns, rows = _features(layer)
    groups, a_word = columns // (group or columns), 32 // bits
    _check_shape(layer, "qweight", (columns // a_word, rows))
    _check_shape(layer, "qzeros", (groups, rows // a_word))
    _check_shape(layer, "scales", (groups, rows))
    order = getattr(layer, "g_idx", None)
    if order is not None and not bool((order == torch.arange(columns, device=order.device) // (group or columns)).all()):
        raise Unsupported("layer: its columns are ordered by desc_act; allowed are layers quantized without it")
    if bits == 8:
        if not bool((_gptq_zeros(layer, 8) == 128).all()):
            raise Unsupported("layer: it has zero points beside 8 bits; allowed are symmetric ones")
        return _Form("w8a16", 0, False)
    return _Form("w4a16", group, bool((_gptq_zeros(layer, 4) != 8).any()))


def _gptq_zeros(layer: Any, bits: int) -> Tensor:
    """[out, groups]. The first format of files has them less 1, which its packages say of their layers."""
    said = getattr(layer, "qzero_format", None)
    less = 1 if said is None or said() == 1 else 0
    return ((unpacked(layer.qzeros, bits, 1) + less) & ((1 << bits) - 1)).t()


def _gptq_read(layer: Any, stored: StoredWeight, dtype: torch.dtype) -> Packed:
    bits = 4 if stored.format == "w4a16" else 8
    codes, scales = unpacked(layer.qweight, bits, 0).t(), layer.scales.t()
    if bits == 8:
        return packed_8(codes, scales)
    zeros = _gptq_zeros(layer, 4)
    return packed_4(codes, scales.to(dtype), zeros if bool((zeros != 8).any()) else None, stored)


def _awq_form(layer: Any) -> _Form:
    bits, group = _grouped(layer)
    if bits != 4:
        raise Unsupported("layer: AWQ of 8 bits; allowed are 4")
    columns, rows = _features(layer)
    _check_shape(layer, "qweight", (columns, rows // 8))
    _check_shape(layer, "qzeros", (columns // (group or columns), rows // 8))
    _check_shape(layer, "scales", (columns // (group or columns), rows))
    return _Form("w4a16", group, True)


def _awq_read(layer: Any, stored: StoredWeight, dtype: torch.dtype) -> Packed:
    codes, zeros = (_awq_rows(tensor) for tensor in (layer.qweight, layer.qzeros))
    return packed_4(codes, layer.scales.t().to(dtype), zeros, stored)


def _awq_rows(words: Tensor) -> Tensor:
    """[rows, ...] of words along rows, whose eight stand in another order."""
    codes = unpacked(words, 4, 1).unflatten(1, (-1, 8))
    return codes[:, :, list(_AWQ_ORDER)].flatten(1).t()


def _fp8_form(layer: Any) -> _Form:
    if layer.weight.dtype != torch.float8_e4m3fn:
        raise Unsupported(f"layer: its weight is of {layer.weight.dtype}; allowed is torch.float8_e4m3fn")
    if layer.activation_scheme != "dynamic":
        raise Unsupported(
            f"layer: its activation_scheme is {layer.activation_scheme!r}; allowed is 'dynamic', scales of what is multiplied"
        )
    if layer.block_size is None:
        return _Form("fp8", 0, False)
    if tuple(layer.block_size) != (_BLOCK, _BLOCK) or layer.in_features % _BLOCK:
        raise Unsupported(
            f"layer: its scales are of blocks {list(layer.block_size)} of {layer.in_features} columns; allowed are blocks of "
            f"{_BLOCK} x {_BLOCK} that fill the columns, or one scale"
        )
    return _Form("fp8", _BLOCK, False)


def _fp8_read(layer: Any, stored: StoredWeight, dtype: torch.dtype) -> Packed:
    scales = layer.weight_scale_inv.detach().float()
    scales = scales.reshape(stored.scales_shape) if stored.group else scales.reshape(1).expand(stored.rows)
    return Packed(layer.weight.detach().contiguous(), scales.contiguous(), None)


def _check_shape(layer: Any, name: str, wanted: Tuple[int, int]) -> None:
    tensor = getattr(layer, name)
    if tuple(tensor.shape) != wanted:
        raise Unsupported(
            f"layer: its {name} is {list(tensor.shape)}; allowed is {list(wanted)}, as in checkpoints: load the model with "
            f"the backend 'torch'"
        )


_KINDS: Dict[str, _Kind] = {
    **{name: _Kind(_gptq_form, _gptq_read) for name in _IN_ORDER},
    **{name: _Kind(_awq_form, _awq_read) for name in _AWQ_IN_ORDER},
    "FP8Linear": _Kind(_fp8_form, _fp8_read),
}

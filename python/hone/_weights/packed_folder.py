"""What a folder that `hone quantize` wrote says of its packed layers, and their tensors; for loading.py.
docs/formats.md has the table. Everything raises ValueError that names file or tensor, and OSError."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

import torch
from torch import Tensor

from .._native.structs import QUANT_FORMATS
from .._operators.stored import MAX_IN, MAX_OUT, StoredWeight, blocks_of
from .._torch.quantized_checks import RESULTS
from . import safetensors
from .packing import LAYOUT_VERSION
from .safetensors import StoredTensor, shown

_CODES = {"w4a16": "U8", "w8a16": "I8", "w8a8": "I8", "fp8": "F8_E4M3"}
_SCALES = {"bf16": "BF16", "fp16": "F16"}
_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
    "BOOL": torch.bool, "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
}  # fmt: skip


class Packing(NamedTuple):
    """The object quantization_config of a config.json."""

    format: str
    group: int
    zeros: bool
    input_order: bool
    dtype: torch.dtype
    layers: Dict[str, Tuple[int, int]]  # [out, in] by name

    def stored(self, layer: str) -> StoredWeight:
        return StoredWeight(*self.layers[layer], self.format, self.group)


def read_packing(folder: Path) -> Packing:
    place = "config.json: quantization_config"
    config: Any = safetensors.read_json(folder / "config.json").get("quantization_config")
    if not isinstance(config, dict) or config.get("quant_method") != "hone":
        raise ValueError(f"{place}: it is none of Hone's; allowed are folders that `hone quantize` wrote")
    layout = config.get("layout")
    if layout != LAYOUT_VERSION:
        raise ValueError(
            f"{place}: the codes are in layout version {layout}; this package reads version "
            f"{LAYOUT_VERSION}: quantize the weights again"
        )

    def value(name: str, allowed: Tuple[Any, ...]) -> Any:
        found = config.get(name)
        if not any(type(found) is type(one) and found == one for one in allowed):
            raise ValueError(f"{place}: {name} is {found!r}; allowed are {', '.join(map(str, allowed))}")
        return found

    format = value("format", tuple(QUANT_FORMATS))
    of_4_bits = (False, True) if format == "w4a16" else (False,)
    return Packing(
        format,
        value("group", {"w4a16": (0, 32, 64, 128), "fp8": (0, 128)}.get(format, (0,))),
        value("zeros", of_4_bits),
        value("input_order", of_4_bits),
        RESULTS[value("dtype", tuple(RESULTS))],
        _read_layers(config.get("layers"), place),
    )


def _read_layers(layers: Any, place: str) -> Dict[str, Tuple[int, int]]:
    if not isinstance(layers, dict) or not layers:
        raise ValueError(f"{place}: it has no object layers with layers in it")
    for name, shape in layers.items():
        whole = isinstance(shape, list) and len(shape) == 2 and all(type(size) is int for size in shape)
        if not whole or not (1 <= shape[0] <= MAX_OUT and 1 <= shape[1] <= MAX_IN):
            raise ValueError(
                f"{place}: layer {shown(name)} is {shown(str(shape))}; allowed is [out, in], out up to "
                f"{MAX_OUT} and in up to {MAX_IN}"
            )
    return {name: (shape[0], shape[1]) for name, shape in layers.items()}


def parts_of(layer: str, packing: Packing, tensors: Dict[str, StoredTensor]) -> Dict[str, StoredTensor]:
    """The tensors of a layer by the names of a QuantizedLinear's buffers, of the right dtypes and shapes."""
    stored = packing.stored(layer)
    codes_shape: Tuple[int, ...] = stored.codes_shape
    if stored.packed:
        blocks = blocks_of(stored.columns)
        codes_shape = (codes_shape[0], blocks, codes_shape[1] // blocks)
    scales: List[Any] = [(stored.scales_shape, _SCALES[_name(packing.dtype)] if packing.format == "w4a16" else "F32")]
    if packing.format in ("w8a8", "fp8") and not packing.group:
        scales.append(((1,), "F32"))
    wanted: Dict[str, List[Any]] = {"codes": [(codes_shape, _CODES[packing.format])], "scales": scales}
    if packing.zeros:
        wanted["zeros"] = [(stored.scales_shape, "U8")]
    if packing.input_order:
        wanted["input_order"] = [((stored.columns,), "I32")]
    found = {}
    for part, allowed in wanted.items():
        tensor = tensors.get(f"{layer}.{part}")
        if tensor is None:
            raise ValueError(f"layer {shown(layer)}: the folder has no tensor {shown(f'{layer}.{part}')}")
        if (tensor.shape, tensor.dtype) not in allowed:
            shape, dtype = allowed[0]
            raise ValueError(
                f"{tensor}: it is {tensor.dtype} {list(tensor.shape)}; needed is {dtype} {list(shape)}"
            )
        found[part] = tensor
    return found


def _name(dtype: torch.dtype) -> str:
    return next(name for name, found in RESULTS.items() if found is dtype)


def read_part(part: str, tensor: StoredTensor, stored: StoredWeight) -> Tensor:
    """As a QuantizedLinear of `stored` holds it."""
    if part == "codes":
        dtype = torch.int8 if stored.format == "w8a8" else torch.uint8
        return _bytes_of(tensor).view(dtype).view(stored.codes_shape)
    value = read_tensor(tensor)
    if part == "scales":
        usable = bool((value.float().abs() < 2.0**35).all())  # false of what is no number, too
        _require(tensor, usable, "scales that are too large, infinite or no number", "magnitudes below 2^35")
        return value.expand(stored.scales_shape).contiguous()  # one for all becomes one a row
    if part == "zeros":
        _require(tensor, int(value.max()) <= 15, f"the zero point {int(value.max())}", "0 to 15")
    elif part == "input_order":
        is_permutation = torch.equal(value.long().sort().values, torch.arange(stored.columns))
        allowed = f"a permutation of 0 to {stored.columns - 1}"
        _require(tensor, is_permutation, "indices that are missing or stand twice", allowed)
    return value


def _require(tensor: StoredTensor, fits: bool, found: str, allowed: str) -> None:
    if not fits:
        raise ValueError(f"{tensor}: it has {found}; allowed: {allowed}")


def read_tensor(tensor: StoredTensor) -> Tensor:
    dtype = _DTYPES.get(tensor.dtype)
    if dtype is None:
        raise ValueError(f"{tensor}: its dtype is {tensor.dtype}; allowed are {', '.join(_DTYPES)}")
    return _bytes_of(tensor).view(dtype).view(tensor.shape)


def _bytes_of(tensor: StoredTensor) -> Tensor:
    data = tensor.read()
    return torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)

"""Weights as codes of 4 or 8 bits in PyTorch: quantizing, which libhone does, packing of codes that are
there, and the inverses of both, on whichever device a weight is. The places are those of docs/formats.md and
kernel_templates/quantized_linear/layout.cuh.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple, Optional

import torch
from torch import Tensor

from .._native import library, structs
from .._native.arrays import torch_dtype
from .._operators.stored import BLOCK, StoredWeight
from .._torch.prepared import ALIGNMENT, DTYPES, on, pointer, raw_stream
from ..runtime import runtime_of

LAYOUT_VERSION = 1  # of the places; another number: weights have to be packed again

_SCALED_BLOCK = 128  # rows and columns of fp8 that share a scale, in groups


class Packed(NamedTuple):
    """The arrays of a stored weight, of the shapes that StoredWeight tells."""

    codes: Tensor
    scales: Tensor
    zeros: Optional[Tensor]


def _padded(values: Tensor, rows: int, columns: int, padding: int) -> Tensor:
    """With rows and columns behind it up to these numbers."""
    found = values.new_full((rows, columns), padding)
    found[: values.shape[0], : values.shape[1]] = values
    return found


def _up(extent: int) -> int:
    return -(-extent // BLOCK) * BLOCK


# A row of a block is 16 w + 8 h + g, a column 16 s + 8 c + 2 t + l, or, where halves q of its columns come
# first, 32 q + 16 s + 8 c + 2 t + l. Warp w, lane 4 g + t has the code.


def pack_w4(codes: Tensor, padding: Optional[Tensor] = None) -> Tensor:
    """Codes 0 to 15, uint8 [out, in] -> uint8 [blocks of rows, bytes]. Padding gets the code 8, in columns
    padding[row] where that is given."""
    out, columns = codes.shape
    wide = _padded(codes, _up(out), _up(columns), 8)
    if padding is not None:
        wide[:out, columns:] = padding[:, None]
    parts = wide.view(-1, 4, 2, 8, _up(columns) // BLOCK, 4, 2, 4, 2)  # w, h, g, block, s, c, t, l
    ordered = parts.permute(0, 4, 1, 3, 7, 5, 8, 6, 2)  # blocks, w, g, t, s, l, c, h
    return (ordered[..., 0] | ordered[..., 1] << 4).reshape(_up(out) // BLOCK, -1)


def unpack_w4(packed: Tensor, out: int, columns: int) -> Tensor:
    """The inverse: uint8 [out, columns]."""
    rows, blocks = packed.shape[0], _up(columns) // BLOCK
    bytes_of = packed.view(rows, blocks, 4, 8, 4, 4, 2, 2)  # blocks, w, g, t, s, l, c
    parts = torch.stack((bytes_of & 15, bytes_of >> 4), dim=-1)
    wide = parts.permute(0, 2, 8, 3, 1, 5, 7, 4, 6).reshape(rows * BLOCK, blocks * BLOCK)
    return wide[:out, :columns].contiguous()


def pack_w8(codes: Tensor) -> Tensor:
    """Codes int8 [out, in] -> uint8 [blocks of rows, bytes]. Padding gets the code 0."""
    out, columns = codes.shape
    wide = _padded(codes, _up(out), _up(columns), 0).view(torch.uint8)
    parts = wide.view(-1, 4, 2, 8, _up(columns) // BLOCK, 2, 2, 2, 4, 2)  # w, h, g, block, q, s, c, t, l
    return parts.permute(0, 4, 5, 1, 3, 8, 6, 7, 9, 2).reshape(_up(out) // BLOCK, -1)


def unpack_w8(packed: Tensor, out: int, columns: int) -> Tensor:
    """The inverse: int8 [out, columns]."""
    rows, blocks = packed.shape[0], _up(columns) // BLOCK
    parts = packed.view(rows, blocks, 2, 4, 8, 4, 2, 2, 2, 2)  # blocks, q, w, g, t, s, c, l, h
    wide = parts.permute(0, 3, 9, 4, 1, 2, 6, 7, 5, 8).reshape(rows * BLOCK, blocks * BLOCK)
    return wide[:out, :columns].contiguous().view(torch.int8)


def pack_scales(scales: Tensor, groups: int, padding: int = 0) -> Tensor:
    """Scales of w4a16 [out, groups of a row] -> [blocks of rows, groups, 64]; zero points likewise, which are
    padded with 8."""
    wide = _padded(scales, _up(scales.shape[0]), groups, padding)
    parts = wide.view(-1, 4, 2, 8, groups)  # block, w, h, g, group
    return parts.permute(0, 4, 1, 3, 2).reshape(-1, groups, BLOCK)


def unpack_scales(packed: Tensor, out: int, groups: int) -> Tensor:
    """The inverse: [out, groups], of which packed ones may have more."""
    rows, found, _ = packed.shape
    wide = packed.view(rows, found, 4, 8, 2).permute(0, 2, 4, 3, 1).reshape(rows * BLOCK, found)
    return wide[:out, :groups].contiguous()


def quantize(
    weight: Tensor, stored: StoredWeight, dtype: torch.dtype, zeros: bool = False, search: bool = True
) -> Packed:
    """weight [rows, columns] of floating-point numbers; dtype is that of w4a16's scales. What is chosen is in
    docs/formats.md: by the GPU for CUDA tensors, by the host for others, the same bits. Raises ValueError for
    weights that are infinite or NaN, and for scales beyond the range of dtype."""
    weight = weight.detach()
    if weight.dtype not in DTYPES:
        weight = weight.float()
    description = _describe(weight, stored, DTYPES[dtype], zeros, search)
    if weight.is_cuda:
        return _quantize_on_device(_aligned(weight), stored, description)
    return _quantize_on_host(weight, stored, description)


def _describe(
    weight: Tensor, stored: StoredWeight, scale_dtype: str, zeros: bool, search: bool
) -> structs.QuantizeWeights:
    """hone_quantize_weights for the rows of this weight."""
    kind = structs.QuantizeWeights
    values = {
        "dtype": structs.DTYPES[DTYPES[weight.dtype]],
        "in": stored.columns,
        "max_out": stored.rows,
        "group": stored.group,
        "format": structs.QUANT_FORMATS[stored.format],
        "zeros": zeros,
        "one_scale": stored.one_scale,
        "scale_dtype": structs.DTYPES[scale_dtype],
        "search": search,
    }
    return kind(struct_size=ctypes.sizeof(kind), **values)


def _make(
    stored: StoredWeight, description: structs.QuantizeWeights, device: torch.device
) -> Packed:
    """Tensors for what is written."""
    words = {number: word for word, number in structs.DTYPES.items()}
    scales_dtype = torch_dtype(torch, stored.scales_dtype(words[description.scale_dtype]))
    codes = torch.empty(stored.codes_shape, dtype=torch_dtype(torch, stored.codes_dtype), device=device)
    scales = torch.empty(stored.scales_shape, dtype=scales_dtype, device=device)
    zeros = torch.empty(stored.scales_shape, dtype=torch.uint8, device=device) if description.zeros else None
    return Packed(codes, scales, zeros)


def _arguments(weight: Tensor, packed: Packed, workspace: Optional[Tensor] = None) -> bytes:
    kind = structs.QuantizeWeightsArgs
    return bytes(
        kind(
            struct_size=ctypes.sizeof(kind), weight=weight.data_ptr(), codes=packed.codes.data_ptr(),
            scales=packed.scales.data_ptr(), zeros=pointer(packed.zeros), workspace=pointer(workspace),
            weight_stride=weight.stride(0) if weight.is_cuda else 0,
        )
    )  # fmt: skip


def _quantize_on_device(
    weight: Tensor, stored: StoredWeight, description: structs.QuantizeWeights
) -> Packed:
    """On PyTorch's current stream, which the call waits for."""
    device, rows = weight.get_device(), stored.rows
    runtime = runtime_of(device).handle
    size = ctypes.c_size_t()
    needed = library.function("hone_quantize_weights_workspace")
    run = library.function("hone_quantize_weights_on_device")
    with on(device):
        library.check(needed(runtime, ctypes.byref(description), rows, ctypes.byref(size)))
        workspace = torch.empty((size.value,), dtype=torch.uint8, device=weight.device)
        packed = _make(stored, description, weight.device)
        arguments = _arguments(weight, packed, workspace if size.value else None)
        library.check(run(runtime, ctypes.byref(description), arguments, rows, raw_stream(device)))
    return packed


def _aligned(weight: Tensor) -> Tensor:
    """A copy of a weight whose rows the kernels may not be able to read."""
    apart = weight.stride(0) * weight.element_size()
    has_rows = weight.stride(1) == 1 and weight.stride(0) >= weight.shape[1]
    if weight.data_ptr() % ALIGNMENT == 0 and (weight.is_contiguous() or has_rows and apart % ALIGNMENT == 0):
        return weight
    return weight.clone(memory_format=torch.contiguous_format)


def _quantize_on_host(weight: Tensor, stored: StoredWeight, description: structs.QuantizeWeights) -> Packed:
    rows = weight.cpu().contiguous()
    packed = _make(stored, description, rows.device)
    run = library.function("hone_quantize_weights_on_host")
    arguments = _arguments(rows, packed)
    library.check(run(ctypes.byref(description), arguments, stored.rows, torch.get_num_threads()))
    return Packed(*(None if tensor is None else tensor.to(weight.device) for tensor in packed))


def spread(scales: Tensor, stored: StoredWeight) -> Tensor:
    """float32 scales of 8-bit formats, so that they multiply codes [rows, columns] element by element."""
    if not stored.group:
        return scales.view(-1, 1)
    blocks = scales.repeat_interleave(_SCALED_BLOCK, 0)[: stored.rows]
    return blocks.repeat_interleave(_SCALED_BLOCK, 1)


def dequantize(packed: Packed, stored: StoredWeight, dtype: torch.dtype) -> Tensor:
    """[rows, columns]: what the kernels multiply with, rounded once."""
    rows, columns = stored.rows, stored.columns
    if stored.format != "w4a16":
        codes = unpack_w8(packed.codes, rows, columns) if stored.packed else packed.codes
        return (codes.float() * spread(packed.scales, stored)).to(dtype)
    group = stored.group or columns
    codes = unpack_w4(packed.codes, rows, columns).view(rows, -1, group).float()
    groups = columns // group
    points = 8.0 if packed.zeros is None else unpack_scales(packed.zeros, rows, groups).float()[..., None]
    values = (codes - points) * unpack_scales(packed.scales, rows, groups).float()[..., None]
    return values.view(rows, columns).to(dtype)

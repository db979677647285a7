"""Weights as codes of 4 or 8 bits in PyTorch: quantising, packing and their inverses, on whichever device a
weight is. The places are those of docs/formats.md and kernel_templates/quantized_linear/layout.cuh.

Everything is made of a few operations on whole tensors; of w4a16 a slice of rows at a time, for its search
holds several copies of them in float32.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from .quantized_descriptions import BLOCK, StoredWeight, groups_of

LAYOUT_VERSION = 1  # of the places; another number: weights have to be packed again

_MOST_CODE = {"w8a16": 127.0, "w8a8": 127.0, "fp8": 448.0}
_SCALED_BLOCK = 128  # rows and columns of fp8 that share a scale, in groups
_SLICE_ELEMENTS = 1 << 24
# Of the range of a group's weights, tried by the search; above 1 for symmetric codes, which reach to -8 but
# only to 7.
_SHRINKS = (8 / 7, *(1.0 - step / 40 for step in range(15)))


class Packed(NamedTuple):
    """The tensors of a stored weight, of the shapes that StoredWeight tells."""

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


def quantize(weight: Tensor, stored: StoredWeight, dtype: torch.dtype, zeros: bool = False) -> Packed:
    """weight [rows, columns] of float32, bf16 or fp16; dtype is that of w4a16's scales. Each code is the one
    nearest to weight / scale. w4a16 takes, of some, the scale of a group that leaves the least squared error;
    the others' scale puts the largest magnitude at the largest code. Raises ValueError for weights that are
    infinite or no number, which have no scale."""
    if not bool(weight.isfinite().all()):
        raise ValueError("weight: it has elements that are infinite or no number; allowed are finite ones")
    if stored.format == "w4a16":
        return _quantize_w4(weight, stored, dtype, zeros)
    return _quantize_8(weight.float(), stored)


def _quantize_w4(weight: Tensor, stored: StoredWeight, dtype: torch.dtype, zeros: bool) -> Packed:
    out, columns = weight.shape
    group = stored.group or columns
    step = max(1, _SLICE_ELEMENTS // columns)
    parts = [
        _search_w4(rows.float().view(rows.shape[0], columns // group, group), dtype, zeros)
        for rows in weight.detach().split(step)
    ]
    codes, scales, points = (torch.cat(tensors) for tensors in zip(*parts))
    groups = groups_of(columns, stored.group)
    padding = points[:, 0] if zeros and stored.group == 0 else None
    return Packed(
        pack_w4(codes.view(out, columns), padding),
        pack_scales(scales, groups),
        pack_scales(points, groups, 8) if zeros else None,
    )


def _search_w4(values: Tensor, dtype: torch.dtype, zeros: bool) -> Tuple[Tensor, Tensor, Tensor]:
    """Codes like values [rows, groups, group], scales and zero points [rows, groups]."""
    if zeros:
        low, high = values.amin(-1).clamp(max=0), values.amax(-1).clamp(min=0)
        full = (high - low) / 15
    else:
        low = values.new_zeros(values.shape[:-1])
        extreme = values.gather(-1, values.abs().argmax(-1, keepdim=True)).squeeze(-1)
        full = extreme / -8  # the side that reaches further gets the code 0, which stands for -8
    best = None
    for shrink in _SHRINKS:
        scales = (full * shrink).to(dtype)
        points = _zero_points(low, scales.float()) if zeros else torch.full_like(low, 8)
        codes = _codes_w4(values, scales.float(), points)
        error = ((codes - points[..., None]) * scales.float()[..., None] - values).square_().sum(-1)
        if best is None:
            best = [error, scales, points]
            continue
        better = error < best[0]
        best = [torch.where(better, new, old) for new, old in zip((error, scales, points), best)]
    assert best is not None
    _, scales, points = best
    return _codes_w4(values, scales.float(), points).to(torch.uint8), scales, points.to(torch.uint8)


def _zero_points(low: Tensor, scales: Tensor) -> Tensor:
    return (-low * _inverse(scales)).round_().clamp_(0, 15)


def _codes_w4(values: Tensor, scales: Tensor, points: Tensor) -> Tensor:
    codes = (values * _inverse(scales)[..., None]).round_()
    return codes.add_(points[..., None]).clamp_(0, 15)


def _inverse(scales: Tensor) -> Tensor:
    """0 where a scale is 0, or so small that its inverse is infinite: then all codes have the value 0."""
    inverse = scales.reciprocal()
    return torch.where(inverse.isfinite(), inverse, torch.zeros_like(inverse))


def _quantize_8(weight: Tensor, stored: StoredWeight) -> Packed:
    most = _MOST_CODE[stored.format]
    largest = weight.abs().amax(-1)
    if stored.group:
        largest = _block_maxima(weight.abs())
    elif stored.one_scale:
        largest = largest.amax().view(1)
    scales = largest / most
    scaled = (weight * _inverse(spread(scales, stored))).clamp_(-most, most)
    if stored.format == "fp8":
        return Packed(scaled.to(torch.float8_e4m3fn), scales, None)
    codes = scaled.round_().to(torch.int8)
    return Packed(pack_w8(codes) if stored.packed else codes, scales, None)


def _block_maxima(values: Tensor) -> Tensor:
    """Of each 128 x 128; the last rows may be fewer."""
    rows, columns = values.shape
    size = _SCALED_BLOCK
    wide = _padded(values, -(-rows // size) * size, columns, 0)
    return wide.view(-1, size, columns // size, size).amax((1, 3))


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

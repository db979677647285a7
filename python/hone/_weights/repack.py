"""Weights as vLLM and transformers hold those of packed checkpoints, in Hone's layout. Functions of tensors alone; nothing
here imports either or needs a GPU."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .._operators.stored import StoredWeight
from .packing import Packed, pack_scales, pack_w4, pack_w8


def unpacked(words: Tensor, bits: int, along: int) -> Tensor:
    """Codes, uint8, of int32 words that hold 32 / bits of them side by side in dimension `along`, the first in the
    lowest bits."""
    words = words.movedim(along, -1)
    shifts = torch.arange(0, 32, bits, dtype=torch.int32, device=words.device)
    codes = (words[..., None] >> shifts) & ((1 << bits) - 1)
    return codes.flatten(-2).to(torch.uint8).movedim(-1, along)


def by_rows(parameter: Any) -> Tensor:
    """[out, ...] of a parameter of vLLM, which says which dimension is the output's."""
    return parameter.data if parameter.output_dim == 0 else parameter.data.t()


def codes_of(parameter: Any, bits: int) -> Tensor:
    """uint8 [out, in], packed along either."""
    along = 0 if parameter.packed_dim == parameter.output_dim else 1
    return unpacked(by_rows(parameter), bits, along)


def packed_4(codes: Tensor, scales: Tensor, zeros: Optional[Tensor], stored: StoredWeight) -> Packed:
    """codes [out, in], scales and zeros [out, groups] -> Hone's w4a16. Without zeros a code c means c - 8."""
    groups = stored.scales_shape[1]
    padding = zeros[:, 0] if zeros is not None and not stored.group else None
    points = None if zeros is None else pack_scales(zeros, groups, 8).contiguous()
    return Packed(pack_w4(codes, padding).contiguous(), pack_scales(scales, groups).contiguous(), points)


def packed_8(codes: Tensor, scales: Tensor) -> Packed:
    """codes [out, in], each c for c - 128, and scales [out, 1] -> Hone's w8a16."""
    signed = (codes.to(torch.int16) - 128).to(torch.int8)
    return Packed(pack_w8(signed).contiguous(), scales.float().reshape(-1).contiguous(), None)

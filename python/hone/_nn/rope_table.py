"""Cosines and sines of rotary position embeddings, as hone::rope_kv_append and RopeKvAppend read them.
Imported by nn.py; needs PyTorch, not a GPU."""

from __future__ import annotations

import math
from typing import Any, Mapping, Optional, Tuple

import torch
from torch import Tensor

_LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")


def rope_table(
    rotary_dim: int, positions: int, base: float = 10000.0, *, scaling: Optional[Mapping[str, Any]] = None,
    device: Any = None,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """(cos, sin) of positions 0 to `positions` - 1, float32 [positions, rotary_dim / 2] each: column i turns
    by base^(-2 i / rotary_dim) a position, computed in float64, which resolves far positions.

    `scaling` is the `rope_scaling` of a Hugging Face config: "rope_type" (or "type") "default", "linear" with
    a "factor", or "llama3" with "factor", "low_freq_factor", "high_freq_factor" and
    "original_max_position_embeddings". Raises ValueError for others.
    """
    if rotary_dim < 2 or rotary_dim % 2:
        raise ValueError(f"rotary_dim: {rotary_dim}; allowed are even numbers from 2")
    exponents = torch.arange(0, rotary_dim, 2, dtype=torch.float64) / rotary_dim
    frequencies = _scaled(float(base) ** -exponents, scaling or {})
    angles = torch.outer(torch.arange(positions, dtype=torch.float64), frequencies)
    return angles.cos().to(device, torch.float32), angles.sin().to(device, torch.float32)


def _scaled(frequencies: Tensor, scaling: Mapping[str, Any]) -> Tensor:
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    needed = {"default": (), "linear": ("factor",), "llama3": _LLAMA3}.get(kind)
    if needed is None:
        raise ValueError(f"scaling: its rope_type is {kind!r}; allowed are 'default', 'linear' and 'llama3'")
    missing = [name for name in needed if name not in scaling]
    if missing:
        raise ValueError(f"scaling: it has no {missing[0]!r}, which the rope_type {kind!r} needs")
    if kind == "llama3":
        return _llama3(frequencies, *(float(scaling[name]) for name in _LLAMA3))
    return frequencies / float(scaling.get("factor", 1.0)) if kind == "linear" else frequencies


def _llama3(frequencies: Tensor, factor: float, low: float, high: float, original: float) -> Tensor:
    """Llama 3.1's: waves that turned at least `high` times within the original context stay, those that
    turned less than `low` times become `factor` times as long, and between the two the frequencies are
    blended."""
    turns = original * frequencies / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0.0, 1.0)
    return frequencies * (kept + (1 - kept) / factor)

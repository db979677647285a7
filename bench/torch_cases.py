"""What the families of bench/compare_torch.py are made of: a case, its inputs, calls of it, and its dtypes.

A case is a dict of bench/cases/*.json: `op`, the sizes that the family's functions read, and `dtype` (bf16 if
absent). Inputs are one set of tensors by name; every set has its own.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

Case = Dict[str, Any]
Inputs = Dict[str, Tensor]
Call = Callable[[Inputs], Any]

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


class Family(NamedTuple):
    """Functions of a case."""

    inputs: Callable[[Case], Inputs]  # one random set
    peers: Callable[[Case], Dict[str, Call]]  # PyTorch's ways, by name
    reference: Callable[[Case, Inputs], Tuple[Tensor, ...]]  # of the same shapes, in a wider dtype
    work: Callable[[Case], Tuple[int, int]]  # (bytes that have to move, floating-point operations)
    # How wrong a way's outputs are beside the reference; None: by their distance, relative to its length.
    error: Optional[Callable[[Any, Tuple[Tensor, ...]], float]] = None


def dtype_of(case: Case) -> torch.dtype:
    return DTYPES[case.get("dtype", "bf16")]


def randn(*shape: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def wide_dtype(case: Case) -> torch.dtype:
    """float32, or float64 for cases of float32."""
    return torch.float64 if dtype_of(case) == torch.float32 else torch.float32


def wide(case: Case, inputs: Inputs) -> Inputs:
    return {name: tensor.to(wide_dtype(case)) for name, tensor in inputs.items()}


def as_tuple(outputs: Any) -> Tuple[Tensor, ...]:
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def compiled(function: Callable[..., Any], *names: str) -> Call:
    """Inductor's version, compiled once, on flat arguments: no guard sees the dict."""
    optimized = torch.compile(function, dynamic=False)
    return lambda inputs: optimized(*(inputs[name] for name in names))

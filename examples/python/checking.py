"""What the examples share: made-up tensors on the GPU, and comparing with what PyTorch computes in float64.

Exit codes of an example: 0 the results are right, 1 something failed, 3 no usable GPU, 4 the results are
wrong.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

import torch

import hone


def random(
    *shape: int, deviation: float = 1.0, mean: float = 0.0, dtype: torch.dtype = torch.bfloat16
) -> torch.Tensor:
    """Normal numbers on the GPU."""
    return (torch.randn(*shape, device="cuda") * deviation + mean).to(dtype)


def check(found: torch.Tensor, reference: Callable[[], torch.Tensor], allowed: float) -> None:
    """Holds `found` against the reference: the error of all elements together, relative to their size."""
    wanted = reference().double()
    error = ((found.double() - wanted).norm() / wanted.norm()).item()
    results = f"{found.numel()} results on {hone.device_name()}"
    print(f"{results}: relative error {error:.1e} (allowed {allowed:.0e})")
    if not error <= allowed:  # NaN is wrong, too
        sys.exit(4)


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """In float64, with an epsilon of 1e-5."""
    x = x.double()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weight.double()


def run(*examples: Callable[[], Any]) -> None:
    """One after the other; without a GPU it says so and ends with exit code 3."""
    if not torch.cuda.is_available():
        print("no usable GPU: PyTorch sees none", file=sys.stderr)
        sys.exit(3)
    for example in examples:
        example()

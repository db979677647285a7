"""The feed-forward network of an 8B Llama with its norm and residual in one call; held against PyTorch.

    python3 examples/python/fused_ffn.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, rms_norm, run


def fused_ffn() -> None:
    x, norm_weight = random(16, 4096), random(4096, deviation=0.25, mean=1.0)
    shapes = (14336, 4096), (14336, 4096), (4096, 14336)
    gate, up, down = (random(*shape, deviation=1 / 64) for shape in shapes)

    ffn = hone.prepare(hone.FusedFfn(4096, 14336, max_tokens=512, residual=True, norm=True))
    y = ffn(x, gate, up, down, residual=x, norm_weight=norm_weight)  # x + ffn(norm(x)), bf16 [16, 4096]

    check(y, lambda: reference(x, norm_weight, gate, up, down), 1e-2)
    print(ffn.report_text(), end="")


def reference(
    x: torch.Tensor, norm_weight: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor
) -> torch.Tensor:
    """In float64."""
    normed = rms_norm(x, norm_weight)
    between = torch.nn.functional.silu(normed @ gate.double().T) * (normed @ up.double().T)
    return x.double() + between @ down.double().T

if __name__ == "__main__":
    run(fused_ffn)

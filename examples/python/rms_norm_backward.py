"""Gradients of an RMSNorm for 300 tokens; held against PyTorch's autograd.

    python3 examples/python/rms_norm_backward.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, rms_norm, run


def rms_norm_backward() -> None:
    dy, x = random(300, 4096), random(300, 4096)
    weight = random(4096, deviation=0.25, mean=1.0)

    backward = hone.prepare(hone.RmsNormBackward(hidden=4096, max_rows=512))
    dx, dweight = backward(dy, x, weight, epsilon=1e-5)  # bf16 [300, 4096] and [4096]

    check(dx, lambda: reference(dy, x, weight)[0], 4e-3)
    check(dweight, lambda: reference(dy, x, weight)[1], 4e-3)
    print(backward.report_text(), end="")


def reference(dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> tuple:
    """In float64."""
    inputs = [x.double().requires_grad_(), weight.double().requires_grad_()]
    return torch.autograd.grad(rms_norm(*inputs), inputs, dy.double())

if __name__ == "__main__":
    run(rms_norm_backward)

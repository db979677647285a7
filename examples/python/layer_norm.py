"""LayerNorm with a bias; held against PyTorch.

    python3 examples/python/layer_norm.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, run


def layer_norm() -> None:
    x = random(300, 4096)
    weight, bias = random(4096, deviation=0.25, mean=1.0), random(4096)

    norm = hone.prepare(hone.LayerNorm(hidden=4096, max_rows=512))
    y = norm(x, weight, bias=bias, epsilon=1e-5)  # bf16 [300, 4096]

    check(y, lambda: reference(x, weight, bias), 4e-3)
    print(norm.report_text(), end="")


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """In float64."""
    return torch.nn.functional.layer_norm(x.double(), (4096,), weight.double(), bias.double(), 1e-5)

if __name__ == "__main__":
    run(layer_norm)

"""The projection to queries, keys and values of an 8B Llama; held against PyTorch.

    python3 examples/python/linear.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, run


def linear() -> None:
    x, weight, bias = random(16, 4096), random(6144, 4096, deviation=1 / 64), random(6144)

    layer = hone.prepare(hone.Linear(4096, 6144, max_tokens=512, bias=True))
    y = layer(x, weight, bias)  # bf16 [16, 6144]

    check(y, lambda: x.double() @ weight.double().T + bias.double(), 4e-3)
    print(layer.report_text(), end="")

if __name__ == "__main__":
    run(linear)

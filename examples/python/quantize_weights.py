"""The weight of a linear layer as codes of 4 bits, on the GPU; the host has to make the same.

    python3 examples/python/quantize_weights.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, run


def quantize_weights() -> None:
    weight = random(1024, 4096, deviation=1 / 64)

    codes, scales, _ = hone.quantize_weights(weight, "w4a16", group=64)  # on the GPU, where the weight is

    on_host = hone.quantize_weights(weight.cpu(), "w4a16", group=64)
    check(codes, lambda: on_host[0].cuda(), 0)
    check(scales, lambda: on_host[1].cuda(), 0)

if __name__ == "__main__":
    run(quantize_weights)

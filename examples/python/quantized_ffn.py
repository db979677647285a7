"""The feed-forward network of a 1B Llama with weights of 8 bits; held against PyTorch.

    python3 examples/python/quantized_ffn.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, run


def quantized_ffn() -> None:
    x = random(16, 2048)
    weights = [random(*shape, deviation=1 / 64) for shape in ((8192, 2048), (8192, 2048), (2048, 8192))]

    (gate, gate_scales, _), (up, up_scales, _), (down, down_scales, _) = (
        hone.quantize_weights(weight, "w8a16") for weight in weights
    )
    ffn = hone.prepare(hone.QuantizedFfn(2048, 8192, "w8a16", max_tokens=512))
    y = ffn(x, up, up_scales, down, down_scales, gate=gate, gate_scales=gate_scales)  # bf16 [16, 2048]

    check(y, lambda: reference(x, *weights), 3e-2)  # what quantizing loses is in it
    print(ffn.report_text(), end="")


def reference(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """In float64, with the weights as they were."""
    between = torch.nn.functional.silu(x.double() @ gate.double().T) * (x.double() @ up.double().T)
    return between @ down.double().T

if __name__ == "__main__":
    run(quantized_ffn)

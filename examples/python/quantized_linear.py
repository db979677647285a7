"""An RMSNorm whose codes the linear layer behind it multiplies, weight and x in int8; held against PyTorch.

    python3 examples/python/quantized_linear.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, rms_norm, run


def norm_and_layer() -> None:
    x = random(300, 4096)
    gain = random(4096, deviation=0.25, mean=1.0)
    weight = torch.randint(-127, 128, (1024, 4096), dtype=torch.int8, device="cuda")  # codes, and
    scales = torch.rand(1024, dtype=torch.float32, device="cuda")  # what they are multiplied with, a row

    norm = hone.prepare(hone.RmsNorm(hidden=4096, output="int8"))
    layer = hone.prepare(hone.QuantizedLinear(4096, 1024, "w8a8", quantized_x=True))

    codes, x_scales = norm(x, gain)  # int8 [300, 4096], and a scale for each token
    y = layer(codes, weight, scales, x_scales=x_scales)  # bf16 [300, 1024]

    check(y, lambda: reference(x, gain, weight, scales), 3e-2)  # x is rounded to 255 steps
    print(layer.report_text(), end="")


def reference(
    x: torch.Tensor, gain: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor
) -> torch.Tensor:
    """In float64, without codes of x."""
    return rms_norm(x, gain) @ weight.double().T * scales

if __name__ == "__main__":
    run(norm_and_layer)

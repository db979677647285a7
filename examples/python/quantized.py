"""An RMSNorm whose codes the linear layer behind it multiplies, weight and x in int8; held against PyTorch.

    python3 examples/python/quantized.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone


def norm_and_layer() -> None:
    x = torch.randn(300, 4096, dtype=torch.bfloat16, device="cuda")
    gain = torch.randn(4096, dtype=torch.bfloat16, device="cuda")
    weight = torch.randint(-127, 128, (1024, 4096), dtype=torch.int8, device="cuda")  # codes, and
    scales = torch.rand(1024, dtype=torch.float32, device="cuda")  # what they are multiplied with, a row

    norm = hone.prepare(hone.RmsNorm(hidden=4096, output="int8"))
    layer = hone.prepare(hone.QuantizedLinear(4096, 1024, "w8a8", quantized_x=True))

    codes, x_scales = norm(x, gain)  # int8 [300, 4096], and a scale for each token
    y = layer(codes, weight, scales, x_scales=x_scales)  # bf16 [300, 1024]

    check(y, x, gain, weight, scales)
    print(layer.report_text(), end="")


def check(
    y: torch.Tensor, x: torch.Tensor, gain: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor
) -> None:
    """Holds y against products in fp32, relative to the largest; the codes of x have two digits and a half."""
    normed = torch.nn.functional.rms_norm(x.float(), (4096,), gain.float(), 1e-5)
    wanted = torch.mul(torch.nn.functional.linear(normed, weight.float()), scales)
    unit = torch.amax(torch.abs(wanted))
    torch.testing.assert_close(
        torch.div(y.float(), unit), torch.div(wanted, unit), rtol=2e-2, atol=2e-2
    )


if __name__ == "__main__":
    norm_and_layer()

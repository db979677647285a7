"""What the tests on a GPU share: made-up inputs, references in float64, tolerances.

Where PyTorch or a GPU is missing, importing this skips the module that does.
"""

from __future__ import annotations

import unittest
from typing import Any, Optional, Tuple

try:
    import torch
except ModuleNotFoundError:
    raise unittest.SkipTest("PyTorch is not installed") from None
if not torch.cuda.is_available():
    raise unittest.SkipTest("there is no GPU")

from torch import Tensor

import hone

DEVICE = torch.device("cuda", 0)
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
EPSILON = 1e-5

# What one rounding to the dtype and accumulating in float32 may cost: relative to an element, and absolute.
RELATIVE = {torch.float32: 2e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}
ABSOLUTE = {torch.float32: 2e-5, torch.float16: 2e-5, torch.bfloat16: 2e-5}


def randn(*shape: int, dtype: Any = torch.bfloat16, seed: int = 0) -> Tensor:
    """The same numbers for the same shape and seed, whatever the dtype."""
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    return torch.randn(shape, generator=generator, device=DEVICE).to(dtype)


def summed(x: Tensor, residual: Optional[Tensor]) -> Tensor:
    """What is normalised, in float64: x, or x + residual rounded to their dtype. Gradients pass the
    rounding."""
    if residual is None:
        return x.double()
    total = x.double() + residual.double()
    return total + (total.to(x.dtype).double() - total).detach()


def rms_norm(
    x: Tensor, weight: Tensor, residual: Optional[Tensor] = None, epsilon: float = EPSILON
) -> Tensor:
    """In float64."""
    total = summed(x, residual)
    return total * torch.rsqrt(total.square().mean(-1, keepdim=True) + epsilon) * weight.double()


def layer_norm(
    x: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor] = None
) -> Tensor:
    """In float64."""
    total = summed(x, residual)
    centred = total - total.mean(-1, keepdim=True)
    y = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + EPSILON) * weight.double()
    return y if bias is None else y + bias.double()


class Case(unittest.TestCase):
    """Assertions about tensors."""

    def assert_near(self, found: Tensor, wanted: Tensor, looser: float = 1.0) -> None:
        """`found` is `wanted` (float64) but for its dtype's rounding, `looser` times."""
        relative, absolute = RELATIVE[found.dtype] * looser, ABSOLUTE[found.dtype] * looser
        torch.testing.assert_close(found.double(), wanted, rtol=relative, atol=absolute)

    def assert_same(self, found: Tensor, wanted: Tensor) -> None:
        """Bit by bit, dtype and shape."""
        self.assertEqual((found.dtype, found.shape), (wanted.dtype, wanted.shape))
        self.assertTrue(torch.equal(found.view(torch.uint8), wanted.contiguous().view(torch.uint8)))

    def assert_codes(self, codes: Tensor, scale: Tensor, wanted: Tensor, dtype: Any) -> None:
        """codes * scale is `wanted` (float64) but for the rounding to codes and, within, to `dtype`."""
        most = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}[codes.dtype]
        self.assertEqual((scale.dtype, scale.shape), (torch.float32, codes.shape[:-1]))
        if not codes.numel():
            return
        slack = RELATIVE[dtype]
        torch.testing.assert_close(scale.double(), wanted.abs().amax(-1) / most, rtol=slack, atol=1e-12)
        step = scale.double()[..., None]
        if codes.dtype != torch.int8:  # three bits of mantissa, and subnormal steps of 2^-9
            step = torch.maximum(wanted.abs() / 8, step / 512)
        error = (codes.to(torch.float64) * scale.double()[..., None] - wanted).abs()
        allowed = step * 0.501 + wanted.abs() * slack
        self.assertTrue(bool((error <= allowed).all()), f"worst excess {(error - allowed).max().item()}")

    def relative_error(self, found: Tensor, wanted: Tensor) -> float:
        """In the L2 norm."""
        return ((found.double() - wanted).norm() / wanted.norm()).item()


def prepared(description: Any, **options: Any) -> Any:
    """hone.prepare() on the device of the tests."""
    return hone.prepare(description, device=DEVICE.index, **options)


def shaped_inputs(rows: int, hidden: int, dtype: Any) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, residual, weight, bias."""
    return (
        randn(rows, hidden, dtype=dtype, seed=1),
        randn(rows, hidden, dtype=dtype, seed=2),
        randn(hidden, dtype=dtype, seed=3),
        randn(hidden, dtype=dtype, seed=4),
    )

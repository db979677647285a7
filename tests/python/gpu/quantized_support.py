"""What the tests of quantized layers share: weights and x as codes, what they stand for, tolerances."""

from __future__ import annotations

from typing import Any, ContextManager, NamedTuple
from unittest import mock

from support import Case, weight_like

import torch
from torch import Tensor

from hone._weights import packing
from hone._operators.stored import StoredWeight

# One rounding of the result, one of each weight where codes become 16-bit numbers, and the tensor cores' sums
# of fp8.
RELATIVE_L2 = {torch.float16: 1.2e-3, torch.bfloat16: 5e-3}
FP8_SUMS = 1e-3
CODES = {"w8a8": torch.int8, "fp8": torch.float8_e4m3fn}
MOST_CODE = {"w8a8": 127.0, "fp8": 448.0}


class Weight(NamedTuple):
    """A stored weight, and what it stands for, in float64."""

    packed: packing.Packed
    stored: StoredWeight
    values: Tensor


def stored_weight(
    rows: int, columns: int, format: str, group: int = 0, dtype: Any = torch.bfloat16, zeros: bool = False,
    one_scale: bool = False, seed: int = 2,
) -> Weight:  # fmt: skip
    stored = StoredWeight(rows, columns, format, group, one_scale)
    packed = packing.quantize(weight_like(rows, columns, torch.float32, seed), stored, dtype, zeros)
    return Weight(packed, stored, packing.dequantize(packed, stored, torch.float64))


class QuantizedX(NamedTuple):
    codes: Tensor
    scales: Tensor
    values: Tensor  # what they stand for, in float64


def quantize_x(x: Tensor, format: str, group: int = 0, one_scale: bool = False) -> QuantizedX:
    """As kernels do: a scale for each token, for each 128 columns of it, or one."""
    parts = x.double().unflatten(-1, (-1, group or x.shape[-1]))
    largest = parts.abs().amax(-1, keepdim=True)
    scales = (largest.amax() if one_scale else largest).float() / MOST_CODE[format]
    scaled = parts / scales.double()
    codes = (scaled.round() if format == "w8a8" else scaled.float()).to(CODES[format])
    values = (codes.double() * scales.double()).flatten(-2)
    given = scales.view(1) if one_scale else scales.squeeze(-1)
    return QuantizedX(codes.flatten(-2), given if one_scale or group else given.squeeze(-1), values)


def multiplied(x: Tensor, format: str, group: int = 0) -> Tensor:
    """What the products are of, where x comes as it is."""
    return quantize_x(x, format, group).values if format in CODES else x.double()


class QuantizedCase(Case):
    def assert_product(self, found: Tensor, wanted: Tensor, format: str = "w4a16", looser: float = 1) -> None:
        self.assertEqual(found.shape, wanted.shape)
        self.assertTrue(bool(found.isfinite().all()))
        allowed = RELATIVE_L2[found.dtype] + (FP8_SUMS if format == "fp8" else 0.0)
        self.assertLess(self.relative_error(found, wanted), looser * allowed)
        # A single element that is wrong hardly shows in the norm of all of them.
        off, largest = (found.double() - wanted).abs().max().item(), wanted.abs().max().item()
        self.assertLess(off, looser * 10 * allowed * largest)


def no_care(kernel: Any) -> ContextManager[Any]:
    """Where a kernel of hone._torch takes the careful way meanwhile, it fails."""
    return mock.patch.dict(kernel.implementation.__globals__, with_care=mock.Mock(side_effect=AssertionError))

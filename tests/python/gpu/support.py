"""What the tests on a GPU share: made-up inputs, references in float64, tolerances.

Where PyTorch or a GPU is missing, importing this skips the module that does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import unittest
from pathlib import Path
from typing import Any, Iterator, Optional, Tuple

try:
    import torch
except ModuleNotFoundError:
    raise unittest.SkipTest("PyTorch is not installed") from None
if not torch.cuda.is_available():
    raise unittest.SkipTest("there is no GPU")

from torch import Tensor
from torch.nn import functional

import hone
from hone._torch import attention as _attention
from hone._torch import prepared as _prepared

# What is compiled before it is needed: each larger size is another image, of which a test has to see a few only. Set before the
# operators are imported, which are prepared for more when a call is of more.
FIRST_ROWS = 16
_prepared.FIRST_ROWS = FIRST_ROWS
_attention._PREPARED._first = (4, 64, 256)

DEVICE = torch.device("cuda", 0)
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
EPSILON = 1e-5

# What one rounding of every element may cost a whole tensor, in the L2 norm.
RELATIVE_L2 = {torch.float32: 5e-6, torch.float16: 5e-4, torch.bfloat16: 4e-3}
# What one rounding to the dtype and accumulating in float32 may cost: relative to an element, and absolute.
RELATIVE = {torch.float32: 2e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}
ABSOLUTE = {torch.float32: 2e-5, torch.float16: 2e-5, torch.bfloat16: 2e-5}


def randn(*shape: int, dtype: Any = torch.bfloat16, seed: int = 0) -> Tensor:
    """The same numbers for the same shape and seed, whatever the dtype."""
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    return torch.randn(shape, generator=generator, device=DEVICE).to(dtype)


def summed(x: Tensor, residual: Optional[Tensor]) -> Tensor:
    """What is normalized, in float64: x, or x + residual rounded to their dtype. Gradients pass the
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


ACTIVATIONS = {
    "none": lambda y: y,
    "gelu_tanh": lambda y: functional.gelu(y, approximate="tanh"),
    "gelu_erf": functional.gelu,
    "silu": functional.silu,
    "relu": functional.relu,
}


def linear(
    x: Tensor, weight: Tensor, bias: Optional[Tensor] = None, residual: Optional[Tensor] = None,
    activation: str = "none", norm_weight: Optional[Tensor] = None, epsilon: Optional[float] = EPSILON,
) -> Tensor:  # fmt: skip
    """In float64."""
    if norm_weight is not None:
        x = rms_norm(x, norm_weight, epsilon=epsilon)
    y = functional.linear(x.double(), weight.double(), None if bias is None else bias.double())
    y = ACTIVATIONS[activation](y)
    return y if residual is None else y + residual.double()


def fused_ffn(
    x: Tensor, gate: Optional[Tensor], up: Tensor, down: Tensor, up_bias: Optional[Tensor] = None,
    down_bias: Optional[Tensor] = None, residual: Optional[Tensor] = None, activation: str = "silu",
    norm_weight: Optional[Tensor] = None, epsilon: Optional[float] = EPSILON,
) -> Tensor:  # fmt: skip
    """In float64 but for what lies between the halves, which is rounded to their dtype."""
    norm = {"norm_weight": norm_weight, "epsilon": epsilon}
    if gate is None:
        between = linear(x, up, up_bias, activation=activation, **norm)
    else:
        between = linear(x, gate, activation=activation, **norm) * linear(x, up, **norm)
    return linear(between.to(x.dtype), down, down_bias, residual)


def attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = True, window: int = 0, softcap: float = 0.0,
    lengths: Optional[Tensor] = None, scale: Optional[float] = None, sinks: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """[batch, tokens, heads, head_dim] -> (out, lse [batch, heads, q_len]), in float64; causal is aligned at
    the end of each sequence. Sinks [heads] are keys without values, which everybody sees."""
    group, q_len, kv_len = q.shape[2] // k.shape[2], q.shape[1], k.shape[1]
    keys, values = (t.double().repeat_interleave(group, 2).transpose(1, 2) for t in (k, v))
    lengths = torch.full((len(q),), kv_len, device=q.device) if lengths is None else lengths
    key = torch.arange(kv_len, device=q.device)
    query = torch.arange(q_len, device=q.device)[None, :, None] + (lengths[:, None, None] - q_len)
    seen = key < lengths[:, None, None]
    if causal:
        seen = seen & (key <= query)
    if window:
        seen = seen & (key > query - window)
    behind = (key >= lengths[:, None])[:, None, :, None]  # where anything may stand
    keys, values = keys.masked_fill(behind, 0.0), values.masked_fill(behind, 0.0)
    scores = q.double().transpose(1, 2) @ keys.transpose(2, 3) * (scale or q.shape[-1] ** -0.5)
    scores = softcap * torch.tanh(scores / softcap) if softcap else scores
    scores = scores.masked_fill(~seen.expand(-1, q_len, -1)[:, None], -torch.inf)
    if sinks is not None:
        scores = torch.cat((scores, sinks.double()[:, None, None].expand(len(q), -1, q_len, 1)), -1)
    weights = scores.softmax(-1).nan_to_num(0.0)[..., :kv_len]
    return (weights @ values).transpose(1, 2), scores.logsumexp(-1)


@contextlib.contextmanager
def once(name: str) -> Iterator[bool]:
    """Whether this is the first program that comes here with HONE_CACHE; others wait until it is through."""
    cache = os.environ.get("HONE_CACHE")
    if cache is None:
        yield True
        return
    with open(f"{cache}.{name}.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield not Path(file.name).stat().st_size
        file.write("prepared")


class Case(unittest.TestCase):
    """Assertions about tensors."""

    def assert_near(self, found: Tensor, wanted: Tensor, looser: float = 1.0) -> None:
        """`found` is `wanted` (float64) but for its dtype's rounding, `looser` times."""
        relative, absolute = RELATIVE[found.dtype] * looser, ABSOLUTE[found.dtype] * looser
        torch.testing.assert_close(found.double(), wanted, rtol=relative, atol=absolute)

    def assert_sums(self, found: Tensor, wanted: Tensor, looser: float = 1.0) -> None:
        """`found` is `wanted` (float64), sums of products of about unit size, but for float32's roundings on
        the way and the dtype's at the end. An intermediate may fall on the other side of a rounding than the
        reference's, one unit in its last place, which the sums of a second product carry on. `looser`: single
        elements may be off by so much more, where what was multiplied had been rounded, as after a norm."""
        self.assertEqual(found.shape, wanted.shape)
        if wanted.numel():
            absolute = {torch.float32: 1e-4, torch.float16: 1e-3, torch.bfloat16: 4e-3}[found.dtype]
            torch.testing.assert_close(
                found.double(), wanted, rtol=1.5 * RELATIVE[found.dtype], atol=looser * absolute
            )
            self.assertLess(self.relative_error(found, wanted), RELATIVE_L2[found.dtype])

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


def weight_like(out: int, columns: int, dtype: Any, seed: int) -> Tensor:
    """[out, columns], scaled so that x * weight^T is about as large as x."""
    return (randn(out, columns, dtype=torch.float32, seed=seed) * columns**-0.5).to(dtype)

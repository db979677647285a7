"""Gradients through hone::rms_norm and hone::rms_norm_residual, beside autograd in float64."""

from __future__ import annotations

import itertools
import unittest
import warnings
from typing import Any, Optional, Sequence, Tuple

from support import DTYPES, EPSILON, Case, layer_norm, prepared, randn, shaped_inputs

import torch
from torch import Tensor

import hone
from hone import ops

SIZES = ((1, 8), (3, 7), (5, 64), (17, 100), (1000, 4096))
# Tolerances of a whole gradient in the L2 norm: dx is rounded once, dweight is a sum of many.
RELATIVE_L2 = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}


def wanted_gradients(
    inputs: Sequence[Optional[Tensor]], dy: Optional[Tensor], dsum: Optional[Tensor], epsilon: float = EPSILON
) -> Tuple[Tensor, ...]:
    """Of x, residual (None: left out) and weight, in float64."""
    x, residual, weight = (
        None if value is None else value.detach().double().requires_grad_() for value in inputs
    )
    total = summed_in_double(x, residual, inputs[0].dtype)
    y = total * torch.rsqrt(total.square().mean(-1, keepdim=True) + epsilon) * weight
    loss = torch.zeros((), dtype=torch.float64, device=x.device)
    if dy is not None:
        loss = loss + (y * dy.double()).sum()
    if dsum is not None:
        loss = loss + (total * dsum.double()).sum()
    leaves = [leaf for leaf in (x, residual, weight) if leaf is not None]
    return torch.autograd.grad(loss, leaves, allow_unused=True)


def summed_in_double(x: Tensor, residual: Optional[Tensor], dtype: Any) -> Tensor:
    """x + residual, rounded to dtype as the kernel rounds it; the gradient passes the rounding."""
    if residual is None:
        return x
    total = x + residual
    return total + (total.to(dtype).double() - total).detach()


class Gradients(Case):
    def assert_gradients(self, found: Sequence[Optional[Tensor]], wanted: Sequence[Optional[Tensor]]) -> None:
        self.assertEqual(len(found), len(wanted))
        for one, other in zip(found, wanted):
            self.assertEqual(one.shape, other.shape)
            if other.norm() == 0:
                self.assertLess(one.double().norm().item(), 1e-6)
            else:
                self.assertLess(self.relative_error(one, other), RELATIVE_L2[one.dtype])

    def test_rms_norm_of_every_dtype_and_size(self):
        for (name, dtype), (rows, hidden) in itertools.product(DTYPES.items(), SIZES):
            with self.subTest(dtype=name, rows=rows, hidden=hidden):
                x, dy, weight, _ = shaped_inputs(rows, hidden, dtype)
                leaves = [x.requires_grad_(), weight.requires_grad_()]
                found = torch.autograd.grad(ops.rms_norm(*leaves, EPSILON), leaves, dy)
                self.assert_gradients(found, wanted_gradients((x, None, weight), dy, None))

    def test_rms_norm_with_residual_of_every_dtype_and_size(self):
        for (name, dtype), (rows, hidden) in itertools.product(DTYPES.items(), SIZES):
            with self.subTest(dtype=name, rows=rows, hidden=hidden):
                x, residual, weight, _ = shaped_inputs(rows, hidden, dtype)
                dy, dsum = (randn(rows, hidden, dtype=dtype, seed=seed) for seed in (5, 6))
                leaves = [tensor.requires_grad_() for tensor in (x, residual, weight)]
                outputs = ops.rms_norm_residual(*leaves, EPSILON)
                found = torch.autograd.grad(outputs, leaves, (dy, dsum))
                self.assert_gradients(found, wanted_gradients((x, residual, weight), dy, dsum))

    def test_rows_of_one_element(self):
        # With a small epsilon the gradient is a difference of two equal numbers.
        x, dy, weight, _ = shaped_inputs(5, 1, torch.float32)
        found = ops.rms_norm_backward(dy, x, weight, None, 0.5)
        self.assert_gradients(found, wanted_gradients((x, None, weight), dy, None, epsilon=0.5))

    def test_only_one_output_was_used(self):
        x, residual, weight, dy = *shaped_inputs(3, 64, torch.float32)[:3], randn(3, 64, dtype=torch.float32)
        leaves = [tensor.requires_grad_() for tensor in (x, residual, weight)]
        y, _ = ops.rms_norm_residual(*leaves, EPSILON)
        found = torch.autograd.grad(y, leaves, dy)
        self.assert_gradients(found, wanted_gradients((x, residual, weight), dy, None))
        _, total = ops.rms_norm_residual(*leaves, EPSILON)
        found = torch.autograd.grad(total, leaves, dy, allow_unused=True)
        self.assert_same(found[0], dy)
        self.assert_same(found[1], dy)
        self.assertIsNone(found[2])

    def test_gradients_with_any_strides(self):
        x, _, weight, _ = shaped_inputs(6, 64, torch.float32)
        x, weight = x.requires_grad_(), weight.requires_grad_()
        cases = {
            "expanded": torch.ones((), device=x.device).expand(6, 64),
            "transposed": randn(64, 6, dtype=torch.float32).t(),
            "rows apart": randn(6, 128, dtype=torch.float32)[:, :64],
        }
        for name, dy in cases.items():
            with self.subTest(name):
                found = torch.autograd.grad(ops.rms_norm(x, weight, EPSILON), (x, weight), dy)
                self.assert_gradients(found, wanted_gradients((x, None, weight), dy, None))

    def test_gradcheck_in_float32(self):
        x, residual, weight, _ = (
            tensor.requires_grad_() for tensor in shaped_inputs(3, 7, torch.float32)
        )
        tolerances = {"eps": 1e-2, "atol": 5e-3, "rtol": 2e-2, "nondet_tol": 0.0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about inputs that are not float64
            self.assertTrue(
                torch.autograd.gradcheck(lambda x, w: ops.rms_norm(x, w, 1e-1), (x, weight), **tolerances)
            )
            self.assertTrue(
                torch.autograd.gradcheck(
                    lambda x, r, w: ops.rms_norm_residual(x, r, w, 1e-1), (x, residual, weight), **tolerances
                )
            )

    def test_the_same_at_every_call(self):
        x, dy, weight, _ = shaped_inputs(1000, 4096, torch.bfloat16)
        first = ops.rms_norm_backward(dy, x, weight, None, EPSILON)
        for _ in range(20):
            for one, other in zip(ops.rms_norm_backward(dy, x, weight, None, EPSILON), first):
                self.assert_same(one, other)

    def test_a_prepared_operator_gives_the_same(self):
        x, dy, weight, _ = shaped_inputs(17, 100, torch.bfloat16)
        backward = prepared(hone.RmsNormBackward(100, max_rows=64, dtype="bf16"))
        found = backward(dy, x, weight, epsilon=EPSILON)
        self.assert_gradients(found, wanted_gradients((x, None, weight), dy, None))

    def test_leaves_accumulate(self):
        x, _, weight, _ = shaped_inputs(4, 64, torch.float32)
        weight = torch.nn.Parameter(weight)
        for _ in range(2):
            ops.rms_norm(x, weight, EPSILON).sum().backward()
        (_, once) = wanted_gradients((x, None, weight), torch.ones_like(x), None)
        self.assertLess(self.relative_error(weight.grad, 2 * once), 1e-5)

    def test_checkpointing_and_no_grad(self):
        from torch.utils.checkpoint import checkpoint

        x, _, weight, _ = shaped_inputs(4, 64, torch.float32)
        x.requires_grad_()
        y = checkpoint(lambda value: ops.rms_norm(value, weight, EPSILON), x, use_reentrant=False)
        y.sum().backward()
        (dx, _) = wanted_gradients((x, None, weight), torch.ones_like(x), None)
        self.assertLess(self.relative_error(x.grad, dx), 1e-5)
        with torch.no_grad():
            self.assertFalse(ops.rms_norm(x, weight, EPSILON).requires_grad)


class WithoutGradients(Case):
    def test_the_forward_is_right_and_backward_says_what_to_do(self):
        x, residual, weight, bias = shaped_inputs(3, 64, torch.float32)
        x.requires_grad_()
        y = ops.layer_norm(x, weight, bias, EPSILON)
        self.assert_near(y.detach(), layer_norm(x.detach(), weight, bias))
        outputs = {
            "hone::layer_norm has": y,
            "hone::layer_norm_residual has": ops.layer_norm_residual(x, residual, weight, None, EPSILON)[0],
            "hone::rms_norm_quantized has": ops.rms_norm_quantized(x, weight, EPSILON, "int8")[1],
        }
        for words, output in outputs.items():
            with self.assertRaisesRegex(NotImplementedError, words):
                output.sum().backward()

    def test_second_derivatives_are_refused(self):
        x, _, weight, _ = shaped_inputs(3, 64, torch.float32)
        x.requires_grad_()
        (dx,) = torch.autograd.grad(ops.rms_norm(x, weight, EPSILON).square().sum(), x, create_graph=True)
        with self.assertRaisesRegex(NotImplementedError, "second derivatives"):
            dx.sum().backward()


if __name__ == "__main__":
    unittest.main()

"""Modules of quantized feed-forward networks beside those they are made from, and norms whose codes quantized
layers multiply."""

from __future__ import annotations

import unittest
from typing import Any
from unittest import mock

from quantized_support import QuantizedCase, stored_weight
from support import DEVICE, EPSILON, linear, prepared, randn, rms_norm

import torch
from torch import nn

import hone
from hone import ops
from hone import nn as hone_nn

MOST = 160
HIDDEN, BETWEEN = 256, 640


class Modules(QuantizedCase):
    # How far a quantized network may be from the network.
    LOSS = {4: 0.25, 8: 0.03, "fp8": 0.09, "w8a8": 0.05}

    def network(self, **options: Any) -> hone_nn.FusedFFN:
        return hone_nn.FusedFFN(HIDDEN, BETWEEN, device=DEVICE, dtype=torch.bfloat16, **options)

    def made(self, ffn: hone_nn.FusedFFN, bits: Any, **options: Any) -> hone_nn.QuantizedFFN:
        layers = ffn.gate_proj, ffn.up_proj, ffn.down_proj
        return hone_nn.QuantizedFFN.from_float(
            *layers, bits, activation=ffn.activation, norm=ffn.norm, **options
        )

    def test_it_is_near_to_the_network_it_was_made_from(self):
        x = randn(7, HIDDEN)
        for options in ({"norm": True}, {"gated": False, "bias": True, "activation": "gelu_tanh"}):
            theirs = self.network(**options)
            for bits, allowed in self.LOSS.items():
                with self.subTest(bits=bits, options=options), torch.no_grad():
                    wanted = theirs(x).double()
                    ours = self.made(theirs, bits)
                    self.assertLess(self.relative_error(ours(x), wanted), allowed)
                    near = hone_nn._ffn_formula(ours, x, x).double()
                    self.assertLess(self.relative_error(ours(x, x), near), 0.02)

    def test_the_kernel_runs_where_no_gradient_is_needed(self):
        ours, x = self.made(self.network(), 4), randn(3, HIDDEN)
        with mock.patch.object(hone_nn, "_ffn_formula", side_effect=AssertionError), torch.no_grad():
            ours(x, x)
        ours(x.requires_grad_()).sum().backward()
        self.assertEqual(x.grad.shape, x.shape)
        self.assertEqual(ours.cpu()(x.detach().cpu().float()).dtype, torch.float32)

    def test_the_state_goes_round(self):
        for bits, options in ((4, {"zeros": True}), (8, {}), ("fp8", {"group": 128})):
            one = self.made(self.network(norm=True), bits, **options)
            other = hone_nn.QuantizedFFN(HIDDEN, BETWEEN, bits, device=DEVICE, norm=True, **options)
            other.load_state_dict(one.state_dict())
            x = randn(3, HIDDEN)
            with torch.no_grad():
                self.assert_same(other(x), one(x))

    def test_one_group_for_all_layers(self):
        for hidden, between, group in ((256, 640, 128), (256, 96, 32), (100, 128, 0)):
            ffn = hone_nn.QuantizedFFN(hidden, between, device="meta")
            groups = [layer.group for layer in (ffn.gate_proj, ffn.up_proj, ffn.down_proj)]
            self.assertEqual(groups, [group] * 3)

    def test_what_is_not_allowed(self):
        for name, options in (
            ("bits", {"bits": 3}),
            ("group", {"group": 48}),
            ("bias", {"bias": True}),
            ("activation", {"activation": "none"}),
            ("activation", {"activation": "tanh", "gated": False}),
        ):
            with self.assertRaisesRegex(ValueError, f"^{name}: "):
                hone_nn.QuantizedFFN(HIDDEN, BETWEEN, **options)
        layers = {"gate": nn.Linear(64, 96, False), "up": nn.Linear(64, 96, False),
                  "down": nn.Linear(96, 64, False)}  # fmt: skip
        for name, wrong in (
            ("gate", nn.Linear(64, 95, False)), ("down", layers["up"]), ("up", nn.Linear(64, 96)),
            ("up", hone_nn.Linear(64, 96, False, activation="relu")),
        ):  # fmt: skip
            with self.assertRaisesRegex(ValueError, f"^{name}: "):
                hone_nn.QuantizedFFN.from_float(*{**layers, name: wrong}.values())


class NormsBefore(QuantizedCase):
    """An RMSNorm with codes for its output, and the quantized layer that multiplies them."""

    OUTPUTS = {"w8a8": "int8", "fp8": "fp8"}

    def weight_and_x(self, format: str, group: int = 0) -> tuple:
        weight = stored_weight(320, 512, format, group)
        return weight, randn(2, 9, 512, seed=1), randn(512, seed=2), randn(2, 9, 512, seed=3)

    def test_operators(self):
        for format, output in self.OUTPUTS.items():
            weight, x, gain, residual = self.weight_and_x(format)
            codes, total, scale = ops.rms_norm_residual_quantized(x, residual, gain, EPSILON, output)
            found = ops.quantized_linear(
                codes, *weight.packed[:2], format, 0, 320, "silu", None, None, None, scale
            )
            values = codes.to(torch.float64) * scale.double()[..., None]
            with self.subTest(format=format):
                self.assert_product(found, linear(values, weight.values, activation="silu"), format)
                # Codes of three digits are near to what they stand for.
                plain = linear(rms_norm(total, gain), weight.values, activation="silu")
                self.assertLess(self.relative_error(found, plain), {"w8a8": 0.02, "fp8": 0.05}[format])

    def test_prepared_operators(self):
        for format, output in self.OUTPUTS.items():
            weight, x, gain, _ = self.weight_and_x(format)
            norm = prepared(hone.RmsNorm(512, output=output, max_rows=MOST))
            layer = prepared(hone.QuantizedLinear(512, 320, format, quantized_x=True, max_tokens=MOST))
            codes, scale = norm(x, gain)
            found = layer(codes, *weight.packed[:2], x_scales=scale)
            wanted = ops.quantized_linear(
                *(codes, *weight.packed[:2], format, 0, 320, "none"), x_scales=scale
            )
            self.assert_same(found, wanted)

    def test_modules(self):
        for bits, group in (("w8a8", 0), ("fp8", 0), ("fp8", 128)):
            linear_layer = nn.Linear(512, 320, device=DEVICE, dtype=torch.bfloat16)
            layer = hone_nn.QuantizedLinear.from_float(linear_layer, bits, group)
            x, gain = randn(9, 512, seed=1), randn(512, seed=2)
            with torch.no_grad():
                codes, scale = ops.rms_norm_quantized(x, gain, EPSILON, self.OUTPUTS[bits])
                found = layer(codes, x_scales=scale)
                plain = linear(rms_norm(x, gain), linear_layer.weight, linear_layer.bias)
                with self.subTest(bits=bits, group=group):
                    self.assertEqual(found.dtype, torch.bfloat16)
                    self.assertLess(self.relative_error(found, plain), 0.06)
                    formula = layer.cpu()(codes.cpu(), x_scales=scale.cpu()).double()
                    self.assertLess(self.relative_error(found.cpu(), formula), 0.01)
            for arguments in ((codes,), (x, None, scale)):
                with self.assertRaisesRegex(ValueError, "^x_scales: it is "):
                    layer(*arguments)


if __name__ == "__main__":
    unittest.main()

"""Quantizing weights on the GPU and on the host: the same bits, whichever way it is asked for."""

from __future__ import annotations

import unittest

from support import DEVICE, Case, weight_like

import torch
from torch import nn

import hone
from hone import nn as hone_nn
from hone import ops

KINDS = (
    ("w4a16", 128, False), ("w4a16", 64, True), ("w4a16", 32, True), ("w4a16", 0, False), ("w4a16", 0, True),
    ("w8a16", 0, False), ("w8a8", 0, False), ("fp8", 0, False), ("fp8", 128, False),
)  # fmt: skip


class QuantizeWeights(Case):
    def assert_same_packed(self, one, other) -> None:
        for mine, theirs in zip(one, other):
            self.assertEqual(mine is None, theirs is None)
            if mine is not None:
                self.assertEqual((mine.shape, mine.dtype), (theirs.shape, theirs.dtype))
                self.assert_same(mine.cpu().view(torch.uint8), theirs.cpu().view(torch.uint8))

    def test_both_devices_leave_the_same_bits(self):
        for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
            weight = weight_like(200, 384, torch.float32, seed=1).to(dtype)
            for format, group, zeros in KINDS:
                with self.subTest(dtype=dtype, format=format, group=group, zeros=zeros):
                    on_gpu = hone.quantize_weights(weight.to(DEVICE), format, group, zeros=zeros)
                    self.assertEqual(on_gpu.codes.device, DEVICE)
                    on_host = hone.quantize_weights(weight.cpu(), format, group, zeros=zeros)
                    self.assertEqual(on_host.codes.device.type, "cpu")
                    self.assert_same_packed(on_gpu, on_host)
        for format in ("w8a8", "fp8"):
            packed = [
                hone.quantize_weights(weight.to(device), format, one_scale=True) for device in ("cpu", DEVICE)
            ]
            self.assertEqual(packed[0].scales.shape, (1,))
            self.assert_same_packed(*packed)

    def test_rows_may_lie_apart_or_be_columns(self):
        wide = weight_like(200, 512, torch.bfloat16, seed=1).to(DEVICE)
        for weight in (wide[:, 128:384], wide[::2, :256], wide[:, 1:257], wide.t()[:256, :128]):
            self.assert_same_packed(
                hone.quantize_weights(weight, group=64), hone.quantize_weights(weight.contiguous(), group=64)
            )

    def test_what_has_no_codes_is_refused_in_the_same_words(self):
        weight = weight_like(200, 384, torch.float32, seed=1)
        weight[150, 200] = torch.nan
        for device in ("cpu", DEVICE):
            with self.assertRaisesRegex(ValueError, r"weight \[150, 200\] is -?nan; allowed: finite numbers"):
                hone.quantize_weights(weight.to(device), group=128)
        weight[150, 200] = 1e7
        for device in ("cpu", DEVICE):
            with self.assertRaisesRegex(ValueError, "weights of row 150, group 1 reach 1e[+]07|10000000"):
                hone.quantize_weights(weight.to(device), group=128, scale_dtype=torch.float16)
        with self.assertRaisesRegex(ValueError, r"^weight: it is \[384\] of torch.float32; allowed is"):
            hone.quantize_weights(weight[0])

    def test_a_graph_cannot_be_captured_of_it(self):
        weight = weight_like(64, 128, torch.bfloat16, seed=1).to(DEVICE)
        hone.quantize_weights(weight, group=64)
        graph = torch.cuda.CUDAGraph()
        with self.assertRaises(RuntimeError), torch.cuda.graph(graph):
            hone.quantize_weights(weight, group=64)
        torch.cuda.synchronize()

    def test_layers_multiply_what_it_makes(self):
        weight = weight_like(192, 256, torch.bfloat16, seed=1).to(DEVICE)
        packed = hone.quantize_weights(weight, "w4a16", 128, zeros=True)
        x = torch.randn(5, 256, device=DEVICE).to(torch.bfloat16)
        found = ops.quantized_linear(
            x, packed.codes, packed.scales, "w4a16", 128, 192, "none", packed.zeros, None, None
        )
        self.assertLess(self.relative_error(found, x.double() @ weight.double().t()), 0.12)

    def test_a_model_becomes_the_same_on_either_device(self):
        torch.manual_seed(3)
        layer = nn.Linear(256, 192, dtype=torch.bfloat16)
        for bits in (4, 8, "fp8", "w8a8"):
            on_host = hone_nn.QuantizedLinear.from_float(layer, bits)
            on_gpu = hone_nn.QuantizedLinear.from_float(layer.to(DEVICE), bits)
            layer.cpu()
            for name, tensor in on_host.state_dict().items():
                self.assert_same(tensor, on_gpu.state_dict()[name].cpu())


if __name__ == "__main__":
    unittest.main()

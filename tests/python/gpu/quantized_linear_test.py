"""Quantized linear layers: packing, prepared operators, hone::quantized_linear and its module beside
float64."""

from __future__ import annotations

import unittest
import warnings
from typing import Any, Dict

from quantized_support import QuantizedCase, multiplied, no_care, quantize_x, stored_weight
from support import DEVICE, DTYPES, linear, prepared, randn, rms_norm, weight_like

import torch
from torch import Tensor, nn

import hone
from hone import ops
from hone._torch.quantized import quantized_linear
from hone._weights import packing
from hone import nn as hone_nn
from hone._operators.stored import StoredWeight, blocks_of, groups_of

MOST = 160
TOKENS = (1, 3, 17)
FEW = 17  # the most of what shows options, whose kernels are half as many


def code_place(row: int, column: int, columns: int, bits: int) -> tuple:
    """(byte, lowest bit), as in kernel_templates/quantized_linear/layout.cuh."""
    block = row // 64 * blocks_of(columns) + column // 64
    row, column = row % 64, column % 64
    thread = row // 16 * 32 + row % 8 * 4 + column % 8 // 2
    half, columns_half, odd = row // 8 % 2, column // 8 % 2, column % 2
    if bits == 4:
        return block * 2048 + thread * 16 + column // 16 * 4 + columns_half + 2 * odd, 4 * half
    word = column // 32 * 2048 + thread * 16 + column % 32 // 16 * 8 + columns_half * 4
    return block * 4096 + word + half + 2 * odd, 0


def scale_place(row: int, group: int, groups: int) -> int:
    within = row % 16
    return (row // 64 * groups + group) * 64 + row % 64 // 16 * 16 + within % 8 * 2 + within // 8


class Packing(QuantizedCase):
    SIZES = ((64, 64), (75, 100), (130, 192), (1, 1))

    def test_codes_stand_where_kernels_read_them(self):
        for rows, columns in self.SIZES:
            four = torch.randint(0, 16, (rows, columns), dtype=torch.uint8)
            eight = torch.randint(-127, 128, (rows, columns), dtype=torch.int8)
            packed = {4: packing.pack_w4(four), 8: packing.pack_w8(eight)}
            self.assertEqual(packed[4].shape, StoredWeight(rows, columns, "w4a16", 0).codes_shape)
            self.assertEqual(packed[8].shape, StoredWeight(rows, columns, "w8a16", 0).codes_shape)
            found = {bits: codes.flatten().tolist() for bits, codes in packed.items()}
            for row in range(rows):
                for column in range(columns):
                    byte, bit = code_place(row, column, columns, 4)
                    self.assertEqual(found[4][byte] >> bit & 15, four[row, column])
                    byte, _ = code_place(row, column, columns, 8)
                    self.assertEqual(found[8][byte], int(eight[row, column]) % 256)
            self.assert_same(packing.unpack_w4(packed[4], rows, columns), four)
            self.assert_same(packing.unpack_w8(packed[8], rows, columns), eight)

    def test_scales_stand_where_kernels_read_them(self):
        for rows, columns in self.SIZES:
            groups = groups_of(columns, 32)
            scales = torch.randn(rows, -(-columns // 32))
            packed = packing.pack_scales(scales, groups)
            found = packed.flatten().tolist()
            for row in range(rows):
                for group in range(scales.shape[1]):
                    self.assertEqual(found[scale_place(row, group, groups)], scales[row, group])
            self.assert_same(packing.unpack_scales(packed, rows, scales.shape[1]), scales)

    def test_quantizing_loses_little_on_either_device(self):
        for format, group, zeros, allowed in (
            ("w4a16", 128, False, 0.11), ("w4a16", 32, True, 0.09), ("w4a16", 0, False, 0.14),
            ("w8a16", 0, False, 0.012), ("w8a8", 0, False, 0.012), ("fp8", 0, False, 0.035),
            ("fp8", 128, False, 0.035),
        ):  # fmt: skip
            for device in ("cpu", DEVICE):
                weight = weight_like(200, 384, torch.bfloat16, seed=1).to(device)
                stored = StoredWeight(200, 384, format, group)
                packed = packing.quantize(weight, stored, torch.bfloat16, zeros)
                self.assertEqual(packed.codes.device.type, torch.device(device).type)
                values = packing.dequantize(packed, stored, torch.float64)
                with self.subTest(format=format, group=group, zeros=zeros, device=str(device)):
                    self.assertLess(self.relative_error(values, weight.double()), allowed)

    def test_rows_of_zeros_and_weights_that_are_no_numbers(self):
        weight = torch.zeros(64, 128)
        for format in ("w4a16", "w8a16", "w8a8", "fp8"):
            stored = StoredWeight(64, 128, format, 0)
            packed = packing.quantize(weight, stored, torch.bfloat16)
            self.assertEqual(packing.dequantize(packed, stored, torch.float32).abs().max(), 0)
            weight[17, 100] = torch.inf
            for device in ("cpu", DEVICE):
                with self.assertRaisesRegex(ValueError, r"weight \[17, 100\] is inf; allowed: finite"):
                    packing.quantize(weight.to(device), stored, torch.bfloat16)
            weight[17, 100] = 0


class Prepared(QuantizedCase):
    """hone.prepare() of QuantizedLinear."""

    def check(self, description: hone.QuantizedLinear, tokens: Any = TOKENS) -> None:
        operator = prepared(description)
        rows, columns = description.out_features, description.in_features
        dtype, kind, group = DTYPES[description.dtype], description.format, description.group
        weight = stored_weight(
            rows, columns, kind, group, dtype, description.zeros, description.one_scale
        )
        for count in tokens:
            x = randn(count, columns, dtype=dtype, seed=1)
            given: Dict[str, Any] = {
                "bias": randn(rows, dtype=dtype, seed=3) if description.bias else None,
                "residual": randn(count, rows, dtype=dtype, seed=4) if description.residual else None,
            }
            norm = randn(columns, dtype=dtype, seed=5) if description.norm else None
            normed = x if norm is None else rms_norm(x, norm)
            if description.quantized_x:
                codes = quantize_x(x, kind, group, description.one_x_scale)
                found = operator(codes.codes, *weight.packed, x_scales=codes.scales, **given)
                values = codes.values
            else:
                found = operator(x, *weight.packed, norm_weight=norm, **given)
                values = multiplied(normed, kind, group)
            wanted = linear(values, weight.values, **given, activation=description.activation)
            with self.subTest(description=description, tokens=count):
                # A norm's result, and codes of it, may fall on the other side of a rounding.
                self.assert_product(found, wanted, kind, 1.5 if description.norm else 1)

    def test_4_bits(self):
        for more in (
            {"group": 128},
            {"group": 32, "zeros": True, "dtype": "fp16", "bias": True, "residual": True},
            {"group": 64, "norm": True, "activation": "silu"},
            {"zeros": True},
        ):
            self.check(hone.QuantizedLinear(512, 320, max_tokens=FEW, **more))

    def test_8_bits(self):
        for more in ({}, {"dtype": "fp16", "bias": True, "activation": "gelu_tanh"}, {"norm": True}):
            self.check(hone.QuantizedLinear(512, 320, "w8a16", max_tokens=FEW, **more))

    def test_codes_times_codes(self):
        for kind, more in (
            ("w8a8", {}),
            ("w8a8", {"quantized_x": True, "bias": True, "residual": True, "dtype": "fp16"}),
            ("w8a8", {"quantized_x": True, "one_x_scale": True, "one_scale": True}),
            ("fp8", {"norm": True}),
            ("fp8", {"quantized_x": True, "one_scale": True, "activation": "relu"}),
            ("fp8", {"group": 128}),
            ("fp8", {"group": 128, "quantized_x": True, "residual": True}),
        ):
            self.check(hone.QuantizedLinear(512, 320, kind, max_tokens=FEW, **more))

    def test_odd_sizes(self):
        for kind, more in (
            ("w4a16", {"zeros": True}),
            ("w8a16", {"bias": True}),
            ("w8a8", {"quantized_x": True}),
            ("fp8", {}),
        ):
            self.check(hone.QuantizedLinear(101, 77, kind, max_tokens=FEW, **more))

    def test_a_layer_of_a_model(self):
        self.check(hone.QuantizedLinear(3584, 4608, group=128, max_tokens=MOST, bias=True), tokens=(1, MOST))


def samples(dtype: Any = torch.bfloat16, tokens: int = 5) -> Dict[str, Any]:
    """Calls of the operator by name: (arguments, what is wanted in float64, format)."""
    rows, columns = 192, 256
    x, bias = randn(tokens, columns, dtype=dtype, seed=1), randn(rows, dtype=dtype, seed=3)
    residual, norm = randn(tokens, rows, dtype=dtype, seed=4), randn(columns, dtype=dtype, seed=5)
    four = stored_weight(rows, columns, "w4a16", 64, dtype, zeros=True)
    eight = stored_weight(rows, columns, "w8a16", dtype=dtype)
    both = stored_weight(rows, columns, "w8a8", one_scale=True)
    blocks = stored_weight(rows, columns, "fp8", 128)
    given = quantize_x(x, "w8a8")
    name = {torch.bfloat16: "bf16", torch.float16: "fp16"}[dtype]
    return {
        "w4a16": (
            (x, *four.packed[:2], "w4a16", 64, rows, "silu", four.packed.zeros, bias, residual),
            linear(x, four.values, bias, residual, "silu"),
            "w4a16",
        ),
        "norm and w8a16": (
            (x, *eight.packed[:2], "w8a16", 0, rows, "none", None, None, None, None, norm, 1e-5),
            linear(rms_norm(x, norm), eight.values),
            "w8a16",
        ),
        "w8a8 of codes": (
            (
                given.codes, *both.packed[:2], "w8a8", 0, rows, "none", None, bias, None, given.scales, None,
                None, name,
            ),
            linear(given.values, both.values, bias),
            "w8a8",
        ),
        "fp8 in blocks": (
            (x, *blocks.packed[:2], "fp8", 128, rows, "none"),
            linear(multiplied(x, "fp8", 128), blocks.values),
            "fp8",
        ),
    }  # fmt: skip


class Operator(QuantizedCase):
    """hone::quantized_linear."""

    def test_values(self):
        for dtype in (torch.bfloat16, torch.float16):
            for name, (arguments, wanted, kind) in samples(dtype).items():
                with self.subTest(dtype=dtype, call=name):
                    out = ops.quantized_linear(*arguments)
                    self.assertEqual((out.dtype, out.is_contiguous()), (dtype, True))
                    self.assert_product(out, wanted, kind, 1.5)

    def test_calls_like_the_last_one_are_not_checked_again(self):
        for name, (arguments, _, _) in samples().items():
            wanted = ops.quantized_linear(*arguments)
            with no_care(quantized_linear):
                self.assert_same(ops.quantized_linear(*arguments), wanted)
                for tokens in (1, 3):
                    fewer = [a[:tokens] if self.is_of_tokens(a) else a for a in arguments]
                    ops.quantized_linear(*fewer)
        x, codes, scales, *rest = samples()["w4a16"][0]
        shorter = [*rest[:5], rest[5][:-1], *rest[6:]]  # the bias, of a call that is known
        with self.assertRaisesRegex(ValueError, "^bias: its shape is "):
            ops.quantized_linear(x, codes, scales, *shorter)

    def is_of_tokens(self, argument: Any) -> bool:
        """Of samples(): 5 of them."""
        return isinstance(argument, Tensor) and argument.shape[0] == 5

    def test_any_strides_and_alignment(self):
        rows, columns = 192, 256
        four = stored_weight(rows, columns, "w4a16", 64)
        wide = randn(6, 3 * columns + 1)
        for name, x in {
            "rows apart": wide[:, :columns],
            "misaligned": wide[:, 1 : columns + 1],
            "elements apart": wide[:, : 2 * columns : 2],
            "one row": wide[0, :columns],
            "empty": wide[:0, :columns],
        }.items():
            found = ops.quantized_linear(x, *four.packed[:2], "w4a16", 64, rows, "none")
            with self.subTest(name):
                if x.numel():
                    self.assert_product(found, linear(x, four.values))
                else:
                    self.assertEqual(found.shape, (0, rows))

    def test_mistakes_name_their_argument(self):
        for device in (DEVICE, torch.device("meta")):
            x, codes, scales = samples()["w4a16"][0][:3]
            x, codes, scales = (tensor.to(device) for tensor in (x, codes, scales))
            good = ["w4a16", 64, 192, "none"]
            ops.quantized_linear(x, codes, scales, *good)
            for kind, name, wrong in (
                (TypeError, "x", (x.float(), codes, scales, *good)),
                (TypeError, "codes", (x, codes.view(torch.int8), scales, *good)),
                (ValueError, "codes", (x, codes[:-1], scales, *good)),
                (ValueError, "codes", (x[:, :64], codes, scales, *good)),
                (TypeError, "scales", (x, codes, scales.half(), *good)),
                (ValueError, "scales", (x, codes, scales, "w4a16", 32, 192, "none")),
                (ValueError, "format", (x, codes, scales, "int4", 64, 192, "none")),
                (ValueError, "activation", (x, codes, scales, "w4a16", 64, 192, "tanh")),
                (ValueError, "out_features", (x, codes, scales, "w4a16", 64, 0, "none")),
                (ValueError, "zeros", (x, codes, scales, *good, codes)),
                (ValueError, "bias", (x, codes, scales, *good, None, x[0])),
                (ValueError, "residual", (x, codes, scales, *good, None, None, x)),
                (ValueError, "x_scales", (x, codes, scales, *good, None, None, None, x[:, 0].float())),
                (ValueError, "epsilon", (x, codes, scales, *good, None, None, None, None, x[0])),
                (ValueError, "out_dtype", (x, codes, scales, *good, *[None] * 6, "fp16")),
            ):
                with self.subTest(name=name, device=str(device)):
                    with self.assertRaisesRegex(kind, f"^{name}: "):
                        ops.quantized_linear(*wrong)

    def test_opcheck_is_content(self):
        for name, (arguments, _, _) in samples().items():
            with self.subTest(name):
                kinds = ["test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
                # That of the schema multiplies the arguments, and PyTorch has no product of fp8.
                if not any(isinstance(a, Tensor) and a.dtype == torch.float8_e4m3fn for a in arguments):
                    kinds.append("test_schema")
                torch.library.opcheck(torch.ops.hone.quantized_linear.default, arguments, test_utils=kinds)

    def test_tensors_without_memory(self):
        for arguments, wanted, _ in samples().values():
            meta = [a.to("meta") if isinstance(a, Tensor) else a for a in arguments]
            found = ops.quantized_linear(*meta)
            self.assertEqual((found.shape, found.dtype), (wanted.shape, torch.bfloat16))
            self.assertEqual(found.stride(), wanted.stride())

    def test_there_is_no_gradient(self):
        arguments = samples()["w4a16"][0]
        out = ops.quantized_linear(arguments[0].requires_grad_(), *arguments[1:])
        with self.assertRaisesRegex(NotImplementedError, "^hone::quantized_linear has no gradient"):
            out.sum().backward()

    def test_one_graph_of_dynamo(self):
        torch._dynamo.reset()
        for name, (arguments, _, _) in samples().items():
            compiled = torch.compile(
                lambda *a: ops.quantized_linear(*a), fullgraph=True, backend="aot_eager"
            )
            with self.subTest(name), torch.no_grad():
                self.assert_same(compiled(*arguments), ops.quantized_linear(*arguments))

    def test_a_graph(self):
        calls = [arguments for arguments, _, _ in samples().values()]
        wanted = [ops.quantized_linear(*arguments) for arguments in calls]
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = [ops.quantized_linear(*arguments) for arguments in calls]
        for _ in range(20):
            graph.replay()
        for one, other in zip(found, wanted):
            self.assert_same(one, other)

    def test_the_first_call_during_a_capture_says_to_warm_up(self):
        weight = stored_weight(48, 80, "w8a16")
        x = randn(4, 80)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a graph without launches
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                with self.assertRaisesRegex(RuntimeError, "hone::quantized_linear .* warm up"):
                    ops.quantized_linear(x, *weight.packed[:2], "w8a16", 0, 48, "none")


def a_linear(columns: int = 256, rows: int = 192, dtype: Any = torch.bfloat16) -> nn.Linear:
    return nn.Linear(columns, rows, device=DEVICE, dtype=dtype)


class Modules(QuantizedCase):
    # How far a quantized layer may be from the layer: of its weight, and of codes of x.
    LOSS = {4: 0.12, 8: 0.015, "fp8": 0.05, "w8a8": 0.03}

    def test_it_is_near_to_the_layer_it_was_made_from(self):
        theirs, x = a_linear(), randn(7, 256)
        with torch.no_grad():
            wanted = theirs(x).double()
            for bits, allowed in self.LOSS.items():
                ours = hone_nn.QuantizedLinear.from_float(theirs, bits)
                self.assertEqual((ours.codes.device, ours.bias.dtype), (DEVICE, torch.bfloat16))
                with self.subTest(bits=bits):
                    self.assertLess(self.relative_error(ours(x), wanted), allowed)

    def test_the_kernel_runs_where_no_gradient_is_needed(self):
        for bits in (4, "fp8"):
            ours = hone_nn.QuantizedLinear.from_float(a_linear(), bits)
            x, residual = randn(3, 256), randn(3, 192, seed=1)
            codes = ours.codes.view(torch.float8_e4m3fn) if bits == "fp8" else ours.codes
            with torch.no_grad():
                wanted = ops.quantized_linear(
                    x, codes, ours.scales, ours.format, ours.group, 192, "none", None, ours.bias, residual
                )
                self.assert_same(ours(x, residual), wanted)
            formula = ours(x.requires_grad_(), residual)
            formula.sum().backward()
            self.assertEqual(x.grad.shape, x.shape)
            self.assertLess(self.relative_error(formula.detach(), wanted.double()), 0.04)

    def test_what_hone_has_no_kernel_for_runs_all_the_same(self):
        ours = hone_nn.QuantizedLinear.from_float(a_linear(), 4)
        wanted = nn.functional.linear(
            randn(3, 256).double(), ours.dequantized(torch.float64), ours.bias.double()
        )
        for x in (randn(3, 256).float(), randn(3, 256).double()):
            self.assertEqual(ours(x).dtype, x.dtype)
            self.assertLess(self.relative_error(ours(x), wanted), 1e-5)
        on_cpu = ours.cpu()(randn(3, 256).cpu())
        self.assertLess(self.relative_error(on_cpu, wanted.cpu()), 1e-2)

    def test_moving_it_to_another_dtype(self):
        for bits in (4, 8, "fp8", "w8a8"):
            ours = hone_nn.QuantizedLinear.from_float(a_linear(), bits)
            x, codes = randn(3, 256), ours.codes
            with torch.no_grad():
                before, after = ours(x), ours.half()(x.half())
            with self.subTest(bits=bits):
                self.assert_same(ours.codes, codes)
                self.assertEqual(ours.scales.dtype, torch.float16 if bits == 4 else torch.float32)
                self.assertEqual((after.dtype, ours.bias.dtype), (torch.float16,) * 2)
                self.assertLess(self.relative_error(after, before.double()), 1e-2)

    def test_the_state_says_in_what_layout_it_is(self):
        for bits, zeros in ((4, True), (4, False), (8, False), ("fp8", False)):
            one = hone_nn.QuantizedLinear.from_float(a_linear(), bits, zeros=zeros)
            other = hone_nn.QuantizedLinear(256, 192, bits, device=DEVICE, zeros=zeros)
            state = one.state_dict()
            other.load_state_dict(state)
            with torch.no_grad():
                self.assert_same(other(randn(3, 256)), one(randn(3, 256)))
            later = {**state, "_extra_state": state["_extra_state"] + torch.tensor([1, 0, 0, 0, 0])}
            with self.assertRaisesRegex(RuntimeError, "layout version 2; this package reads version 1"):
                other.load_state_dict(later)
        with self.assertRaisesRegex(RuntimeError, "make it with the same bits, group, zeros and input_order"):
            hone_nn.QuantizedLinear(256, 192, "w8a8", bias=False).load_state_dict(
                hone_nn.QuantizedLinear(256, 192, "fp8", bias=False).state_dict()
            )

    def test_what_is_not_allowed(self):
        for name, arguments, options in (
            ("bits", (64, 64, 3), {}),
            ("group", (100, 64, 4, 64), {}),
            ("group", (128, 64, 8, 64), {}),
            ("zeros", (128, 64, 8), {"zeros": True}),
            ("input_order", (128, 64, 8), {"input_order": True}),
            ("activation", (128, 64), {"activation": "tanh"}),
        ):
            with self.assertRaisesRegex(ValueError, f"^{name}: "):
                hone_nn.QuantizedLinear(*arguments, **options)

    def test_columns_in_another_order(self):
        theirs, x = a_linear(), randn(7, 256)
        order = torch.randperm(256, device=DEVICE, generator=torch.Generator(DEVICE).manual_seed(1))
        sorted_columns = a_linear()
        with torch.no_grad():
            sorted_columns.weight.copy_(theirs.weight[:, order])
            sorted_columns.bias.copy_(theirs.bias)
            natural = hone_nn.QuantizedLinear.from_float(sorted_columns)
            ours = hone_nn.QuantizedLinear(256, 192, device=DEVICE, input_order=True)
            state = {**natural.state_dict(), "input_order": order.int()}
            state["_extra_state"] = ours.state_dict()["_extra_state"]
            ours.load_state_dict(state)
            self.assert_same(ours(x), natural(x[:, order]))
            self.assert_same(ours.dequantized(torch.float32)[:, order], natural.dequantized(torch.float32))
            wanted = ours(x).double()
            self.assertLess(self.relative_error(ours.cpu()(x.cpu()), wanted.cpu()), 1e-2)
            self.assertEqual(ours.half().input_order.dtype, torch.int32)
        with self.assertRaisesRegex(RuntimeError, "same bits, group, zeros and input_order"):
            natural.load_state_dict(ours.state_dict(), strict=False)

    def test_it_compiles_into_one_graph(self):
        torch._dynamo.reset()
        layers = (a_linear(256, 256), nn.ReLU(), a_linear(256, 192))
        x = randn(4, 256)
        for bits in (4, "fp8"):
            model = nn.Sequential(*layers)
            hone.replace_linear_with_quantized(model, bits)
            with torch.no_grad():
                compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
                self.assert_same(compiled(x), model(x))


class Replacing(QuantizedCase):
    def model(self) -> nn.Module:
        block = nn.Sequential(a_linear(256, 256), nn.GELU(), a_linear(256, 64))
        shared = nn.ModuleDict({"blocks": nn.ModuleList([block, block[0]]), "lm_head": a_linear(64, 100)})
        shared["ffn"] = hone_nn.FusedFFN(64, 128, device=DEVICE, dtype=torch.bfloat16)
        return shared

    def test_every_layer_but_those_to_be_skipped(self):
        for skip, expected in (
            ((), {"blocks.0.0", "blocks.0.2", "lm_head"}),
            (["lm_head"], {"blocks.0.0", "blocks.0.2"}),
            (["blocks.*"], {"lm_head"}),
            ("blocks", {"lm_head"}),
        ):
            model = self.model()
            swapped = hone.replace_linear_with_quantized(model, 4, skip=skip)
            with self.subTest(skip=skip):
                names = {name.replace("blocks.1", "blocks.0.0") for name, _, _ in swapped}
                self.assertEqual(names, expected | {"ffn"})
                self.assertIs(model["blocks"][1], model["blocks"][0][0])  # it stands in two places
                self.assertIs(type(model["ffn"]), hone_nn.QuantizedFFN)

    def test_a_feed_forward_network_is_replaced_as_a_whole_or_not_at_all(self):
        for options in ({"skip": ["down_proj"]}, {"skip": "ffn"}, {"group": 128}):
            model = self.model()
            hone.replace_linear_with_quantized(model, 4, **options)
            self.assertIs(type(model["ffn"].up_proj), nn.Linear)
        model, x = self.model()["ffn"], randn(9, 64)
        both = nn.ModuleList([model, model])
        with torch.no_grad():
            wanted = model(x).double()
            swapped = hone.replace_linear_with_quantized(both, 8)
            self.assertEqual(swapped, [("0", hone_nn.FusedFFN, hone_nn.QuantizedFFN)])
            self.assertIs(both[0], both[1])
            self.assertLess(self.relative_error(both[0](x), wanted), 0.03)

    def test_what_a_group_does_not_divide_stays(self):
        model = nn.Sequential(a_linear(96, 64), a_linear(64, 64))
        swapped = hone.replace_linear_with_quantized(model, 4, group=64)
        self.assertEqual([name for name, _, _ in swapped], ["1"])
        self.assertEqual(hone.replace_linear_with_quantized(model, 4)[0][0], "0")
        self.assertEqual(model[0].group, 32)

    def test_the_model_computes_nearly_the_same(self):
        model, x = self.model()["blocks"][0], randn(9, 256)
        with torch.no_grad():
            wanted = model(x).double()
            hone.replace_linear_with_quantized(model, 8)
            self.assertLess(self.relative_error(model(x), wanted), 0.03)


if __name__ == "__main__":
    unittest.main()

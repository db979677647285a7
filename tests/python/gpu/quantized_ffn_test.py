"""Quantized feed-forward networks beside float64: prepared operators and hone::quantized_ffn."""

from __future__ import annotations

import unittest
from typing import Any, Dict, Tuple

from quantized_support import QuantizedCase, multiplied, no_care, quantize_x, stored_weight
from support import DEVICE, DTYPES, EPSILON, linear, prepared, randn, rms_norm

import torch
from torch import Tensor

import hone
from hone import ops
from hone._torch.quantized import quantized_ffn

MOST = 160
HIDDEN, BETWEEN = 256, 640


def ffn_values(
    x: Tensor, weights: Dict[str, Any], format: str, group: int, activation: str, biases: Any = (None, None),
    residual: Any = None, dtype: Any = torch.bfloat16,
) -> Tensor:  # fmt: skip
    """In float64 but for what lies between the halves; `x` is what is multiplied."""
    if "gate" in weights:
        half = linear(x, weights["gate"].values, activation=activation) * linear(x, weights["up"].values)
    else:
        half = linear(x, weights["up"].values, biases[0], activation=activation)
    half = multiplied(half.to(dtype), format, group)
    return linear(half, weights["down"].values, biases[1], residual)


class Prepared(QuantizedCase):
    """hone.prepare() of QuantizedFfn."""

    def test_feed_forward_networks(self):
        hidden, between = HIDDEN, BETWEEN
        for kind, group, options in (
            ("w4a16", 64, {"residual": True, "norm": True}),
            ("w8a16", 0, {"gated": False, "bias": True, "activation": "gelu_tanh"}),
            ("w8a8", 0, {"dtype": "fp16"}),
            ("fp8", 128, {"residual": True}),
        ):
            description = hone.QuantizedFfn(hidden, between, kind, group, MOST, **options)
            operator, dtype = prepared(description), DTYPES[description.dtype]
            names = ("gate", "up", "down") if description.gated else ("up", "down")
            shapes = {"gate": (between, hidden), "up": (between, hidden), "down": (hidden, between)}
            weights = {
                name: stored_weight(*shapes[name], kind, group, dtype, seed=seed)
                for seed, name in enumerate(names)
            }
            given = {name: weight.packed.codes for name, weight in weights.items()}
            given.update({f"{name}_scales": weight.packed.scales for name, weight in weights.items()})
            biases = [randn(n, dtype=dtype) if description.bias else None for n in (between, hidden)]
            for tokens in (1, 17, MOST):
                x = randn(tokens, hidden, dtype=dtype, seed=9)
                residual = x if description.residual else None
                norm = randn(hidden, dtype=dtype, seed=8) if description.norm else None
                values = multiplied(x if norm is None else rms_norm(x, norm), kind, group)
                wanted = ffn_values(
                    values, weights, kind, group, description.activation, biases, residual, dtype
                )
                found = operator(
                    x, **given, up_bias=biases[0], down_bias=biases[1], residual=residual, norm_weight=norm
                )
                with self.subTest(description=description, tokens=tokens):
                    # An intermediate may fall on the other side of a rounding to dtype or codes.
                    self.assert_product(found, wanted, kind, 2)


def samples(dtype: Any = torch.bfloat16, tokens: int = 5) -> Dict[str, Tuple[tuple, Tensor, str]]:
    """Calls of the operator by name: (arguments, what is wanted in float64, format)."""
    x, residual = randn(tokens, HIDDEN, dtype=dtype, seed=1), randn(tokens, HIDDEN, dtype=dtype, seed=2)
    norm = randn(HIDDEN, dtype=dtype, seed=3)
    biases = randn(BETWEEN, dtype=dtype, seed=4), randn(HIDDEN, dtype=dtype, seed=5)
    name = {torch.bfloat16: "bf16", torch.float16: "fp16"}[dtype]

    def weights(format: str, group: int = 0, gated: bool = True, **more: Any) -> Dict[str, Any]:
        shapes = {"gate": (BETWEEN, HIDDEN), "up": (BETWEEN, HIDDEN), "down": (HIDDEN, BETWEEN)}
        return {
            part: stored_weight(*shape, format, group, dtype, seed=seed, **more)
            for seed, (part, shape) in enumerate(shapes.items())
            if gated or part != "gate"
        }

    def call(x: Tensor, weights: Dict[str, Any], format: str, group: int, *more: Any) -> tuple:
        """`more` begins with the activation."""
        gate = weights["gate"].packed[:2] if "gate" in weights else (None, None)
        stored = (*gate, *weights["up"].packed[:2], *weights["down"].packed[:2])
        return (x, *stored, format, group, BETWEEN, *more)

    four, eight = weights("w4a16", 64, zeros=True), weights("w8a16", gated=False)
    both, blocks = weights("w8a8", one_scale=True), weights("fp8", 128)
    zeros = [four[part].packed.zeros for part in ("gate", "up", "down")]
    given = quantize_x(x, "w8a8")
    none = (None,) * 5
    return {
        "w4a16 with a norm": (
            call(x, four, "w4a16", 64, "silu", *zeros, None, None, residual, None, norm, EPSILON),
            ffn_values(rms_norm(x, norm), four, "w4a16", 64, "silu", residual=residual, dtype=dtype),
            "w4a16",
        ),
        "w8a16, not gated": (
            call(x, eight, "w8a16", 0, "relu", None, None, None, *biases),
            ffn_values(x.double(), eight, "w8a16", 0, "relu", biases, dtype=dtype),
            "w8a16",
        ),
        "w8a8 of codes": (
            call(given.codes, both, "w8a8", 0, "gelu_tanh", *none, residual, given.scales, None, None, name),
            ffn_values(given.values, both, "w8a8", 0, "gelu_tanh", residual=residual, dtype=dtype),
            "w8a8",
        ),
        "fp8 in blocks": (
            call(x, blocks, "fp8", 128, "silu"),
            ffn_values(multiplied(x, "fp8", 128), blocks, "fp8", 128, "silu", dtype=dtype),
            "fp8",
        ),
    }  # fmt: skip


class Operator(QuantizedCase):
    """hone::quantized_ffn."""

    def test_values(self):
        for dtype in (torch.bfloat16, torch.float16):
            for name, (arguments, wanted, kind) in samples(dtype).items():
                for _ in range(2):  # with care, and at once
                    with self.subTest(dtype=dtype, call=name):
                        out = ops.quantized_ffn(*arguments)
                        self.assertEqual((out.dtype, out.is_contiguous()), (dtype, True))
                        self.assert_product(out, wanted, kind, 2)

    def test_calls_like_the_last_one_are_not_checked_again(self):
        for arguments, _, _ in samples().values():
            wanted = ops.quantized_ffn(*arguments)
            with no_care(quantized_ffn):
                self.assert_same(ops.quantized_ffn(*arguments), wanted)
        x, *rest = samples()["fp8 in blocks"][0]
        with self.assertRaisesRegex(ValueError, "^down: its shape is "):
            ops.quantized_ffn(x, *rest[:4], rest[4][:-1], *rest[5:])

    def test_any_strides_and_alignment(self):
        for name, (arguments, wanted, kind) in samples().items():
            x, *rest = arguments
            wide = torch.zeros(x.shape[0], 3 * HIDDEN + 1, dtype=x.dtype, device=DEVICE)
            for placed in (wide[:, :HIDDEN], wide[:, 1 : HIDDEN + 1]):
                placed.copy_(x)
                with self.subTest(name, offset=placed.storage_offset()):
                    self.assert_product(ops.quantized_ffn(placed, *rest), wanted, kind, 2)
            if kind != "w8a8":
                nothing = [a[:0] if isinstance(a, Tensor) and a.shape == x.shape else a for a in arguments]
                self.assertEqual(ops.quantized_ffn(*nothing).shape, (0, HIDDEN))

    def test_mistakes_name_their_argument(self):
        for device in (DEVICE, torch.device("meta")):
            names = (
                "x", "gate", "gate_scales", "up", "up_scales", "down", "down_scales", "format", "group",
                "intermediate", "activation",
            )  # fmt: skip
            good = dict(zip(names, samples()["w4a16 with a norm"][0]))
            good = {name: v.to(device) if isinstance(v, Tensor) else v for name, v in good.items()}
            ops.quantized_ffn(**good)
            x = good["x"]
            for kind, name, change in (
                (TypeError, "x", {"x": x.float()}),
                (TypeError, "up", {"up": good["up"].view(torch.int8)}),
                (ValueError, "down", {"down": good["up"]}),
                (ValueError, "gate_scales", {"gate_scales": None}),
                (ValueError, "gate_scales", {"gate": None}),
                (ValueError, "gate_scales", {"group": 32}),
                (ValueError, "down_zeros", {"down_zeros": good["down"]}),
                (ValueError, "gate_zeros", {"up_zeros": good["up"], "down_zeros": good["down"]}),
                (ValueError, "up_bias", {"up_bias": x[0]}),
                (ValueError, "activation", {"activation": "none"}),
                (ValueError, "activation", {"activation": "tanh"}),
                (ValueError, "intermediate", {"intermediate": 0}),
                (ValueError, "format", {"format": "int4"}),
                (ValueError, "residual", {"residual": x[:1]}),
                (ValueError, "epsilon", {"norm_weight": x[0]}),
                (ValueError, "x_scales", {"x_scales": x[:, 0].float()}),
                (ValueError, "out_dtype", {"out_dtype": "fp16"}),
            ):
                with self.subTest(name=name, device=str(device)):
                    with self.assertRaisesRegex(kind, f"^{name}: "):
                        ops.quantized_ffn(**{**good, **change})

    def test_opcheck_is_content(self):
        for name, (arguments, _, _) in samples().items():
            with self.subTest(name):
                kinds = ["test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
                # That of the schema multiplies the arguments, and PyTorch has no product of fp8.
                if not any(isinstance(a, Tensor) and a.dtype == torch.float8_e4m3fn for a in arguments):
                    kinds.append("test_schema")
                torch.library.opcheck(torch.ops.hone.quantized_ffn.default, arguments, test_utils=kinds)

    def test_tensors_without_memory(self):
        for arguments, wanted, _ in samples().values():
            found = ops.quantized_ffn(*(a.to("meta") if isinstance(a, Tensor) else a for a in arguments))
            self.assertEqual((found.shape, found.dtype), (wanted.shape, torch.bfloat16))
            self.assertEqual(found.stride(), wanted.stride())

    def test_there_is_no_gradient(self):
        x, *rest = samples()["fp8 in blocks"][0]
        with self.assertRaisesRegex(NotImplementedError, "^hone::quantized_ffn has no gradient"):
            ops.quantized_ffn(x.requires_grad_(), *rest).sum().backward()

    def test_one_graph_of_dynamo_and_one_of_cuda(self):
        torch._dynamo.reset()
        for name, (arguments, _, _) in samples().items():
            wanted = ops.quantized_ffn(*arguments)
            compiled = torch.compile(lambda *a: ops.quantized_ffn(*a), fullgraph=True, backend="aot_eager")
            with self.subTest(name), torch.no_grad():
                self.assert_same(compiled(*arguments), wanted)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                found = ops.quantized_ffn(*arguments)
            graph.replay()
            self.assert_same(found, wanted)


if __name__ == "__main__":
    unittest.main()

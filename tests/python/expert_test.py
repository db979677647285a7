"""Calls of prepared layers of experts and of their routing: what reaches the driver, what shapes tensors have by
token and by place, and what mistakes say."""

from __future__ import annotations

import unittest

from fakes import arrays, torch as fake_torch
from fakes.case import Case, prepare

import hone

IN, OUT, EXPERTS, TOP_K = 64, 96, 8, 2

LAYERS = (
    hone.ExpertLinear(IN, OUT, EXPERTS, TOP_K),
    hone.ExpertLinear(IN, OUT, EXPERTS, TOP_K, dtype="fp16", activation="silu", gated=True, gather=True),
    hone.ExpertLinear(IN, OUT, EXPERTS, TOP_K, dtype="fp32", bias=True, combine=True),
    hone.ExpertLinear(
        IN, OUT, EXPERTS, TOP_K, activation="relu", gated=True, bias=True, gather=True, combine=True
    ),
)
CODED = (
    hone.QuantizedExpertLinear(IN, OUT, EXPERTS, TOP_K, group=64, zeros=True, gather=True),
    hone.QuantizedExpertLinear(IN, OUT, EXPERTS, TOP_K, dtype="fp16", activation="silu", gated=True, gather=True),
    hone.QuantizedExpertLinear(IN, OUT, EXPERTS, TOP_K, "w8a16", combine=True),
    hone.QuantizedExpertLinear(IN, OUT, EXPERTS, TOP_K, "w8a8", bias=True, gated=True, activation="silu"),
    hone.QuantizedExpertLinear(128, 256, EXPERTS, TOP_K, "fp8", 128, combine=True),
)
# Of an expert [out, in]: codes, and the shape of scales and zero points.
STORED = {
    "w4a16": (lambda out, columns, group: ((out + 63) // 64, columns // 64 * 2048), "uint8"),
    "w8a16": (lambda out, columns, group: ((out + 63) // 64, columns // 64 * 4096), "uint8"),
    "w8a8": (lambda out, columns, group: (out, columns), "int8"),
    "fp8": (lambda out, columns, group: (out, columns), "fp8_e4m3"),
}


def codes_of(layer: hone.QuantizedExpertLinear) -> dict:
    """(shape, dtype) of the arrays of a layer's weights."""
    out, columns = layer.out_features, layer.in_features
    shape, dtype = STORED[layer.format]
    scales = (out,), "fp32"
    if layer.format == "w4a16":
        scales = ((out + 63) // 64, columns // layer.group if layer.group else 1, 64), layer.dtype
    elif layer.group:
        scales = (out // 128, columns // 128), "fp32"
    found = {}
    for name in ("weight", "up") if layer.gated else ("weight",):
        lead = "" if name == "weight" else "up_"
        found[name] = (EXPERTS, *shape(out, columns, layer.group)), dtype
        found[f"{lead}scales"] = (EXPERTS, *scales[0]), scales[1]
        if layer.zeros:
            found[f"{lead}zeros"] = (EXPERTS, *scales[0]), "uint8"
    return found


def shapes_of(layer: hone.ExpertLinear, *tokens: int) -> dict:
    """Of every array in the layer's dtype."""
    found = {
        "x": (*tokens, layer.in_features) if layer.gather else (*tokens, TOP_K, layer.in_features),
        "out": (*tokens, layer.out_features) if layer.combine else (*tokens, TOP_K, layer.out_features),
    }
    if isinstance(layer, hone.ExpertLinear):
        found["weight"] = (EXPERTS, OUT, IN)
        if layer.gated:
            found["up"] = found["weight"]
    if layer.bias:
        found["bias"] = (EXPERTS, layer.out_features)
    if layer.bias and layer.gated:
        found["up_bias"] = (EXPERTS, layer.out_features)
    return found


class ExpertCase(Case):
    def arguments(self, layer: hone.ExpertLinear, *tokens: int) -> dict:
        given = {
            name: self.exporter(*shape, dtype=layer.dtype) for name, shape in shapes_of(layer, *tokens).items()
        }
        if isinstance(layer, hone.QuantizedExpertLinear):
            for name, (shape, dtype) in codes_of(layer).items():
                given[name] = self.exporter(*shape, dtype=dtype)
        given["starts"] = self.exporter(EXPERTS + 1, dtype="int32")
        if layer.gather or layer.combine:
            given["rows"] = self.exporter(*tokens, TOP_K, dtype="int32")
        if layer.combine:
            given["routing_weights"] = self.exporter(*tokens, TOP_K, dtype="fp32")
        return given

    def workspace_of(self, operator, tokens: int):
        size = operator.workspace_bytes(tokens)
        return arrays.Exporter(self.driver.allocate(1 << 18), (size,), "uint8") if size else None


class Layers(ExpertCase):
    def test_everything_given_is_used_and_returned(self) -> None:
        for layer in LAYERS:
            with self.subTest(layer=layer):
                operator, given = prepare(layer), self.arguments(layer, 2, 3)
                workspace = self.workspace_of(operator, 6)
                self.assertEqual(workspace is None, not layer.combine)
                with self.launches(2 if layer.combine else 1):
                    self.assertIs(operator(**given, workspace=workspace), given["out"])
                self.assert_ran_with(operator, **given)
                self.assertEqual(operator._run.rows, [6])

    def test_codes_and_scales_of_all_experts_are_used(self) -> None:
        for layer in CODED:
            with self.subTest(layer=layer):
                operator, given = prepare(layer), self.arguments(layer, 2, 3)
                makes_codes = layer.format in ("w8a8", "fp8")
                with self.launches(1 + makes_codes + layer.combine):
                    self.assertIs(operator(**given, workspace=self.workspace_of(operator, 6)), given["out"])
                self.assert_ran_with(operator, **given)

    def test_codes_of_another_shape_are_named(self) -> None:
        layer = CODED[0]
        operator, good = prepare(layer), self.arguments(layer, 4)
        for name, wrong in {
            "weight": self.exporter(2, 2048, dtype="uint8"),
            "scales": self.exporter(EXPERTS, 2, 2, 64, dtype=layer.dtype),
            "zeros": self.exporter(EXPERTS + 1, 2, 1, 64, dtype="uint8"),
        }.items():
            with self.subTest(name=name), self.assertRaisesRegex(ValueError, f"^{name}: "):
                operator(**{**good, name: wrong}, workspace=self.workspace_of(operator, 4))

    def test_rows_of_tokens_may_lie_apart(self) -> None:
        layer = LAYERS[3]
        operator, given = prepare(layer), self.arguments(layer, 4)
        given["x"] = self.exporter(4, IN, strides=(2 * IN, 1))
        given["out"] = self.exporter(4, OUT, strides=(3 * OUT, 1))
        operator(**given, workspace=self.workspace_of(operator, 4))
        self.assert_ran_with(operator, **given, x_stride=2 * IN, out_stride=3 * OUT)

    def test_mistakes_are_named(self) -> None:
        layer = LAYERS[3]
        operator, good = prepare(layer), self.arguments(layer, 4)
        wrong = {
            "rows": (self.exporter(4, TOP_K + 1, dtype="int32"), ValueError, r"^rows: .*\[4, 3\]"),
            "routing_weights": (None, TypeError, "^routing_weights: it is missing; .* combine=True"),
            "starts": (self.exporter(EXPERTS, dtype="int32"), ValueError, r"^starts: .*\[8\]"),
            "weight": (self.exporter(EXPERTS, IN, OUT), ValueError, r"^weight: "),
            "up_bias": (None, TypeError, "^up_bias: it is missing; .* gated=True and bias=True"),
            "out": (self.exporter(4, TOP_K, OUT), ValueError, "^out: "),
        }
        for name, (value, kind, pattern) in wrong.items():
            with self.subTest(name), self.refuses(kind, pattern):
                operator(**{**good, name: value}, workspace=self.workspace_of(operator, 4))
        plain = prepare(LAYERS[0])
        given = self.arguments(LAYERS[0], 4)
        with self.refuses(ValueError, "^rows: it is given, .* without gather=True or combine=True"):
            plain(**given, rows=good["rows"])
        given["x"] = self.exporter(4 * TOP_K, IN)
        with self.refuses(ValueError, r"^x: "):
            plain(**given)

    def test_descriptions_are_checked_by_the_library(self) -> None:
        with self.assertRaisesRegex(hone.HoneError, "top_k is 9; allowed: at most experts, 8"):
            hone.prepare(hone.ExpertLinear(IN, OUT, EXPERTS, 9))


class Routing(ExpertCase):
    def test_all_outputs_are_returned_in_order(self) -> None:
        operator = prepare(hone.ExpertRouting(EXPERTS, TOP_K, renormalize=True))
        logits = self.exporter(2, 3, EXPERTS)
        given = {
            "routing_weights": self.exporter(2, 3, TOP_K, dtype="fp32"),
            "starts": self.exporter(EXPERTS + 1, dtype="int32"),
            "rows": self.exporter(2, 3, TOP_K, dtype="int32"),
        }
        with self.one_launch():
            self.assertEqual(operator(logits, **given), tuple(given.values()))
        self.assert_ran_with(operator, logits=logits, **given)


class Torch(ExpertCase):
    """Tensors of a torch are taken the fast way, and outputs made."""

    def setUp(self) -> None:
        self.torch = fake_torch.install()
        self.addCleanup(fake_torch.uninstall)

    def made(self, *shape: int, dtype: str):
        return fake_torch.cuda_tensor(self.torch, *shape, dtype=getattr(self.torch, dtype))

    def test_outputs_have_the_shapes_of_tokens_and_places(self) -> None:
        dtypes = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
        for layer in LAYERS:
            with self.subTest(layer=layer):
                operator = hone.prepare(layer)
                careful = operator._call_checked = fake_torch.counting(operator._call_checked)
                shapes = shapes_of(layer, 2, 3)
                wanted = shapes.pop("out")
                given = {name: self.made(*shape, dtype=dtypes[layer.dtype]) for name, shape in shapes.items()}
                given["starts"] = self.made(EXPERTS + 1, dtype="int32")
                if layer.gather or layer.combine:
                    given["rows"] = self.made(2, 3, TOP_K, dtype="int32")
                if layer.combine:
                    given["routing_weights"] = self.made(2, 3, TOP_K, dtype="float32")
                for _ in range(2):
                    with self.launches(2 if layer.combine else 1):
                        self.assertEqual(tuple(operator(**given).shape), wanted)
                self.assertLessEqual(careful.calls, 1)  # that which meets torch for the first time

    def test_routing_makes_what_it_writes(self) -> None:
        operator = hone.prepare(hone.ExpertRouting(EXPERTS, TOP_K))
        with self.one_launch():
            found = operator(self.made(5, EXPERTS, dtype="bfloat16"))
        self.assertEqual([tuple(one.shape) for one in found], [(5, TOP_K), (EXPERTS + 1,), (5, TOP_K)])


if __name__ == "__main__":
    unittest.main()

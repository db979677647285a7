"""Calls of prepared quantized layers and feed-forward networks: what reaches the driver, and what mistakes
say."""

from __future__ import annotations

import unittest

from fakes import arrays, torch as fake_torch
from fakes.case import Case, prepare

import hone
from hone import models

IN, OUT = 256, 192
HIDDEN, BETWEEN = 128, 320

LINEARS = (
    hone.QuantizedLinear(IN, OUT),
    hone.QuantizedLinear(IN, OUT, group=128, zeros=True, bias=True, residual=True),
    hone.QuantizedLinear(IN, OUT, group=32, dtype="fp16", norm=True),
    hone.QuantizedLinear(100, 75, "w8a16", activation="silu", bias=True),
    hone.QuantizedLinear(IN, OUT, "w8a8"),
    hone.QuantizedLinear(IN, OUT, "w8a8", quantized_x=True, residual=True),
    hone.QuantizedLinear(IN, OUT, "fp8", quantized_x=True, one_scale=True, one_x_scale=True, bias=True),
    hone.QuantizedLinear(IN, OUT, "fp8", group=128, quantized_x=True),
)
FFNS = (
    hone.QuantizedFfn(HIDDEN, BETWEEN, group=64),
    hone.QuantizedFfn(HIDDEN, BETWEEN, group=32, zeros=True, residual=True, norm=True),
    hone.QuantizedFfn(HIDDEN, BETWEEN, "w8a16", activation="gelu_tanh", gated=False, bias=True),
    hone.QuantizedFfn(HIDDEN, BETWEEN, "w8a8", dtype="fp16", quantized_x=True, one_scale=True),
)
CODES = {"w4a16": "uint8", "w8a16": "uint8", "w8a8": "int8", "fp8": "fp8_e4m3"}
BLOCKS = {"w4a16": 2048, "w8a16": 4096}


def stored(description, rows: int, columns: int, name: str = "") -> dict:
    """(shape, dtype) of the arrays of a weight, as docs/formats.md says."""
    kind, group = description.format, description.group
    names = (f"{name}", f"{name}_scales", f"{name}_zeros") if name else ("weight", "scales", "zeros")
    blocks = lambda extent: -(-extent // 64)  # noqa: E731
    codes, scales = (rows, columns), ((1 if description.one_scale else rows,), "fp32")
    if kind in BLOCKS:
        codes = (blocks(rows), blocks(columns) * BLOCKS[kind])
    if kind == "w4a16":
        groups = -(-blocks(columns) * 64 // group) if group else 1
        scales = ((blocks(rows), groups, 64), description.dtype)
    elif group:
        scales = ((-(-rows // 128), columns // 128), "fp32")
    found = {names[0]: (codes, CODES[kind]), names[1]: scales}
    return {**found, names[2]: (scales[0], "uint8")} if description.zeros else found


def arrays_of(description, *rows: int) -> dict:
    """(shape, dtype) of every array of a call but the workspace, by name."""
    dtype = description.dtype
    if isinstance(description, hone.QuantizedLinear):
        columns, out = description.in_features, description.out_features
        found = {**stored(description, out, columns)}
        biases = {"bias": out}
    else:
        columns = out = description.hidden
        between = description.intermediate
        found = {**stored(description, between, out, "up"), **stored(description, out, between, "down")}
        if description.gated:
            found.update(stored(description, between, out, "gate"))
        biases = {"up_bias": between, "down_bias": out}
    found["x"] = ((*rows, columns), CODES[description.format] if description.quantized_x else dtype)
    found["out"] = ((*rows, out), dtype)
    if description.bias:
        found.update({name: ((size,), dtype) for name, size in biases.items()})
    if description.residual:
        found["residual"] = found["out"]
    if description.norm:
        found["norm_weight"] = ((columns,), dtype)
    if description.quantized_x:
        scales = (*rows, columns // 128) if description.group else rows
        found["x_scales"] = ((1,) if description.one_x_scale else scales, "fp32")
    return found


class QuantizedCase(Case):
    def arguments(self, description, *rows: int) -> dict:
        return {
            name: self.exporter(*shape, dtype=dtype)
            for name, (shape, dtype) in arrays_of(description, *rows).items()
        }

    def workspace_of(self, operator, rows: int):
        size = operator.workspace_bytes(rows)
        return arrays.Exporter(self.driver.allocate(1 << 20), (size,), "uint8") if size else None


class OtherArrays(QuantizedCase):
    """Everything but torch tensors."""

    def test_everything_given_is_used_and_returned(self) -> None:
        for description in (*LINEARS, *FFNS):
            with self.subTest(description=description):
                operator = prepare(description)
                given = self.arguments(description, 2, 3)
                workspace = self.workspace_of(operator, 6)
                with self.some_launches():
                    self.assertIs(operator(**given, workspace=workspace), given["out"])
                expected = given if workspace is None else {**given, "workspace": workspace}
                self.assert_ran_with(operator, **expected)
                self.assertEqual(operator._run.rows, [6])

    def test_arguments_in_their_order(self) -> None:
        description = LINEARS[1]
        linear, given = prepare(description), self.arguments(description, 4)
        order = ("x", "weight", "scales", "zeros", "bias", "residual")
        linear(*(given[name] for name in order), out=given["out"], workspace=self.workspace_of(linear, 4))
        self.assert_ran_with(linear, **given)

    def test_strides_are_those_of_the_arrays(self) -> None:
        description = LINEARS[7]
        linear, given = prepare(description), self.arguments(description, 4)
        steps = {"x": 2 * IN, "weight": 3 * IN, "out": 3 * OUT, "x_scales": 8}
        for name, step in steps.items():
            shape, dtype = arrays_of(description, 4)[name]
            given[name] = self.exporter(*shape, dtype=dtype, strides=(step, 1))
        with self.some_launches():
            linear(**given, workspace=self.workspace_of(linear, 4))
        strides = {f"{name}_stride": step for name, step in steps.items() if name != "x_scales"}
        self.assert_ran_with(linear, **given, **strides, x_scale_stride=8)

    def test_bytes_do_where_a_library_has_no_fp8(self) -> None:
        description = LINEARS[6]
        linear, given = prepare(description), self.arguments(description, 4)
        for name in ("x", "weight"):
            given[name] = self.exporter(*given[name].shape, dtype="uint8")
        with self.some_launches():
            linear(**given, workspace=self.workspace_of(linear, 4))
        self.assert_ran_with(linear, **given)

    def test_out_may_be_the_residual_itself(self) -> None:
        for description in (LINEARS[1], FFNS[1]):
            operator, given = prepare(description), self.arguments(description, 4)
            given["out"] = given["residual"]
            with self.some_launches():
                operator(**given, workspace=self.workspace_of(operator, 4))
            self.assert_ran_with(operator, **given)

    def test_no_rows_launch_nothing(self) -> None:
        for description in (LINEARS[0], FFNS[0]):
            operator, given = prepare(description), self.arguments(description, 0)
            with self.launches(0):
                self.assertIs(operator(**given), given["out"])


class Mistakes(QuantizedCase):
    """Each names its argument, what was found, and what is allowed."""

    def test_properties_of_arrays(self) -> None:
        for description in (LINEARS[1], LINEARS[5], LINEARS[7], FFNS[1]):
            operator, good = prepare(description), self.arguments(description, 4)
            workspace = self.workspace_of(operator, 4)
            for name, (shape, dtype) in arrays_of(description, 4).items():
                with self.subTest(description=description, name=name):
                    with self.refuses(TypeError, f"^{name}: its dtype is int32; allowed is {dtype}"):
                        wrong = self.exporter(*shape, dtype="int32")
                        operator(**{**good, name: wrong}, workspace=workspace)
                    with self.refuses(ValueError, f"^{name}: its shape is "):
                        wrong = self.exporter(*shape[:-1], shape[-1] + 1, dtype=dtype)
                        operator(**{**good, name: wrong}, workspace=workspace)
                    with self.refuses(ValueError, f"^{name}: it is on CUDA device 1"):
                        wrong = self.exporter(*shape, dtype=dtype, device=(2, 1))
                        operator(**{**good, name: wrong}, workspace=workspace)

    def test_stored_weights_without_gaps(self) -> None:
        linear, good = prepare(LINEARS[1]), self.arguments(LINEARS[1], 4)
        for name in ("weight", "scales", "zeros"):
            shape, dtype = arrays_of(LINEARS[1], 4)[name]
            steps = tuple(2 * step for step in (shape[-1] * shape[1], shape[-1], 1)[-len(shape) :])
            with self.refuses(ValueError, rf"^{name}: its strides are \["):
                linear(**{**good, name: self.exporter(*shape, dtype=dtype, strides=(*steps[:-1], 1))})

    def test_what_is_missing(self) -> None:
        for description, name, option in (
            (LINEARS[1], "zeros", "zeros=True"),
            (LINEARS[1], "bias", "bias=True"),
            (LINEARS[1], "residual", "residual=True"),
            (LINEARS[2], "norm_weight", "norm=True"),
            (LINEARS[5], "x_scales", "quantized_x=True"),
            (FFNS[0], "gate", "gated=True"),
            (FFNS[0], "gate_scales", "gated=True"),
            (FFNS[1], "gate_zeros", "gated=True and zeros=True"),
            (FFNS[1], "down_zeros", "zeros=True"),
            (FFNS[2], "up_bias", "bias=True"),
        ):
            self.refuses_missing(prepare(description), self.arguments(description, 4), name, option)
        for description, name in ((LINEARS[0], "scales"), (FFNS[0], "up"), (FFNS[0], "down_scales")):
            self.refuses_none(prepare(description), self.arguments(description, 4), name)

    def test_what_is_too_much(self) -> None:
        for description, names in (
            (LINEARS[0], ("zeros", "bias", "residual", "norm_weight", "x_scales")),
            (FFNS[0], ("up_zeros", "gate_zeros", "up_bias", "residual", "norm_weight", "x_scales")),
            (FFNS[2], ("gate", "gate_scales", "residual")),
        ):
            operator, good = prepare(description), self.arguments(description, 4)
            for name in names:
                self.refuses_given(operator, good, name, good["x"])

    def test_too_many_tokens(self) -> None:
        description = hone.QuantizedLinear(IN, OUT, max_tokens=8)
        with self.refuses(ValueError, "^x: it has 9 rows; allowed are up to 8, the max_tokens that"):
            prepare(description)(**self.arguments(description, 9))

    def test_pointers_are_checked_by_the_library(self) -> None:
        linear = prepare(hone.QuantizedLinear(IN, OUT, max_tokens=8))
        with self.refuses(hone.BadArgumentError, "^tokens is 9; allowed: 0 to 8, as prepared"):
            linear.run_pointers(0, 9, 256, 256, 256, 256, workspace=256)
        with self.refuses(hone.BadArgumentError, "null pointer|is NULL"):
            linear.run_pointers(0, 1, 256, 256, 0, 256, workspace=256)


class TorchTensors(QuantizedCase):
    def setUp(self) -> None:
        self.torch = fake_torch.install()
        self.addCleanup(fake_torch.uninstall)

    def tensors(self, description, *rows: int) -> dict:
        names = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp8_e4m3": "float8_e4m3fn"}
        return {
            name: fake_torch.cuda_tensor(
                self.torch, *shape, dtype=getattr(self.torch, names.get(dtype, dtype))
            )
            for name, (shape, dtype) in arrays_of(description, *rows).items()
        }

    def test_both_ways_launch_the_same(self) -> None:
        """The first call goes the careful way, the second the fast one."""
        for description in (*LINEARS, *FFNS):
            with self.subTest(description=description):
                operator = prepare(description)
                careful = operator._call_checked = fake_torch.counting(operator._call_checked)
                given = self.tensors(description, 2, 3)
                for _ in range(2):
                    with self.some_launches():
                        self.assertIs(operator(**given), given["out"])
                    self.assert_ran_with(operator, **given)
                    needed = operator.workspace_bytes(6)
                    self.assertEqual(bool(operator._run.arguments[-1]["workspace"]), needed > 0)
                first, second = operator._run.arguments
                self.assertEqual({**first, "workspace": 0}, {**second, "workspace": 0})
                self.assertEqual((careful.calls, operator._run.rows), (1, [6, 6]))

    def test_out_is_made_in_both_ways(self) -> None:
        for description in (LINEARS[0], LINEARS[5], FFNS[0]):
            operator, given = prepare(description), self.tensors(description, 2, 3)
            given["residual"] = given.get("residual")
            shape = given.pop("out").shape
            for _ in range(2):
                with self.some_launches():
                    out = operator(**given)
                self.assertEqual((out.shape, out.dtype), (shape, self.torch.bfloat16))

    def test_mistakes_are_named_in_both_ways(self) -> None:
        linear, good = prepare(LINEARS[5]), self.tensors(LINEARS[5], 4)
        shorter = self.tensors(LINEARS[5], 3)
        for _ in range(2):
            for name in ("x_scales", "residual", "out"):
                with self.refuses(ValueError, rf"^{name}: its shape is \[3.*; allowed is \[4"):
                    linear(**{**good, name: shorter[name]})
            with self.refuses(TypeError, "^weight: its dtype is fp32; allowed is int8"):
                linear(**{**good, "weight": good["scales"]})
            linear(**good)


class Descriptions(Case):
    def test_what_is_no_description(self) -> None:
        with self.assertRaisesRegex(ValueError, "^format: 'int4'; allowed are w4a16, w8a16, w8a8, fp8"):
            hone.QuantizedLinear(IN, OUT, "int4")
        for field, value in (("group", "128"), ("zeros", 1), ("quantized_x", None), ("one_scale", 0)):
            with self.assertRaisesRegex(TypeError, f"^{field}: "):
                hone.QuantizedLinear(IN, OUT, **{field: value})

    def test_the_library_judges_the_rest(self) -> None:
        for description, pattern in (
            (hone.QuantizedLinear(0, OUT), "'in' has the value '0'"),
            (hone.QuantizedLinear(IN, OUT, group=48), "group=48; allowed: 32, 64, 128, 0"),
            (hone.QuantizedLinear(IN, OUT, dtype="fp32"), "allowed: fp16, bf16"),
            (hone.QuantizedLinear(IN, OUT, one_scale=True), "one_scale is for format=w8a8 and fp8"),
            (hone.QuantizedLinear(IN, OUT, "fp8", one_x_scale=True), "one_x_scale is for quantized_x=yes"),
            (hone.QuantizedFfn(HIDDEN, BETWEEN, bias=True), "gated=yes has no bias"),
            (hone.QuantizedFfn(HIDDEN, BETWEEN, group=128), "quantized_ffn: group=128 does not divide intermediate=320"),
        ):
            with self.assertRaisesRegex(hone.BadArgumentError, pattern):
                hone.prepare(description)


class Knowledge(Case):
    def test_a_description_is_read_from_its_problem(self) -> None:
        for description in LINEARS:
            if not (description.one_scale or description.one_x_scale):
                problem = hone.explain(description, 8)["problem"]
                self.assertEqual(models.description_of(problem, 8192), description)
        for description in FFNS[:3]:
            halves = [
                {"role": f"mlp, {name} half", "problem": part["problem"]}
                for name, part in zip(("first", "second"), hone.explain(description, 8)["parts"])
            ]
            self.assertEqual(models.descriptions_by_role(halves, 8192), {"mlp": description})

    def test_both_are_explained_and_reported(self) -> None:
        linear = hone.QuantizedLinear(IN, OUT, group=128, max_tokens=8)
        self.assertIn("format=w4a16 group=128", hone.explain(linear, 8)["problem"])
        self.assertEqual(prepare(linear).report()["parts"][0]["buckets"][-1]["sizes"]["tokens"][1], 8)
        ffn = hone.QuantizedFfn(HIDDEN, BETWEEN, "w8a16", max_tokens=8)
        told, report = hone.explain(ffn, 8)["parts"], prepare(ffn).report()["parts"]
        for half, problem in enumerate((f"gated=yes bias=no residual=no in={HIDDEN}", "=no in=")):
            self.assertIn(problem, told[half]["problem"])
            self.assertEqual(report[half]["buckets"][-1]["sizes"]["tokens"][1], 8)


if __name__ == "__main__":
    unittest.main()

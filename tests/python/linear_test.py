"""Calls of prepared linear layers and feed-forward networks: what reaches the driver, the workspace, and what
mistakes say."""

from __future__ import annotations

import unittest

from fakes import arrays, torch as fake_torch
from fakes.case import Case, prepare

import hone
from hone import models

IN, OUT = 64, 96
HIDDEN, BETWEEN = 64, 128

LINEARS = (
    hone.Linear(IN, OUT),
    hone.Linear(IN, OUT, dtype="fp16", activation="gelu_tanh", bias=True),
    hone.Linear(IN, OUT, dtype="fp32", residual=True),
    hone.Linear(IN, OUT, activation="relu", bias=True, residual=True),
    hone.Linear(IN, OUT, bias=True, norm=True),
)
FFNS = (
    hone.FusedFfn(HIDDEN, BETWEEN),
    hone.FusedFfn(HIDDEN, BETWEEN, activation="gelu_erf", residual=True),
    hone.FusedFfn(HIDDEN, BETWEEN, dtype="fp16", activation="gelu_tanh", gated=False, bias=True),
    hone.FusedFfn(HIDDEN, BETWEEN, activation="silu", gated=False, bias=True, residual=True),
    hone.FusedFfn(HIDDEN, BETWEEN, residual=True, norm=True),
)


def shapes_of(description, *rows: int) -> dict:
    """Of every array of a call but the workspace, by name."""
    if isinstance(description, hone.Linear):
        found = {"x": (*rows, IN), "weight": (OUT, IN), "out": (*rows, OUT)}
        if description.bias:
            found["bias"] = (OUT,)
    else:
        found = {"x": (*rows, HIDDEN), "up": (BETWEEN, HIDDEN), "down": (HIDDEN, BETWEEN)}
        found["gate"] = found["up"] if description.gated else None
        found["out"] = found["x"]
        if description.bias:
            found.update(up_bias=(BETWEEN,), down_bias=(HIDDEN,))
    if description.residual:
        found["residual"] = found["out"]
    if description.norm:
        found["norm_weight"] = found["x"][-1:]
    return found


class LinearCase(Case):
    def arguments(self, description, *rows: int) -> dict:
        return {
            name: None if shape is None else self.exporter(*shape, dtype=description.dtype)
            for name, shape in shapes_of(description, *rows).items()
        }

    def workspace(self, size: int, **more) -> arrays.Exporter:
        return arrays.Exporter(self.driver.allocate(1 << 18), (size,), "uint8", **more)

    def workspace_of(self, operator, rows: int):
        size = operator.workspace_bytes(rows)
        return self.workspace(size) if size else None

    def assert_ran(self, operator, arguments: dict, **more) -> None:
        given = {name: value for name, value in arguments.items() if value is not None}
        self.assert_ran_with(operator, **given, **more)


class OtherArrays(LinearCase):
    """Everything but torch tensors."""

    def test_everything_given_is_used_and_returned(self) -> None:
        for description in (*LINEARS, *FFNS):
            with self.subTest(description=description):
                operator = prepare(description)
                arguments = self.arguments(description, 2, 3)
                workspace = self.workspace_of(operator, 6)
                with self.some_launches():
                    self.assertIs(operator(**arguments, workspace=workspace), arguments["out"])
                self.assert_ran(operator, {**arguments, "workspace": workspace})
                self.assertEqual(operator._run.rows, [6])

    def test_arguments_in_their_order(self) -> None:
        description = LINEARS[3]
        linear, given = prepare(description), self.arguments(description, 4)
        order = ("x", "weight", "bias", "residual")
        linear(*(given[name] for name in order), out=given["out"], workspace=self.workspace_of(linear, 4))
        self.assert_ran(linear, given)
        description = FFNS[3]
        ffn, given = prepare(description), self.arguments(description, 4)
        order = ("x", "gate", "up", "down", "up_bias", "down_bias", "residual")
        ffn(*(given[name] for name in order), out=given["out"], workspace=self.workspace_of(ffn, 4))
        self.assert_ran(ffn, given)

    def test_strides_are_those_of_the_arrays(self) -> None:
        description = LINEARS[3]
        linear, given = prepare(description), self.arguments(description, 4)
        steps = {"x": 2 * IN, "weight": 3 * IN, "residual": 2 * OUT, "out": 3 * OUT}
        for name, step in steps.items():
            given[name] = self.exporter(*given[name].shape, strides=(step, 1))
        with self.some_launches():
            linear(**given, workspace=self.workspace_of(linear, 4))
        self.assert_ran(linear, given, **{f"{name}_stride": step for name, step in steps.items()})
        description = FFNS[3]
        ffn, given = prepare(description), self.arguments(description, 4)
        for name in ("x", "residual", "out"):
            given[name] = self.exporter(4, HIDDEN, strides=(2 * HIDDEN, 1))
        with self.some_launches():
            ffn(**given, workspace=self.workspace_of(ffn, 4))
        self.assert_ran(ffn, given, x_stride=2 * HIDDEN, residual_stride=2 * HIDDEN, out_stride=2 * HIDDEN)

    def test_out_may_be_the_residual_itself(self) -> None:
        for description in (LINEARS[3], FFNS[3]):
            operator = prepare(description)
            given = self.arguments(description, 4)
            given["out"] = given["residual"]
            with self.some_launches():
                operator(**given, workspace=self.workspace_of(operator, 4))
            self.assert_ran(operator, given)

    def test_a_norm_has_an_epsilon(self) -> None:
        for description in (LINEARS[4], FFNS[4]):
            operator = prepare(description)
            given = self.arguments(description, 4)
            workspace = self.workspace_of(operator, 4)
            for more, wanted in (({"epsilon": 0.25}, 0.25), ({"epsilon": 0}, 0.0)):
                with self.some_launches():
                    operator(**given, **more, workspace=workspace)
                self.assertEqual(operator._run.arguments[-1]["epsilon"], wanted)
            operator(**given, workspace=workspace)
            self.assertAlmostEqual(operator._run.arguments[-1]["epsilon"], 1e-5)
            with self.refuses(TypeError, "^epsilon: 'tiny'; allowed is a number"):
                operator(**given, epsilon="tiny", workspace=workspace)
            for wrong in (-1e-5, float("nan"), float("inf")):
                with self.refuses(hone.BadArgumentError, "^epsilon is (-1|nan|inf).*; allowed: finite numbers from 0"):
                    operator(**given, epsilon=wrong, workspace=workspace)

    def test_a_layer_may_add_itself_to_what_it_was_given(self) -> None:
        """out = x + ffn(norm(x)), in place."""
        ffn, given = prepare(FFNS[4]), self.arguments(FFNS[4], 4)
        given["residual"] = given["out"] = given["x"]
        with self.some_launches():
            ffn(**given, workspace=self.workspace_of(ffn, 4))
        self.assert_ran(ffn, given)

    def test_no_rows_launch_nothing(self) -> None:
        for description in (LINEARS[0], FFNS[0]):
            operator = prepare(description)
            given = self.arguments(description, 0)
            with self.launches(0):
                self.assertIs(operator(**given), given["out"])


class Workspaces(LinearCase):
    def test_it_grows_with_the_tokens(self) -> None:
        ffn = prepare(hone.FusedFfn(HIDDEN, BETWEEN, max_tokens=4096))
        sizes = [ffn.workspace_bytes(tokens) for tokens in (1, 64, 4096)]
        self.assertEqual(sizes, sorted(sizes))
        self.assertGreaterEqual(sizes[0], 2 * BETWEEN)
        self.assertEqual([ffn.workspace_bytes(tokens) for tokens in (1, 64, 4096)], sizes)
        with self.assertRaises(hone.BadArgumentError):
            ffn.workspace_bytes(4097)

    def test_it_is_asked_for_once_for_each_number_of_tokens(self) -> None:
        ffn = prepare(FFNS[0])
        size = ffn.workspace_bytes(3)
        ffn._handle = 0  # the library would refuse it
        self.assertEqual(ffn.workspace_bytes(3), size)

    def test_one_that_does_not_do(self) -> None:
        ffn = prepare(FFNS[0])
        given, needed = self.arguments(FFNS[0], 4), ffn.workspace_bytes(4)
        good = self.workspace(needed)
        for workspace, pattern in (
            (self.workspace(needed - 1), f"^workspace: it has {needed - 1} bytes; needed are {needed}"),
            (arrays.Exporter(good.pointer + 128, (needed,), "uint8"), "^workspace: its address .* 256 bytes"),
            (self.workspace(needed, read_only=True), "^workspace: it is read-only"),
            (None, rf"^workspace: it is missing, .* shape \[{needed}\] and dtype uint8"),
        ):
            with self.refuses(ValueError, pattern):
                ffn(**given, workspace=workspace)
        with self.some_launches():
            ffn(**given, workspace=good)


class Mistakes(LinearCase):
    """Each names its argument, what was found, and what is allowed."""

    def test_properties_of_arrays(self) -> None:
        for description in (LINEARS[3], LINEARS[4], FFNS[0], FFNS[3], FFNS[4]):
            operator = prepare(description)
            good = self.arguments(description, 4)
            workspace = self.workspace_of(operator, 4)
            for name in (name for name, value in good.items() if value is not None):
                shape, pointer = good[name].shape, good[name].pointer
                mistakes = (
                    (TypeError, "its dtype is fp16; allowed is bf16", self.exporter(*shape, dtype="fp16")),
                    (ValueError, "its shape is ", self.exporter(*shape[:-1], 32)),
                    (ValueError, "its shape is ", self.exporter(*shape[:-1], 1, shape[-1])),
                    (ValueError, "it is on CUDA device 1", self.exporter(*shape, device=(2, 1))),
                    (
                        ValueError,
                        f"its address {pointer + 2:#x} is no multiple of 16",
                        arrays.Exporter(pointer + 2, shape),
                    ),
                )
                for kind, pattern, value in mistakes:
                    if name == "x" and value.shape == (4, 1, shape[-1]):
                        continue  # then it is the others' shape that is wrong
                    with self.subTest(name=name, pattern=pattern):
                        with self.refuses(kind, f"^{name}: {pattern}"):
                            operator(**{**good, name: value}, workspace=workspace)
            with self.refuses(ValueError, "^out: it is read-only"):
                out = self.exporter(*good["out"].shape, read_only=True)
                operator(**{**good, "out": out}, workspace=workspace)

    def test_weights_without_gaps(self) -> None:
        ffn, good = prepare(FFNS[0]), self.arguments(FFNS[0], 4)
        for name in ("gate", "up", "down"):
            shape = good[name].shape
            with self.refuses(ValueError, rf"^{name}: its strides are \["):
                ffn(**{**good, name: self.exporter(*shape, strides=(2 * shape[1], 1))})

    def test_what_is_missing(self) -> None:
        for description, name, option in (
            (LINEARS[3], "bias", "bias=True"),
            (LINEARS[3], "residual", "residual=True"),
            (FFNS[0], "gate", "gated=True"),
            (FFNS[3], "up_bias", "bias=True"),
            (FFNS[3], "down_bias", "bias=True"),
            (FFNS[3], "residual", "residual=True"),
            (LINEARS[4], "norm_weight", "norm=True"),
            (FFNS[4], "norm_weight", "norm=True"),
        ):
            self.refuses_missing(prepare(description), self.arguments(description, 4), name, option)
        for description, name in ((LINEARS[0], "weight"), (FFNS[0], "up"), (FFNS[0], "down")):
            self.refuses_none(prepare(description), self.arguments(description, 4), name)

    def test_what_is_too_much(self) -> None:
        for description, names in (
            (LINEARS[0], ("bias", "residual", "norm_weight")),
            (FFNS[0], ("up_bias", "down_bias", "residual", "norm_weight")),
            (FFNS[2], ("gate", "residual")),
        ):
            operator, good = prepare(description), self.arguments(description, 4)
            for name in names:
                self.refuses_given(operator, good, name, good["x"])

    def test_too_many_tokens(self) -> None:
        description = hone.Linear(IN, OUT, max_tokens=8)
        with self.refuses(ValueError, "^x: it has 9 rows; allowed are up to 8, the max_tokens that"):
            prepare(description)(**self.arguments(description, 9))

    def test_pointers_are_checked_by_the_library(self) -> None:
        linear = prepare(hone.Linear(IN, OUT, max_tokens=8))
        with self.refuses(hone.BadArgumentError, "^tokens is 9; allowed: 0 to 8, as prepared"):
            linear.run_pointers(0, 9, 256, 256, 0, 0, 256, 256, 0, 0, 0, 0)
        with self.refuses(hone.BadArgumentError, "null pointer|is NULL"):
            linear.run_pointers(0, 1, 0, 256, 0, 0, 256, 256, 0, 0, 0, 0)
        ffn = prepare(hone.FusedFfn(HIDDEN, BETWEEN, max_tokens=8))
        with self.refuses(hone.BadArgumentError, "null pointer|is NULL"):
            ffn.run_pointers(0, 1, 256, 256, 256, 0, 256, 0, 0, 256, 0, 0, 0, 0)


class TorchTensors(LinearCase):
    def setUp(self) -> None:
        self.torch = fake_torch.install()
        self.addCleanup(fake_torch.uninstall)

    def tensors(self, description, *rows: int) -> dict:
        names = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
        dtype = getattr(self.torch, names[description.dtype])
        return {
            name: None if shape is None else fake_torch.cuda_tensor(self.torch, *shape, dtype=dtype)
            for name, shape in shapes_of(description, *rows).items()
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
                    self.assert_ran(operator, given)
                    needed = operator.workspace_bytes(6)
                    self.assertEqual(bool(operator._run.arguments[-1]["workspace"]), needed > 0)
                self.assertEqual((careful.calls, operator._run.rows), (1, [6, 6]))

    def test_out_is_made_in_both_ways(self) -> None:
        for description in (LINEARS[0], FFNS[0]):
            operator = prepare(description)
            given = self.tensors(description, 2, 3)
            shape = given.pop("out").shape
            for _ in range(2):
                with self.some_launches():
                    out = operator(**given)
                self.assertEqual((out.shape, out.dtype), (shape, self.torch.bfloat16))
                self.assert_ran(operator, given, out=out)

    def test_a_workspace_may_be_given_to_both_ways(self) -> None:
        ffn, given = prepare(FFNS[0]), self.tensors(FFNS[0], 4)
        careful = ffn._call_checked = fake_torch.counting(ffn._call_checked)
        needed = ffn.workspace_bytes(4)
        workspace = fake_torch.cuda_tensor(self.torch, needed, dtype=self.torch.uint8)
        for _ in range(2):
            ffn(**given, workspace=workspace)
            self.assert_ran(ffn, given, workspace=workspace)
        self.assertEqual(careful.calls, 1)
        less = fake_torch.cuda_tensor(self.torch, needed - 1, dtype=self.torch.uint8)
        with self.refuses(ValueError, f"^workspace: it has {needed - 1} bytes; needed are {needed}"):
            ffn(**given, workspace=less)

    def test_strided_rows_of_x_take_the_fast_way_in_two_dimensions(self) -> None:
        for description in (LINEARS[0], FFNS[0]):
            operator, given = prepare(description), self.tensors(description, 4)
            operator(**given)
            careful = operator._call_checked = fake_torch.counting(operator._call_checked)
            given["x"] = fake_torch.cuda_tensor(self.torch, 4, IN, strides=(3 * IN, 1))
            with self.some_launches():
                operator(**given)
            self.assert_ran(operator, given, x_stride=3 * IN)
            self.assertEqual(careful.calls, 0)

    def test_the_workspace_is_memory_of_the_stream(self) -> None:
        self.torch.cuda.streams = {0: 0x1230}
        ffn, given = prepare(FFNS[0]), self.tensors(FFNS[0], 4)
        for stream, wanted in ((None, 0x1230), (0x4560, 0x4560)) * 2:
            self.torch.made.clear()
            ffn(**given, stream=stream)
            (workspace,) = self.torch.made
            self.assert_ran(ffn, given, workspace=workspace)
            self.assertEqual((workspace.made_for, ffn._run.streams[-1]), (wanted, wanted))

    def test_mistakes_are_named_in_both_ways(self) -> None:
        linear, good = prepare(LINEARS[3]), self.tensors(LINEARS[3], 4)
        half = {name: self.tensors(LINEARS[1], 4).get(name) for name in ("x", "weight", "bias")}
        shorter = self.tensors(LINEARS[3], 3)
        for _ in range(2):
            for name, value in half.items():
                with self.refuses(TypeError, f"^{name}: its dtype is fp16; allowed is bf16"):
                    linear(**{**good, name: value})
            for name in ("residual", "out"):
                with self.refuses(ValueError, rf"^{name}: its shape is \[3, 96\]; allowed is \[4, 96\]"):
                    linear(**{**good, name: shorter[name]})
            with self.refuses(ValueError, r"^weight: its shape is \[3, 64\]; allowed is \[96, 64\]"):
                linear(**{**good, "weight": shorter["x"]})
            linear(**good)


class Descriptions(Case):
    def test_what_is_no_description(self) -> None:
        with self.assertRaisesRegex(ValueError, "^activation: 'tanh'; allowed are none, gelu_tanh, gelu_erf"):
            hone.Linear(IN, OUT, activation="tanh")
        for field, value in (("in_features", 1.5), ("out_features", "1"), ("max_tokens", True), ("norm", 1)):
            with self.assertRaisesRegex(TypeError, f"^{field}: "):
                hone.Linear(**{"in_features": IN, "out_features": OUT, field: value})
        with self.assertRaisesRegex(TypeError, "^gated: "):
            hone.FusedFfn(HIDDEN, BETWEEN, gated=1)

    def test_the_library_judges_the_rest(self) -> None:
        for description in (hone.Linear(0, OUT), hone.FusedFfn(HIDDEN, BETWEEN, bias=True)):
            with self.assertRaises(hone.BadArgumentError):
                hone.prepare(description)


class Knowledge(Case):
    def test_a_linear_layer_is_explained_and_reported(self) -> None:
        for description in LINEARS:
            problem = hone.explain(description, 8)["problem"]
            self.assertEqual(models.description_of(problem, 8192), description)
        (report,) = prepare(hone.Linear(IN, OUT, max_tokens=8)).report()["parts"]
        self.assertEqual(report["buckets"][-1]["sizes"]["tokens"][1], 8)

    def test_a_feed_forward_network_is_told_half_by_half(self) -> None:
        description = hone.FusedFfn(HIDDEN, BETWEEN, max_tokens=8)
        first, second = hone.explain(description, 8)["parts"]
        self.assertIn(f"gated=yes bias=no residual=no in={HIDDEN} out={BETWEEN}", first["problem"])
        self.assertIn(f"gated=no bias=no residual=no in={BETWEEN} out={HIDDEN}", second["problem"])
        self.assertIn(second["problem"], hone.explain_text(description, 8))
        ffn = prepare(description)
        for part, name in zip(ffn.report()["parts"], ("first", "second")):
            self.assertEqual((part["part"], part["buckets"][-1]["sizes"]["tokens"][1]), (name, 8))
            self.assertIn(part["problem"], ffn.report_text())


if __name__ == "__main__":
    unittest.main()

"""Calls of prepared norms: what reaches the driver, what comes back, and what every mistake says."""

from __future__ import annotations

import gc
import itertools
import re
import threading
import unittest

from fakes import arrays, torch as fake_torch
from fakes.case import HIDDEN, Case, prepare

import hone


class OtherArrays(Case):
    """Everything but torch tensors."""

    def test_dtypes_have_the_names_of_pytorch_too_in_any_case(self) -> None:
        for name, dtype in {"BF16": "bf16", "bfloat16": "bf16", "Half": "fp16", "float16": "fp16", "Float": "fp32"}.items():
            self.assertEqual(hone.RmsNorm(HIDDEN, dtype=name).dtype, dtype)
        with self.refuses(ValueError, "^dtype: 'BF17'; allowed are fp32, fp16, bf16"):
            hone.RmsNorm(HIDDEN, dtype="BF17")

    def test_every_dtype_launches_and_returns_out(self) -> None:
        for dtype in ("fp32", "fp16", "bf16"):
            norm = prepare(hone.RmsNorm(HIDDEN, dtype=dtype))
            x, out = (self.interface(4, HIDDEN, dtype=dtype) for _ in range(2))
            weight = self.interface(HIDDEN, dtype=dtype)
            with self.one_launch():
                self.assertIs(norm(x, weight, out=out), out)
            self.assert_ran_with(norm, x=x, weight=weight, out=out)

    def test_dlpack_capsules_live_for_the_call_and_go_after_it(self) -> None:
        norm = prepare(hone.RmsNorm(HIDDEN))
        stream = self.driver.make_stream()
        for versioned in (False, True):
            x, out = (self.exporter(2, 2, HIDDEN, versioned=versioned) for _ in range(2))
            weight = self.exporter(HIDDEN, versioned=versioned)
            with self.one_launch():
                self.assertIs(norm(x, weight, out=out, stream=stream), out)
            self.assert_ran_with(norm, x=x, weight=weight, out=out)
            self.assertEqual(norm._run.streams.pop(), stream)
            gc.collect()
            for array in (x, weight, out):
                self.assertEqual((array.exports, array.deletions, array.stream), (1, 1, stream))

    def test_every_combination_of_outputs(self) -> None:
        for kind in (hone.RmsNorm, hone.LayerNorm):
            for output in ("same", "int8", "fp8"):
                for residual in (False, True):
                    with self.subTest(kind=kind, output=output, residual=residual):
                        self.check_outputs(kind(HIDDEN, output=output, residual=residual))

    def check_outputs(self, description) -> None:
        norm = prepare(description)
        codes = {"same": "bf16", "int8": "int8", "fp8": "fp8_e4m3"}[description.output]
        given = {"out": self.exporter(3, HIDDEN, dtype=codes)}
        inputs = {"x": self.exporter(3, HIDDEN), "weight": self.exporter(HIDDEN)}
        expected = [given["out"]]
        if isinstance(description, hone.LayerNorm):
            inputs["bias"] = self.exporter(HIDDEN)
        if description.residual:
            inputs["residual"] = self.exporter(3, HIDDEN)
            given["sum"] = self.exporter(3, HIDDEN)
            expected.append(given["sum"])
        if description.output != "same":
            given["scale"] = self.exporter(3, dtype="fp32")
            expected.append(given["scale"])
        with self.one_launch():
            returned = norm(**inputs, **given)
        self.assertEqual(returned, tuple(expected) if len(expected) > 1 else expected[0])
        self.assert_ran_with(norm, **inputs, **given)

    def test_fp8_codes_may_be_bytes_where_a_library_has_no_fp8(self) -> None:
        norm = prepare(hone.RmsNorm(HIDDEN, output="fp8"))
        out = arrays.InterfaceArray(self.driver.allocate(4096), (2, HIDDEN), "|u1")
        scale = self.interface(2, dtype="fp32")
        with self.one_launch():
            norm(self.interface(2, HIDDEN), self.interface(HIDDEN), out=out, scale=scale)

    def test_strides_are_those_of_the_arrays(self) -> None:
        norm = prepare(hone.RmsNorm(HIDDEN))
        x = self.interface(2, 3, HIDDEN, strides_bytes=(3 * 192 * 2, 192 * 2, 2))
        out = self.interface(2, 3, HIDDEN, strides_bytes=(3 * 128 * 2, 128 * 2, 2))
        with self.one_launch():
            norm(x, self.interface(HIDDEN), out=out)
        self.assert_ran_with(norm, x_stride=192, out_stride=128)
        self.assertEqual(norm._run.rows, [6])

    def test_outputs_cannot_be_made_without_torch(self) -> None:
        norm = prepare(hone.RmsNorm(HIDDEN, output="int8", residual=True))
        x, residual, weight = self.interface(4, HIDDEN), self.interface(4, HIDDEN), self.interface(HIDDEN)
        out = arrays.InterfaceArray(self.driver.allocate(4096), (4, HIDDEN), "|i1")
        sum = self.interface(4, HIDDEN)
        with self.refuses(ValueError, r"^out: it is missing, .* shape \[4, 64\] and dtype int8 on CUDA"):
            norm(x, weight, residual, sum=sum)
        with self.refuses(ValueError, r"^sum: it is missing, .* shape \[4, 64\] and dtype bf16"):
            norm(x, weight, residual, out=out)
        with self.refuses(ValueError, r"^scale: it is missing, .* shape \[4\] and dtype fp32"):
            norm(x, weight, residual, out=out, sum=sum)

    def test_no_rows_launch_nothing(self) -> None:
        norm = prepare(hone.RmsNorm(HIDDEN))
        before = self.driver.launch_count()
        empty = arrays.InterfaceArray(0, (0, HIDDEN), "<V2")
        self.assertIs(norm(empty, self.interface(HIDDEN), out=empty), empty)
        self.assertEqual(self.driver.launch_count(), before)


class Mistakes(Case):
    """Each names its argument, what was found, and what is allowed."""

    def setUp(self) -> None:
        self.norm = hone.prepare(
            hone.LayerNorm(HIDDEN, max_rows=8, dtype="fp16", output="int8", residual=True)
        )
        self.good = {
            "x": self.exporter(4, HIDDEN, dtype="fp16"),
            "weight": self.exporter(HIDDEN, dtype="fp16"),
            "residual": self.exporter(4, HIDDEN, dtype="fp16"),
            "bias": self.exporter(HIDDEN, dtype="fp16"),
            "out": self.exporter(4, HIDDEN, dtype="int8"),
            "sum": self.exporter(4, HIDDEN, dtype="fp16"),
            "scale": self.exporter(4, dtype="fp32"),
        }

    MATRICES = ("x", "residual", "out", "sum")
    OUTPUTS = ("out", "sum", "scale")

    def changed(self, name: str, **changes) -> dict:
        """The good arguments, one of them with another property."""
        good = self.good[name]
        properties = {"pointer": good.pointer, "shape": good.shape, "dtype": good.dtype, **changes}
        return {**self.good, name: arrays.Exporter(**properties)}

    def test_the_good_ones_launch(self) -> None:
        with self.one_launch():
            self.norm(**self.good)

    def test_a_wrong_dtype(self) -> None:
        allowed = {"out": "int8", "scale": "fp32"}
        for name in self.good:
            wanted = allowed.get(name, "fp16")
            with self.refuses(TypeError, f"^{name}: its dtype is bf16; allowed is {wanted}$"):
                self.norm(**self.changed(name, dtype="bf16"))

    def test_what_is_no_array(self) -> None:
        for name in self.good:
            with self.refuses(TypeError, f"^{name}: a list is no array in GPU memory; allowed are"):
                self.norm(**{**self.good, name: [1.0]})

    def test_cpu_memory(self) -> None:
        for name in self.good:
            with self.refuses(ValueError, rf"^{name}: it is CPU memory \(DLPack device type 1\); allowed is"):
                self.norm(**self.changed(name, device=(1, 0)))

    def test_another_device(self) -> None:
        for name in self.good:
            with self.refuses(ValueError, f"^{name}: it is on CUDA device 1; .* prepared for device 0"):
                self.norm(**self.changed(name, device=(2, 1)))

    def test_a_wrong_shape(self) -> None:
        for name in self.good:
            shape = (*self.good[name].shape[:-1], 32)
            with self.refuses(ValueError, rf"^{name}: its shape is \[.*32\]; allowed is \[.*\]$"):
                self.norm(**self.changed(name, shape=shape))
        for name in ("residual", "out", "sum"):
            with self.refuses(ValueError, rf"^{name}: its shape is \[2, 2, 64\]; allowed is \[4, 64\]$"):
                self.norm(**self.changed(name, shape=(2, 2, HIDDEN)))

    def test_strides(self) -> None:
        for name in self.MATRICES:
            with self.refuses(ValueError, f"^{name}: the stride of its last dimension is 2; allowed is 1"):
                self.norm(**self.changed(name, strides=(2 * HIDDEN, 2)))
            with self.refuses(ValueError, f"^{name}: its rows are 8 elements apart; allowed .* 64 or more"):
                self.norm(**self.changed(name, strides=(8, 1)))
        for name in ("weight", "bias", "scale"):
            with self.refuses(ValueError, rf"^{name}: its strides are \[2\] for shape .*; allowed is a cont"):
                self.norm(**self.changed(name, strides=(2,)))

    def test_misaligned_pointers(self) -> None:
        for name in self.good:
            if name == "scale":
                continue
            pointer = self.good[name].pointer + (1 if name == "out" else 2)
            with self.refuses(ValueError, f"^{name}: its address {pointer:#x} is no multiple of 16 bytes"):
                self.norm(**self.changed(name, pointer=pointer))

    def test_misaligned_strides(self) -> None:
        for name in self.MATRICES:
            with self.refuses(ValueError, rf"^{name}: its rows are 65 elements \((130|65) bytes\) apart, "):
                self.norm(**self.changed(name, strides=(HIDDEN + 1, 1)))

    def test_outputs_that_are_read_only(self) -> None:
        for name in self.OUTPUTS:
            with self.refuses(ValueError, f"^{name}: it is read-only; allowed is memory that may be written"):
                self.norm(**self.changed(name, read_only=True))
        with self.one_launch():
            self.norm(**self.changed("x", read_only=True))

    def test_too_many_rows(self) -> None:
        with self.refuses(ValueError, "^x: it has 9 rows; allowed are up to 8, the max_rows"):
            self.norm(**self.changed("x", shape=(3, 3, HIDDEN)))

    def test_a_missing_argument(self) -> None:
        for name, option in (("residual", "residual=True"), ("bias", "bias=True")):
            self.refuses_missing(self.norm, self.good, name, option)

    def test_an_argument_too_many(self) -> None:
        plain = hone.prepare(hone.RmsNorm(HIDDEN, dtype="fp16"))
        good = {"x": self.good["x"], "weight": self.good["weight"], "out": self.good["sum"]}
        with self.one_launch():
            plain(**good)
        for name in ("residual", "bias", "sum", "scale"):
            self.refuses_given(plain, good, name, self.good[name])

    def test_a_stream_that_is_none(self) -> None:
        with self.refuses(TypeError, "^stream: a str is no stream"):
            self.norm(**self.good, stream="main")
        for stream in (-1, 1 << 64):  # C took the lower 64 bits
            with self.refuses(ValueError, f"^stream: {stream}; allowed are ints of 64 bits"):
                self.norm(**self.good, stream=stream)
        for stream in (1.5, "1"):  # was stream 1
            x = arrays.InterfaceArray(1 << 24, (2, HIDDEN), stream=stream)
            with self.refuses(TypeError, "^the stream of __cuda_array_interface__: .* allowed is an int"):
                self.norm(**{**self.good, "x": x})

    def test_pointers_are_checked_by_the_library(self) -> None:
        with self.refuses(hone.BadArgumentError, "^rows is 9; allowed: 0 to 8, as prepared"):
            self.norm.run_pointers(0, 9, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 1e-5)
        with self.refuses(hone.BadArgumentError, "x is a null pointer"):
            self.norm.run_pointers(0, 1, 0, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 1e-5)


class TorchTensors(Case):
    def setUp(self) -> None:
        self.torch = fake_torch.install()
        self.addCleanup(fake_torch.uninstall)

    def tensor(self, *shape: int, **more) -> fake_torch.Tensor:
        return fake_torch.cuda_tensor(self.torch, *shape, **more)

    def weight(self) -> fake_torch.Tensor:
        return fake_torch.Parameter((HIDDEN,), self.torch.bfloat16, fake_torch.device("cuda", 0))

    def test_both_ways_launch_the_same(self) -> None:
        """The first call goes the careful way, the second the fast one."""
        for description in (
            hone.RmsNorm(HIDDEN),
            hone.RmsNorm(HIDDEN, residual=True),
            hone.RmsNorm(HIDDEN, output="fp8", residual=True),
            hone.LayerNorm(HIDDEN, output="int8"),
            hone.LayerNorm(HIDDEN, bias=False, residual=True),
        ):
            with self.subTest(description=description):
                norm = prepare(description)
                careful = norm._call_checked = fake_torch.counting(norm._call_checked)
                arguments = self.arguments_of(description)
                for _ in range(2):
                    with self.one_launch():
                        norm(**arguments)
                tensors = {name: value for name, value in arguments.items() if name != "epsilon"}
                self.assert_ran_with(norm, **tensors, x_stride=HIDDEN, out_stride=HIDDEN)
                self.assertAlmostEqual(norm._run.arguments[-1]["epsilon"], 1e-6)
                strides = ("residual_stride", "sum_stride")  # mean nothing without a residual
                if not description.residual:
                    for ran, name in itertools.product(norm._run.arguments, strides):
                        del ran[name]
                first, second = norm._run.arguments
                self.assertEqual(first, second)
                self.assertEqual(norm._run.rows, [6, 6])
                self.assertEqual(careful.calls, 1)

    def arguments_of(self, description) -> dict:
        codes = {"same": "bfloat16", "int8": "int8", "fp8": "float8_e4m3fn"}[description.output]
        arguments = {
            "x": self.tensor(2, 3, HIDDEN),
            "weight": self.weight(),
            "out": self.tensor(2, 3, HIDDEN, dtype=getattr(self.torch, codes)),
            "epsilon": 1e-6,
        }
        if getattr(description, "bias", False):
            arguments["bias"] = self.weight()
        if description.residual:
            arguments["residual"] = self.tensor(2, 3, HIDDEN)
            arguments["sum"] = self.tensor(2, 3, HIDDEN)
        if description.output != "same":
            arguments["scale"] = self.tensor(2, 3, dtype=self.torch.float32)
        return arguments

    def test_outputs_are_made_in_both_ways(self) -> None:
        norm = prepare(hone.RmsNorm(HIDDEN, output="fp8", residual=True))
        for _ in range(2):
            x = self.tensor(2, 3, HIDDEN)
            with self.one_launch():
                out, sum, scale = norm(x, self.weight(), self.tensor(2, 3, HIDDEN))
            self.assertEqual((out.shape, out.dtype), ((2, 3, HIDDEN), self.torch.float8_e4m3fn))
            self.assertEqual((sum.shape, sum.dtype), ((2, 3, HIDDEN), self.torch.bfloat16))
            self.assertEqual((scale.shape, scale.dtype), ((2, 3), self.torch.float32))
            self.assert_ran_with(norm, x=x, out=out, sum=sum, scale=scale)

    def test_codes_are_bytes_where_torch_has_no_fp8(self) -> None:
        torch = fake_torch.install(fp8=False)
        norm = prepare(hone.RmsNorm(HIDDEN, output="fp8"))
        for _ in range(2):
            out, scale = norm(fake_torch.cuda_tensor(torch, 4, HIDDEN), fake_torch.cuda_tensor(torch, HIDDEN))
            self.assertEqual((out.dtype, scale.dtype), (torch.uint8, torch.float32))

    def test_strided_rows_take_the_fast_way_in_two_dimensions(self) -> None:
        norm = prepare(hone.RmsNorm(HIDDEN))
        norm(self.tensor(4, HIDDEN), self.weight())
        norm._call_checked = fake_torch.counting(norm._call_checked)
        x = self.tensor(4, HIDDEN, strides=(3 * HIDDEN, 1))
        with self.one_launch():
            norm(x, self.weight())
        self.assert_ran_with(norm, x=x, x_stride=3 * HIDDEN, out_stride=HIDDEN)
        self.assertEqual(norm._call_checked.calls, 0)
        with self.one_launch():
            norm(self.tensor(2, 2, HIDDEN, strides=(6 * HIDDEN, 3 * HIDDEN, 1)), self.weight())
        self.assertEqual(norm._call_checked.calls, 1)

    def test_mistakes_are_named_in_both_ways(self) -> None:
        norm = prepare(hone.RmsNorm(HIDDEN, max_rows=8))
        torch, good = self.torch, self.tensor(4, HIDDEN)
        half = self.tensor(4, HIDDEN, dtype=torch.float16)
        whole = self.tensor(4, HIDDEN, dtype=fake_torch.dtype("int64", 8))
        on_host = fake_torch.Tensor((4, HIDDEN), torch.bfloat16, fake_torch.device("cpu"))
        mistakes = (
            (TypeError, "^x: its dtype is fp16; allowed is bf16", dict(x=half)),
            (TypeError, "^x: its dtype is int64; allowed", dict(x=whole)),
            (ValueError, "^x: it is a torch tensor on device 'cpu'", dict(x=on_host)),
            (TypeError, "^epsilon: 'small'; allowed is a number", dict(epsilon="small")),
            (ValueError, "^epsilon: more than a float holds; allowed are numbers that fit", dict(epsilon=10**400)),
            (ValueError, r"^x: its shape is \[4, 32\]", dict(x=self.tensor(4, 32))),
            (ValueError, r"^x: its shape is \[\]", dict(x=self.tensor())),
            (ValueError, "^x: it has 9 rows; allowed are up to 8", dict(x=self.tensor(9, HIDDEN))),
            (ValueError, "^x: its rows are 0 elements apart", dict(x=self.tensor(4, HIDDEN, strides=(0, 1)))),
            (ValueError, "^x: its address .* no multiple", dict(x=self.tensor(4, HIDDEN, pointer=4098))),
            (ValueError, r"^weight: its shape is \[32\]; allowed is \[64\]", dict(weight=self.tensor(32))),
            (TypeError, "^weight: a NoneType is no array", dict(weight=None)),
            (TypeError, "^out: its dtype is fp32", dict(out=self.tensor(4, HIDDEN, dtype=torch.float32))),
            (ValueError, r"^out: its shape is \[3, 64\]; allowed is ", dict(out=self.tensor(3, HIDDEN))),
            (ValueError, "^residual: it is given, but", dict(residual=good)),
            (ValueError, "^scale: it is given, but", dict(scale=good)),
            (ValueError, "^weight: it is on CUDA device 1", dict(weight=self.tensor(HIDDEN, index=1))),
        )
        for first in (True, False):
            for kind, pattern, changes in mistakes:
                with self.subTest(first=first, pattern=pattern), self.refuses(kind, pattern):
                    norm(**{"x": good, "weight": self.weight(), **changes})
            norm(good, self.weight())

    def test_torch_outputs_may_be_strided_arrays_of_others(self) -> None:
        norm = prepare(hone.RmsNorm(HIDDEN))
        out = self.exporter(4, HIDDEN, strides=(2 * HIDDEN, 1))
        for _ in range(2):
            with self.one_launch():
                self.assertIs(norm(self.tensor(4, HIDDEN), self.weight(), out=out), out)

    def test_launches_go_to_the_current_stream(self) -> None:
        norm = prepare(hone.RmsNorm(HIDDEN))
        self.torch.cuda.streams = {0: 0x1230}
        x, weight = self.tensor(4, HIDDEN), self.weight()
        stream = type("Stream", (), {"cuda_stream": 0x4560})()
        for _ in range(2):
            norm(x, weight)
            norm(x, weight, stream=0x99)
            norm(x, weight, stream=stream)
        self.assertEqual(norm._run.streams, [0x1230, 0x99, 0x4560] * 2)

    def test_with_several_gpus_the_operators_one_is_current_at_the_launch(self) -> None:
        torch = fake_torch.install(devices=2)
        norm = prepare(hone.RmsNorm(HIDDEN), device=0)
        seen = []
        run = norm._run
        norm._run = lambda *arguments: seen.append(torch.cuda.current) or run(*arguments)
        x = fake_torch.cuda_tensor(torch, 4, HIDDEN)
        weight = fake_torch.cuda_tensor(torch, HIDDEN)
        for _ in range(2):
            torch.cuda.current = 1
            norm(x, weight)
            self.assertEqual(torch.cuda.current, 1)
            torch.cuda.current = 0
            norm(x, weight)
        self.assertEqual(seen, [0] * 4)

    def test_the_device_is_torchs_current_one(self) -> None:
        torch = fake_torch.install(devices=2)
        torch.cuda.current = 1
        with self.assertRaises(hone.NoGpuError):  # the fake driver has one
            hone.prepare(hone.RmsNorm(HIDDEN))
        self.assertEqual(hone.prepare(hone.RmsNorm(HIDDEN), device=fake_torch.device("cuda", 0)).device, 0)


class Descriptions(Case):
    def test_names_of_dtypes(self) -> None:
        torch = fake_torch.install()
        self.addCleanup(fake_torch.uninstall)
        for dtype in ("bf16", "bfloat16", torch.bfloat16):
            self.assertEqual(hone.RmsNorm(HIDDEN, dtype=dtype), hone.RmsNorm(HIDDEN))
        with self.assertRaisesRegex(ValueError, "^dtype: 'fp64'; allowed are fp32, fp16, bf16"):
            hone.RmsNorm(HIDDEN, dtype="fp64")
        with self.assertRaisesRegex(ValueError, "^output: 'int4'; allowed are same, int8, fp8"):
            hone.RmsNorm(HIDDEN, output="int4")
        wrong = (("hidden", "64"), ("hidden", 64.0), ("max_rows", True), ("residual", 1), ("bias", None))
        for field, value in wrong:
            with self.assertRaisesRegex(TypeError, f"^{field}: "):
                hone.LayerNorm(**{"hidden": HIDDEN, field: value})
        for field, value in (("output", ["int8"]), ("output", None), ("dtype", None), ("dtype", ["bf16"])):
            with self.assertRaisesRegex(ValueError, f"^{field}: {re.escape(repr(value))}; allowed are "):
                hone.RmsNorm(HIDDEN, **{field: value})

    def test_sizes_may_be_integers_of_numpy(self) -> None:
        description = hone.RmsNorm(arrays.Integer(HIDDEN), max_rows=arrays.Integer(4))
        self.assertEqual(description, hone.RmsNorm(HIDDEN, max_rows=4))
        self.assertIs(type(description.hidden), int)

    def test_sizes_are_judged_by_the_library(self) -> None:
        with self.assertRaisesRegex(hone.BadArgumentError, "'hidden' has the value '0'; allowed") as caught:
            hone.prepare(hone.RmsNorm(0))
        self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(caught.exception.status, 20)
        self.assertTrue(caught.exception.status_text)

    def test_other_things_are_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "^description: a int describes no operator"):
            hone.prepare(4096)
        with self.assertRaisesRegex(TypeError, "^dtype: it goes with a model's name"):
            hone.prepare(hone.RmsNorm(HIDDEN), dtype="bf16")


class Reports(Case):
    def test_reports_and_explanations_name_the_kernels(self) -> None:
        description = hone.RmsNorm(4096, max_rows=64)
        norm = prepare(description)
        (report,) = norm.report()["parts"]
        self.assertEqual(report["buckets"][-1]["sizes"]["rows"][1], 64)
        self.assertIn(report["buckets"][0]["candidate"], norm.report_text())
        for rows, error in ((1 << 64, ValueError), (None, TypeError), ("16", TypeError), (1.5, TypeError)):
            with self.subTest(rows=rows), self.assertRaisesRegex(error, "^rows: "):
                hone.explain(description, rows)
            with self.subTest(rows=rows), self.assertRaisesRegex(error, "^rows: "):
                norm.workspace_bytes(rows)
        explained = hone.explain(description, 16)
        self.assertIn("rows=16", explained["problem"])
        self.assertIn(explained["problem"], hone.explain_text(description, 16))
        self.assertIn("RmsNorm(hidden=4096", repr(norm))

    def test_long_texts_come_whole(self) -> None:
        report = hone.prepare(hone.RmsNorm(4096, max_rows=262144, output="int8", residual=True)).report_text()
        self.assertTrue(report.endswith("\n"))
        self.assertIn("262144", report)


class Threads(Case):
    def test_threads_share_an_operator(self) -> None:
        """Each thread's launches carry its own pointers: nothing of a call is shared."""
        norm = prepare(hone.RmsNorm(HIDDEN))
        def work(number: int) -> None:
            base = (number + 1) << 32
            for _ in range(300):
                norm.run_pointers(number, 4, base, 0, base + 4096, 0, base + 8192, 0, 0, 0, 0, 0, 0, 1e-5)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        before = self.driver.launch_count()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.driver.launch_count(), before + 600)
        expected = {(n, (n + 1) << 32, (n + 1 << 32) + 4096, (n + 1 << 32) + 8192) for n in range(2)}
        seen = {
            (stream, ran["x"], ran["weight"], ran["out"])
            for stream, ran in zip(norm._run.streams, norm._run.arguments)
        }
        self.assertLessEqual({pointers[1:] for pointers in seen}, {pointers[1:] for pointers in expected})

    def test_threads_prepare_at_once(self) -> None:
        made, errors = [], []

        def work(hidden: int) -> None:
            try:
                made.append(hone.prepare(hone.RmsNorm(hidden)))
            except Exception as error:  # shown below: a thread's own is only printed
                errors.append(error)

        threads = [threading.Thread(target=work, args=(1024 * (1 + number % 2),)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(made), errors), (8, []))


if __name__ == "__main__":
    unittest.main()

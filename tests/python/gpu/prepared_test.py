"""Prepared operators beside float64: every operator and dtype, odd and even sizes, every way to hand arrays
over."""

from __future__ import annotations

import itertools
import threading
import unittest
from typing import Any

from support import DEVICE, DTYPES, EPSILON, Case, layer_norm, prepared, randn, rms_norm
from support import shaped_inputs, summed

import torch

import hone

HIDDEN = (1, 7, 64, 100, 4096, 5120, 8192)
FEWER_HIDDEN = (7, 4096)
ROWS = (0, 1, 3, 1000)


class Forward(Case):
    def test_rms_norm_is_right_for_every_dtype_and_size(self):
        for (name, dtype), hidden in itertools.product(DTYPES.items(), HIDDEN):
            norm = prepared(hone.RmsNorm(hidden, max_rows=1000, dtype=name))
            for rows in ROWS:
                with self.subTest(dtype=name, hidden=hidden, rows=rows):
                    x, _, weight, _ = shaped_inputs(rows, hidden, dtype)
                    self.assert_near(norm(x, weight, epsilon=EPSILON), rms_norm(x, weight))

    def test_rms_norm_with_residual_is_right_for_every_dtype_and_size(self):
        for (name, dtype), hidden in itertools.product(DTYPES.items(), HIDDEN):
            norm = prepared(hone.RmsNorm(hidden, max_rows=1000, dtype=name, residual=True))
            for rows in ROWS:
                with self.subTest(dtype=name, hidden=hidden, rows=rows):
                    x, residual, weight, _ = shaped_inputs(rows, hidden, dtype)
                    y, total = norm(x, weight, residual, epsilon=EPSILON)
                    self.assert_near(y, rms_norm(x, weight, residual))
                    self.assert_same(total, summed(x, residual).to(dtype))

    def test_layer_norm_is_right_with_and_without_bias_and_residual(self):
        kinds = itertools.product(DTYPES.items(), FEWER_HIDDEN, (False, True), (False, True))
        for (name, dtype), hidden, has_bias, has_residual in kinds:
            norm = prepared(
                hone.LayerNorm(hidden, max_rows=1000, dtype=name, bias=has_bias, residual=has_residual)
            )
            for rows in ROWS:
                with self.subTest(dtype=name, hidden=hidden, rows=rows, bias=has_bias, residual=has_residual):
                    x, residual, weight, bias = shaped_inputs(rows, hidden, dtype)
                    bias, residual = bias if has_bias else None, residual if has_residual else None
                    out = norm(x, weight, residual, bias, epsilon=EPSILON)
                    y = out[0] if has_residual else out
                    self.assert_near(y, layer_norm(x, weight, bias, residual))

    def test_quantized_rows_come_with_their_scale(self):
        kinds = itertools.product(DTYPES.items(), FEWER_HIDDEN, ("int8", "fp8"), (False, True))
        for (name, dtype), hidden, output, has_residual in kinds:
            norm = prepared(
                hone.RmsNorm(hidden, max_rows=1000, dtype=name, output=output, residual=has_residual)
            )
            for rows in ROWS:
                with self.subTest(dtype=name, hidden=hidden, rows=rows, output=output, residual=has_residual):
                    x, residual, weight, _ = shaped_inputs(rows, hidden, dtype)
                    residual = residual if has_residual else None
                    codes, *_, scale = norm(x, weight, residual, epsilon=EPSILON)
                    self.assert_codes(codes, scale, rms_norm(x, weight, residual), dtype)

    def test_a_quantized_layer_norm_is_right(self):
        norm = prepared(hone.LayerNorm(100, max_rows=16, dtype="bf16", output="int8"))
        x, _, weight, bias = shaped_inputs(3, 100, torch.bfloat16)
        codes, scale = norm(x, weight, bias=bias, epsilon=EPSILON)
        self.assert_codes(codes, scale, layer_norm(x, weight, bias), torch.bfloat16)

    def test_epsilon_counts(self):
        norm = prepared(hone.RmsNorm(64, max_rows=16, dtype="fp32"))
        x, weight = randn(3, 64, dtype=torch.float32) * 1e-3, randn(64, dtype=torch.float32, seed=1)
        for epsilon in (1e-6, 1e-2):
            self.assert_near(norm(x, weight, epsilon=epsilon), rms_norm(x, weight, epsilon=epsilon))


class Layouts(Case):
    @classmethod
    def setUpClass(cls) -> None:
        cls.norm = prepared(hone.RmsNorm(64, max_rows=64, dtype="fp16"))
        cls.weight = randn(64, dtype=torch.float16, seed=9)

    def test_rows_may_lie_apart(self):
        wide = randn(8, 3 * 64, dtype=torch.float16)
        for x in (wide[:, 64:128], wide[::2, :64], wide.view(2, 4, 192)[:, :, 128:]):
            with self.subTest(shape=x.shape, strides=x.stride()):
                self.assert_near(self.norm(x, self.weight, epsilon=EPSILON), rms_norm(x, self.weight))

    def test_elements_of_a_row_may_not(self):
        x = randn(64, 8, dtype=torch.float16).t()
        with self.assertRaisesRegex(ValueError, "^x: "):
            self.norm(x, self.weight)

    def test_leading_dimensions_are_rows(self):
        for shape in ((64,), (1, 64), (2, 3, 64), (2, 1, 5, 64)):
            x = randn(*shape, dtype=torch.float16)
            y = self.norm(x, self.weight, epsilon=EPSILON)
            self.assertEqual(y.shape, x.shape)
            self.assert_near(y, rms_norm(x, self.weight))

    def test_out_is_written_and_may_be_x_itself(self):
        x = randn(4, 64, dtype=torch.float16)
        wanted = rms_norm(x, self.weight)
        out = torch.empty_like(x)
        self.assertIs(self.norm(x, self.weight, out=out, epsilon=EPSILON), out)
        self.assert_near(out, wanted)
        self.norm(x, self.weight, out=x, epsilon=EPSILON)
        self.assert_near(x, wanted)

    def test_sum_may_be_the_residual_itself(self):
        norm = prepared(hone.RmsNorm(64, max_rows=64, dtype="bf16", residual=True))
        x, residual, weight, _ = shaped_inputs(4, 64, torch.bfloat16)
        wanted = rms_norm(x, weight, residual), summed(x, residual).to(torch.bfloat16)
        y, total = norm(x, weight, residual, sum=residual, epsilon=EPSILON)
        self.assertIs(total, residual)
        self.assert_near(y, wanted[0])
        self.assert_same(total, wanted[1])


class WithInterface:
    """An array of a library that has __cuda_array_interface__ and nothing else."""

    def __init__(self, tensor: Any) -> None:
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__
        self._tensor = tensor


class WithDlpack:
    """An array of a library that has __dlpack__ and nothing else."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __dlpack__(self, **options: Any) -> Any:
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()


class OtherLibraries(Case):
    def check(self, wrap: Any, name: str) -> None:
        dtype = DTYPES[name]
        norm = prepared(hone.RmsNorm(128, max_rows=16, dtype=name))
        x, _, weight, _ = shaped_inputs(5, 128, dtype)
        out = torch.empty_like(x)
        norm(wrap(x), wrap(weight), out=wrap(out), epsilon=EPSILON)
        torch.cuda.synchronize()
        self.assert_near(out, rms_norm(x, weight))

    def test_arrays_with_a_cuda_array_interface(self):
        for name in ("fp32", "fp16"):  # which has no name for bf16
            self.check(WithInterface, name)

    def test_arrays_with_dlpack(self):
        for name in DTYPES:
            self.check(WithDlpack, name)

    def test_arrays_of_cupy(self):
        try:
            import cupy
        except ModuleNotFoundError:
            self.skipTest("CuPy is not installed")
        self.check(cupy.from_dlpack, "fp32")

    def test_an_output_is_needed_for_arrays_that_only_their_library_can_make(self):
        norm = prepared(hone.RmsNorm(128, max_rows=16, dtype="fp32"))
        x, _, weight, _ = shaped_inputs(5, 128, torch.float32)
        with self.assertRaisesRegex(ValueError, "^out: "):
            norm(WithDlpack(x), WithDlpack(weight))


class Mistakes(Case):
    @classmethod
    def setUpClass(cls) -> None:
        cls.norm = prepared(hone.RmsNorm(64, max_rows=64, dtype="bf16"))
        cls.x, cls.residual, cls.weight, cls.bias = shaped_inputs(4, 64, torch.bfloat16)

    def refuses(self, kind: Any, name: str, *arrays: Any, **named: Any) -> None:
        with self.assertRaisesRegex(kind, f"^{name}: "):
            self.norm(*arrays, **named)

    def test_every_mistake_names_its_argument(self):
        self.refuses(TypeError, "x", self.x.float(), self.weight)
        self.refuses(TypeError, "weight", self.x, self.weight.half())
        self.refuses(ValueError, "x", self.x.cpu(), self.weight)
        self.refuses(ValueError, "weight", self.x, self.weight.cpu())
        self.refuses(ValueError, "x", self.x[:, :32], self.weight)
        self.refuses(ValueError, "weight", self.x, self.weight[:32])
        self.refuses(ValueError, "out", self.x, self.weight, out=self.x[:2])
        self.refuses(TypeError, "out", self.x, self.weight, out=self.x.float())
        self.refuses(ValueError, "residual", self.x, self.weight, self.residual)
        self.refuses(TypeError, "x", [1.0], self.weight)
        self.refuses(TypeError, "stream", self.x, self.weight, stream="mine")

    def test_more_rows_than_prepared_are_refused(self):
        self.refuses(ValueError, "x", randn(65, 64), self.weight)

    def test_another_gpu_is_refused(self):
        if torch.cuda.device_count() < 2:
            self.skipTest("there is one GPU")
        other = torch.device("cuda", 1)
        self.refuses(ValueError, "x", self.x.to(other), self.weight.to(other))


class Concurrency(Case):
    @classmethod
    def setUpClass(cls) -> None:
        cls.norm = prepared(hone.RmsNorm(4096, max_rows=64, dtype="bf16"))
        cls.weight = randn(4096, seed=9)

    def test_calls_follow_the_current_stream(self):
        results = []
        for seed in (1, 2):
            x, later = torch.zeros(16, 4096, dtype=torch.bfloat16, device=DEVICE), randn(16, 4096, seed=seed)
            torch.cuda.synchronize()
            with torch.cuda.stream(torch.cuda.Stream()):
                torch.cuda._sleep(50_000_000)  # a launch on another stream would come before the copy
                x.copy_(later)
                results.append((self.norm(x, self.weight, epsilon=EPSILON), later))
        torch.cuda.synchronize()
        for y, x in results:
            self.assert_near(y, rms_norm(x, self.weight))

    def test_a_stream_may_be_given(self):
        stream = torch.cuda.Stream()
        x, out = randn(16, 4096), torch.empty(16, 4096, dtype=torch.bfloat16, device=DEVICE)
        torch.cuda.synchronize()
        for given in (stream, stream.cuda_stream):
            out.zero_()
            torch.cuda.synchronize()
            self.norm(x, self.weight, out=out, stream=given, epsilon=EPSILON)
            stream.synchronize()
            self.assert_near(out, rms_norm(x, self.weight))

    def test_two_threads_share_an_operator(self):
        failures = []

        def work(seed: int) -> None:
            try:
                x = randn(16, 4096, seed=seed)
                wanted = self.norm(x, self.weight)
                with torch.cuda.stream(torch.cuda.Stream()):
                    torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
                    for _ in range(300):
                        self.assert_same(self.norm(x, self.weight), wanted)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_a_graph_of_100_calls_gives_the_same_at_every_replay(self):
        x = randn(8, 4096)
        outs = [torch.empty_like(x) for _ in range(100)]

        def chain() -> None:
            source = x
            for out in outs:
                source = self.norm(source, self.weight, out=out)

        chain()
        wanted = [out.clone() for out in outs]
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            chain()
        for replay in range(1000):
            if replay % 100 == 0:
                for out in outs:
                    out.zero_()
            graph.replay()
            if replay % 100 == 99:
                for out, expected in zip(outs, wanted):
                    self.assert_same(out, expected)


if __name__ == "__main__":
    unittest.main()

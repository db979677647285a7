"""Every program of examples/python runs to its end on the fake driver; what PyTorch computes is left out."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
import unittest
from typing import Any, Tuple
from unittest import mock

from fakes import TREE, torch as fake_torch
from fakes.driver import FakeDriver

import hone
from hone import descriptions, program

FOLDER = TREE / "examples" / "python"
SHARED = "checking"
OF_MODELS = {"accelerated_llama"}  # need transformers: accelerate_test.py runs them


class Examples(unittest.TestCase):
    def setUp(self) -> None:
        self.torch = fake_torch.install()
        self.addCleanup(fake_torch.uninstall)
        self.checked, self.tuned = [], []
        self.run_json = program.run_json
        for name in ("randint", "rand", "tensor", "zeros", "full"):
            setattr(self.torch, name, getattr(self, f"made_by_{name}"))
        path = mock.patch.object(sys, "path", [str(FOLDER), *sys.path])
        path.start()
        self.addCleanup(path.stop)
        sys.modules.pop(SHARED, None)
        self.addCleanup(sys.modules.pop, SHARED, None)

    def made(self, shape: Tuple[int, ...], dtype: fake_torch.dtype, device: str = "cuda") -> fake_torch.Tensor:
        return fake_torch.cuda_tensor(self.torch, *shape, dtype=dtype)

    def made_by_randint(self, low: int, high: int, shape: Tuple[int, ...], **options: Any) -> Any:
        return self.made(shape, **options)

    def made_by_rand(self, *shape: int, **options: Any) -> Any:
        return self.made(shape, **options)

    made_by_zeros = made_by_rand

    def made_by_tensor(self, values: list, **options: Any) -> Any:
        return self.made((len(values),), **options)

    def made_by_full(self, shape: Tuple[int, ...], value: float, **options: Any) -> Any:
        return self.made(shape, **options)

    def made_at_random(self, *shape: int, dtype: Any = None, **numbers: float) -> Any:
        return self.made(shape, dtype or self.torch.bfloat16)

    def run_example(self, name: str) -> str:
        """What it prints. Nothing is frozen: other tests of this process may want to compile."""
        import checking

        def check(found: fake_torch.Tensor, reference: Any, allowed: float) -> None:
            self.checked.append(tuple(found.shape))

        shared = mock.patch.multiple(checking, random=self.made_at_random, check=check)
        with contextlib.redirect_stdout(io.StringIO()) as printed, mock.patch.object(hone, "freeze"), shared:
            runpy.run_path(str(FOLDER / name), run_name="__main__")
        return printed.getvalue()

    def give_hone(self, name: str, value: Any) -> None:
        """What would be imported only now, with all of PyTorch."""
        setattr(hone, name, value)
        self.addCleanup(delattr, hone, name)

    def run_less(self, arguments: list, quiet: bool) -> dict:
        """What the example tunes, with less to do; a whole model takes a while. What it prepares stays."""
        if "--dry-run" in arguments:
            return self.run_json(arguments, quiet=quiet)
        self.tuned.append(arguments)
        return self.run_json(arguments[:2] + ["--tokens=1", "--effort=quick"] + arguments[2:], quiet=True)

    def assert_runs(self, name: str, problem: str, *checked: Tuple[int, ...]) -> None:
        """One launch at least for what it checks; the report names the problem."""
        driver = FakeDriver()
        before = driver.launch_count()
        self.assertIn(problem, self.run_example(f"{name}.py"))
        self.assertGreater(driver.launch_count(), before)
        self.assertEqual(self.checked, list(checked))

    def test_rms_norm(self) -> None:
        driver = FakeDriver()
        before = driver.launch_count()
        with mock.patch.object(program, "run_json", self.run_less):
            printed = self.run_example("rms_norm.py")
        self.assertEqual(self.tuned, [["tune", "--json", "--", "llama-3-8b"]])
        self.assertIn("llama-3-8b: rmsnorm, rmsnorm_residual, ", printed)
        self.assertIn("rmsnorm dtype=fp16 output=same residual=yes hidden=4096", printed)
        self.assertEqual(driver.launch_count(), before + 2)
        self.assertEqual(self.checked, [(16, 4096), (300, 4096)])

    def test_attention(self) -> None:
        self.torch.arange = lambda *_: None
        self.assert_runs("attention", "attention_decode dtype=bf16", (1, 512, 32, 128), (4, 1, 32, 128))

    def test_embedding(self) -> None:
        self.assert_runs("embedding", "embedding dtype=bf16", (512, 4096))

    def test_expert_linear(self) -> None:
        self.assert_runs("expert_linear", "expert_linear dtype=bf16 activation=silu gated=yes", (16, 2, 1024))

    def test_expert_routing(self) -> None:
        self.assert_runs("expert_routing", "expert_routing dtype=fp32", (64, 8), (64, 8))

    def test_fused_ffn(self) -> None:
        self.assert_runs("fused_ffn", "gated=yes", (16, 4096))

    def test_layer_norm(self) -> None:
        self.assert_runs("layer_norm", "layernorm dtype=bf16", (300, 4096))

    def test_linear(self) -> None:
        self.assert_runs("linear", "linear dtype=bf16", (16, 6144))

    def test_quantize_weights(self) -> None:
        """hone.quantize_weights itself, which needs PyTorch, is tested on a GPU."""
        packed = (self.made((16, 64, 2048), self.torch.uint8), self.made((16, 64, 64), self.torch.bfloat16), None)
        self.torch.Tensor.cpu = lambda tensor: tensor
        self.addCleanup(delattr, self.torch.Tensor, "cpu")
        quantize = mock.Mock(return_value=packed)
        self.give_hone("quantize_weights", quantize)
        self.run_example("quantize_weights.py")
        self.assertEqual(self.checked, [(16, 64, 2048), (16, 64, 64)])
        self.assertEqual([call.args[1:] for call in quantize.call_args_list], [("w4a16",)] * 2)

    def test_quantized_expert_linear(self) -> None:
        self.assert_runs("quantized_expert_linear", "quantized_expert_linear dtype=bf16 format=w8a8", (16, 2, 1024))

    def test_quantized_linear(self) -> None:
        self.assert_runs("quantized_linear", "quantized_linear dtype=bf16 format=w8a8", (300, 1024))

    def test_quantized_ffn(self) -> None:
        def quantized(weight: fake_torch.Tensor, format: str) -> Any:
            out, columns = weight.shape
            blocks = (out // 64, columns // 64 * 4096)
            return self.made(blocks, self.torch.uint8), self.made((out,), self.torch.float32), None

        self.give_hone("quantize_weights", quantized)
        self.assert_runs("quantized_ffn", "format=w8a16", (16, 2048))

    def test_rms_norm_backward(self) -> None:
        self.assert_runs("rms_norm_backward", "rmsnorm_backward dtype=bf16", (300, 4096), (4096,))

    def give_rope_table(self) -> None:
        def rope_table(rotary_dim: int, positions: int, base: float, device: str) -> Any:
            return [self.made((positions, rotary_dim // 2), self.torch.float32) for _ in range(2)]

        self.give_hone("nn", mock.Mock(rope_table=rope_table))

    def test_attention_append(self) -> None:
        self.give_rope_table()
        self.assert_runs("attention_append", "attention_append dtype=bf16", (16, 32, 128))

    def test_rope_kv_append(self) -> None:
        self.give_rope_table()
        cache = (16, 512, 8, 128)
        self.assert_runs("rope_kv_append", "rope_kv_append dtype=bf16", (16, 1, 32, 128), cache, cache)

    def test_sample(self) -> None:
        self.assert_runs("sample", "sample dtype=fp32", (16,), (16,))

    def test_without_a_gpu_an_example_says_so(self) -> None:
        self.torch.cuda.devices = 0
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as ended:
            self.run_example("linear.py")
        self.assertEqual(ended.exception.code, 3)
        self.assertIn("no usable GPU", said.getvalue())

    def test_there_is_a_case_for_every_example_and_an_example_for_every_operator(self) -> None:
        cases = {name[len("test_") :] for name in dir(self) if name.startswith("test_")}
        examples = {path.stem for path in FOLDER.glob("*.py")} - {SHARED} - OF_MODELS
        self.assertLessEqual(examples, cases)
        documented = {path.stem for path in (TREE / "docs" / "operators").glob("*.md")} - {"README"}
        self.assertEqual(examples, documented)
        prepared = {getattr(descriptions, name).C_NAME for name in descriptions.__all__}
        self.assertLessEqual(prepared, examples)


if __name__ == "__main__":
    unittest.main()

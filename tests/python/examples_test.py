"""Every program of examples/python runs to its end on the fake driver; what PyTorch computes is left out."""

from __future__ import annotations

import contextlib
import io
import runpy
import types
import unittest
from typing import Any
from unittest import mock

from fakes import TREE, torch as fake_torch
from fakes.driver import FakeDriver

import hone
from hone import program

FOLDER = TREE / "examples" / "python"


class Examples(unittest.TestCase):
    def setUp(self) -> None:
        torch = fake_torch.install()
        self.addCleanup(fake_torch.uninstall)
        self.checked, self.tuned = [], []
        self.run_json = program.run_json

        def made(*shape: int, dtype: fake_torch.dtype, device: str) -> fake_torch.Tensor:
            return fake_torch.cuda_tensor(torch, *shape, dtype=dtype)

        def same(first: fake_torch.Tensor, *_: Any) -> fake_torch.Tensor:
            return first

        def assert_close(found: fake_torch.Tensor, wanted: fake_torch.Tensor, **tolerances: float) -> None:
            self.checked.append(found.shape)

        torch.randn = torch.rand = made
        torch.randint = lambda low, high, shape, **options: made(*shape, **options)
        torch.mul = torch.div = torch.abs = torch.amax = same
        torch.nn.functional = types.SimpleNamespace(rms_norm=same, linear=same)
        torch.testing = types.SimpleNamespace(assert_close=assert_close)

    def run_example(self, name: str) -> str:
        """What it prints. Nothing is frozen: other tests of this process may want to compile."""
        with contextlib.redirect_stdout(io.StringIO()) as printed, mock.patch.object(hone, "freeze"):
            runpy.run_path(str(FOLDER / name), run_name="__main__")
        return printed.getvalue()

    def run_less(self, arguments: list, quiet: bool) -> dict:
        """What the example tunes, with less to do; a whole model takes a while. What it prepares stays."""
        if "--dry-run" in arguments:
            return self.run_json(arguments, quiet=quiet)
        self.tuned.append(arguments)
        return self.run_json(arguments[:2] + ["--tokens=1", "--effort=quick"] + arguments[2:], quiet=True)

    def test_rmsnorm(self) -> None:
        driver = FakeDriver()
        before = driver.launch_count()
        with mock.patch.object(program, "run_json", self.run_less):
            printed = self.run_example("rmsnorm.py")
        self.assertEqual(self.tuned, [["tune", "--json", "--", "llama-3-8b"]])
        self.assertIn("llama-3-8b: rmsnorm, rmsnorm_residual, ", printed)
        self.assertIn("rmsnorm dtype=fp16 output=same residual=yes hidden=4096", printed)
        self.assertEqual(driver.launch_count(), before + 2)
        self.assertEqual(self.checked, [(16, 4096), (300, 4096)])

    def test_quantized(self) -> None:
        driver = FakeDriver()
        before = driver.launch_count()
        printed = self.run_example("quantized.py")
        self.assertIn("quantized_linear dtype=bf16 format=w8a8", printed)
        self.assertGreaterEqual(driver.launch_count(), before + 2)
        self.assertEqual(self.checked, [(300, 1024)])

    def test_there_is_a_case_for_every_example(self) -> None:
        cases = {f"{name[len('test_'):]}.py" for name in dir(self) if name.startswith("test_")}
        self.assertLessEqual({path.name for path in FOLDER.iterdir() if path.suffix == ".py"}, cases)


if __name__ == "__main__":
    unittest.main()

"""Every program of examples/python runs to its end on the fake driver; what PyTorch computes is left out."""

from __future__ import annotations

import contextlib
import io
import runpy
import types
import unittest
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

        def randn(*shape: int, dtype: fake_torch.dtype, device: str) -> fake_torch.Tensor:
            return fake_torch.cuda_tensor(torch, *shape, dtype=dtype)

        def assert_close(found: fake_torch.Tensor, wanted: fake_torch.Tensor, **tolerances: float) -> None:
            self.checked.append(found.shape)

        torch.randn = randn
        torch.nn.functional = types.SimpleNamespace(rms_norm=lambda x, *_: x)
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

    def test_there_is_a_case_for_every_example(self) -> None:
        cases = {f"{name[len('test_'):]}.py" for name in dir(self) if name.startswith("test_")}
        self.assertLessEqual({path.name for path in FOLDER.iterdir() if path.suffix == ".py"}, cases)


if __name__ == "__main__":
    unittest.main()

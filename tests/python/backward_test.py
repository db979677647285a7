"""Calls of a prepared RmsNormBackward: what reaches the driver, the workspace, and what mistakes say."""

from __future__ import annotations

import unittest

from fakes import arrays, torch as fake_torch
from fakes.case import HIDDEN, Case, prepare

import hone

LAUNCHES = 2  # rows, then the sum over their parts of dweight


class OtherArrays(Case):
    def arguments(self, residual: bool) -> dict:
        matrices = ("dy", "x", "dx", "dsum") if residual else ("dy", "x", "dx")
        found = {name: self.exporter(4, HIDDEN) for name in matrices}
        found.update({name: self.exporter(HIDDEN) for name in ("weight", "dweight")})
        return found

    def workspace(self, size: int, **more) -> arrays.Exporter:
        return arrays.Exporter(self.driver.allocate(1 << 16), (size,), "uint8", **more)

    def test_everything_given_is_used_and_returned(self) -> None:
        for residual in (False, True):
            backward = prepare(hone.RmsNormBackward(HIDDEN, max_rows=64, residual=residual))
            arguments = self.arguments(residual)
            workspace = self.workspace(backward.workspace_bytes(4))
            with self.launches(LAUNCHES):
                dx, dweight = backward(**arguments, workspace=workspace, epsilon=1e-6)
            self.assertEqual((dx, dweight), (arguments["dx"], arguments["dweight"]))
            self.assert_ran_with(backward, **arguments, workspace=workspace, dy_stride=HIDDEN)
            self.assertAlmostEqual(backward._run.arguments[-1]["epsilon"], 1e-6)
            self.assertEqual(backward._run.rows, [4])

    def test_the_workspace_grows_with_the_rows(self) -> None:
        backward = prepare(hone.RmsNormBackward(HIDDEN, max_rows=4096))
        sizes = [backward.workspace_bytes(rows) for rows in (1, 64, 4096)]
        self.assertEqual(sizes, sorted(sizes))
        self.assertGreater(sizes[0], 0)
        self.assertEqual(backward.workspace_bytes(1), sizes[0])
        with self.assertRaises(hone.BadArgumentError):
            backward.workspace_bytes(4097)

    def test_a_workspace_that_does_not_do(self) -> None:
        backward = prepare(hone.RmsNormBackward(HIDDEN))
        arguments, needed = self.arguments(False), backward.workspace_bytes(4)
        good = self.workspace(needed)
        for workspace, pattern in (
            (self.workspace(needed - 1), f"^workspace: it has {needed - 1} bytes; needed are {needed}"),
            (arrays.Exporter(good.pointer + 128, (needed,), "uint8"), "^workspace: its address .* 256 bytes"),
            (self.workspace(needed, read_only=True), "^workspace: it is read-only"),
            (self.workspace(needed, strides=(2,)), "^workspace: its strides are"),
            (None, rf"^workspace: it is missing, .* shape \[{needed}\] and dtype uint8"),
        ):
            with self.refuses(ValueError, pattern):
                backward(**arguments, workspace=workspace)
        with self.launches(LAUNCHES):
            backward(**arguments, workspace=good)

    def test_mistakes_are_named(self) -> None:
        backward = prepare(hone.RmsNormBackward(HIDDEN, residual=True))
        good = {**self.arguments(True), "workspace": self.workspace(1 << 12)}
        for name in ("dy", "x", "weight", "dsum", "dx", "dweight"):
            shape = good[name].shape
            pointer = good[name].pointer
            with self.refuses(TypeError, f"^{name}: its dtype is fp16; allowed is bf16"):
                backward(**{**good, name: self.exporter(*shape, dtype="fp16")})
            with self.refuses(ValueError, f"^{name}: its shape is "):
                backward(**{**good, name: self.exporter(*shape[:-1], 32)})
            with self.refuses(ValueError, f"^{name}: its address {pointer + 2:#x} is no multiple of 16"):
                backward(**{**good, name: arrays.Exporter(pointer + 2, shape)})
        for name in ("dx", "dweight"):
            with self.refuses(ValueError, f"^{name}: it is read-only"):
                backward(**{**good, name: self.exporter(*good[name].shape, read_only=True)})
        self.refuses_missing(backward, good, "dsum", "residual=True")
        with self.refuses(ValueError, "^dsum: it is given, but this operator was prepared without"):
            prepare(hone.RmsNormBackward(HIDDEN))(**good)


class TorchTensors(Case):
    def test_both_ways_launch_the_same(self) -> None:
        """The first call goes the careful way, the second the fast one."""
        torch = fake_torch.install()
        self.addCleanup(fake_torch.uninstall)
        for residual in (False, True):
            backward = prepare(hone.RmsNormBackward(HIDDEN, residual=residual))
            careful = backward._call_checked = fake_torch.counting(backward._call_checked)
            dy = fake_torch.cuda_tensor(torch, 2, 2, HIDDEN)
            x = fake_torch.cuda_tensor(torch, 2, 2, HIDDEN)
            dsum = fake_torch.cuda_tensor(torch, 2, 2, HIDDEN) if residual else None
            weight = fake_torch.Parameter((HIDDEN,), torch.bfloat16, fake_torch.device("cuda", 0))
            for _ in range(2):
                with self.launches(LAUNCHES):
                    dx, dweight = backward(dy, x, weight, dsum)
                self.assertEqual((dx.shape, dx.dtype), (dy.shape, torch.bfloat16))
                self.assertEqual((dweight.shape, dweight.dtype), ((HIDDEN,), torch.bfloat16))
                self.assert_ran_with(
                    backward, dy=dy, x=x, weight=weight, dx=dx, dweight=dweight,
                    dsum=dsum if residual else 0,
                )  # fmt: skip
                self.assertTrue(backward._run.arguments[-1]["workspace"])
            self.assertEqual((careful.calls, backward._run.rows), (1, [4, 4]))
            with self.refuses(ValueError, "^x: its shape is"):
                backward(dy, fake_torch.cuda_tensor(torch, 4, HIDDEN), weight, dsum)

    def test_the_workspace_is_memory_of_the_stream(self) -> None:
        """It is given back as soon as the call returns: work on its stream alone may have it next."""
        torch = fake_torch.install()
        self.addCleanup(fake_torch.uninstall)
        torch.cuda.streams = {0: 0x1230}
        backward = prepare(hone.RmsNormBackward(HIDDEN))
        weight = fake_torch.cuda_tensor(torch, HIDDEN)
        x = fake_torch.cuda_tensor(torch, 4, HIDDEN)
        for given, wanted in ((None, 0x1230), (0x4560, 0x4560), (0x1230, 0x1230), (0, 0)) * 2:
            with self.launches(LAUNCHES):
                backward(x, x, weight, stream=given)
            (workspace,) = [made for made in torch.made if made.dtype is torch.uint8]
            self.assert_ran_with(backward, workspace=workspace)
            self.assertEqual((workspace.made_for, backward._run.streams[-1]), (wanted, wanted))
            torch.made.clear()


class Knowledge(Case):
    def test_it_is_explained_and_reported(self) -> None:
        description = hone.RmsNormBackward(HIDDEN, max_rows=8)
        self.assertIn("rmsnorm_backward", hone.explain(description, 8)["problem"])
        self.assertEqual(prepare(description).report()["parts"][0]["buckets"][-1]["sizes"]["rows"][1], 8)


if __name__ == "__main__":
    unittest.main()

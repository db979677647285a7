"""Hone as a peer of PyTorch (bench/torch_peers.py), and the tables (bench/compare_docs.py): every case of
bench/torch_operators, made smaller, on the fake driver."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import unittest
from typing import Any, Dict, List
from unittest import mock

from fakes import TREE, torch as fake_torch
from fakes.case import Case

import hone

BENCH = TREE / "bench"
SIZES = ("tokens", "rows", "in", "out", "hidden", "intermediate", "q_len", "kv_len", "vocabulary")


def problems_of(arguments: Dict[str, Any]) -> List[str]:
    """What hone.tune() of these would tune."""
    answer = hone.tune(**arguments, dry_run=True, quiet=True)
    return [problem["problem"] for problem in answer["problems"]]


class BenchCase(Case):
    """With the modules of bench/ over stand-ins for PyTorch."""

    def setUp(self) -> None:
        self.torch = fake_torch.install()
        self.addCleanup(fake_torch.uninstall)
        path = mock.patch.object(sys, "path", [str(BENCH), *sys.path])
        path.start()
        self.addCleanup(path.stop)
        self.addCleanup(self.forget_bench)
        import torch_cases
        import torch_peers

        self.torch_cases, self.torch_peers = torch_cases, torch_peers

    def forget_bench(self) -> None:
        """The modules over this PyTorch."""
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None)).startswith(f"{BENCH}/"):
                del sys.modules[name]

    def cases(self) -> List[Dict[str, Any]]:
        import torch_operators

        return [case for table in torch_operators.CASES.values() for case in table]


class Peers(BenchCase):
    def smaller_cases(self) -> List[Dict[str, Any]]:
        """One of each that remains different."""
        smaller = [{k: -(-v // 64) if k in SIZES else v for k, v in case.items()} for case in self.cases()]
        for case in smaller:
            if "group" in case:
                case["group"] = 32
        return list(map(json.loads, sorted(set(map(json.dumps, smaller)))))

    def inputs(self, case: Dict[str, Any]) -> Dict[str, Any]:
        """Those that a case's module tells; and what Hone makes of them, since here nothing is computed."""
        family = self.torch_peers.FAMILIES[case["op"]]
        told = {**family.inputs(case), **family.hone.kept(case)}
        return {
            name: fake_torch.cuda_tensor(self.torch, *wanted.shape, dtype=wanted.dtype)
            for name, wanted in told.items()
        }

    def test_every_case_is_launched(self) -> None:
        for case in self.smaller_cases():
            with self.subTest(case=case), contextlib.redirect_stderr(io.StringIO()) as said:
                inputs = self.inputs(case)
                call = self.torch_peers.peers(case["op"], case, inputs)["hone"]
                before = self.driver.launch_count()
                outputs = call(inputs)
                self.assertGreater(self.driver.launch_count(), before)
                self.torch_cases.check_shape(outputs, self.torch_peers.FAMILIES[case["op"]].out(case))
            self.assertIn("not exact; hone tune --op", said.getvalue())

    def test_what_is_tuned_is_what_is_called(self) -> None:
        """The program's problems for a case are those that libhone names for the prepared operator."""
        for case in self.smaller_cases():
            with self.subTest(case=case), contextlib.redirect_stderr(io.StringIO()):
                with mock.patch.object(hone, "tune") as tune:
                    self.torch_peers.tune([case])
                tuned = [problem for call in tune.call_args_list for problem in problems_of(call.kwargs)]
                inputs = self.inputs(case)
                with mock.patch.object(hone, "explain", side_effect=hone.explain) as explain:
                    self.torch_peers.peers(case["op"], case, inputs)["hone"](inputs)
                explained = hone.explain(*explain.call_args.args)
                called = [half["problem"] for half in explained.get("parts", [explained])]
                self.assertEqual(sorted(tuned), sorted(called))

    def test_every_operator_has_cases(self) -> None:
        self.assertEqual({case["op"] for case in self.cases()}, set(self.torch_peers.FAMILIES))

    def test_work_is_told_for_every_case(self) -> None:
        for case in self.cases():
            moved, operations = self.torch_peers.FAMILIES[case["op"]].work(case)
            self.assertGreater(moved, 0)
            self.assertGreaterEqual(operations, 0)

    def test_a_tensor_that_is_not_what_was_told_is_refused(self) -> None:
        made = fake_torch.cuda_tensor(self.torch, 3, 4)
        for shape, dtype in (((4, 3), self.torch.bfloat16), ((3, 4), self.torch.float16)):
            with self.assertRaisesRegex(ValueError, r"^it is \[3, 4\] of torch.bfloat16; told was "):
                self.torch_cases.make(self.torch_cases.Input(shape, dtype, lambda _: made), {})
        wanted = self.torch_cases.Input((3, 4), self.torch.bfloat16, lambda _: made)
        self.assertIs(self.torch_cases.make(wanted, {}), made)
        with self.assertRaisesRegex(ValueError, r"^it returned \(3, 4\), not \(4,\)"):
            self.torch_cases.check_shape(made, (4,))

    def test_what_another_peer_keeps_in_the_input_set_stays_its_own(self) -> None:
        case = {"op": "linear_w4a16", "tokens": 3, "in": 64, "out": 128, "group": 32, "dtype": "bf16"}
        inputs = self.inputs(case)
        packed, scales = inputs.pop("hone_packed"), inputs.pop("hone_packed_scales")
        theirs = object()
        inputs.update(codes=object(), scales=mock.Mock(shape=(128, 2)), packed=theirs)
        from hone._weights import packing

        with mock.patch.object(packing, "pack_w4", return_value=packed), mock.patch.object(
            packing, "pack_scales", return_value=scales
        ), contextlib.redirect_stderr(io.StringIO()):
            self.torch_peers.peers(case["op"], case, inputs)["hone"](inputs)
        self.assertIs(inputs["packed"], theirs)
        self.assertIs(inputs["hone_packed"], packed)

    def test_a_workspace_is_taken_once(self) -> None:
        case = {"op": "ffn_swiglu", "tokens": 3, "hidden": 64, "intermediate": 128, "dtype": "bf16"}
        run = mock.patch.object(hone.FusedFfnOperator, "__call__")
        with run as run, contextlib.redirect_stderr(io.StringIO()):
            call = self.torch_peers.peers(case["op"], case, self.inputs(case))["hone"]
            for _ in range(3):
                call(self.inputs(case))
        workspaces = [call.kwargs["workspace"] for call in run.call_args_list]
        self.assertIsNotNone(workspaces[0])
        self.assertEqual([workspace is workspaces[0] for workspace in workspaces], [True] * 3)

    def test_a_network_is_tuned_by_its_halves(self) -> None:
        case = {"op": "ffn_gelu", "tokens": 3, "hidden": 64, "intermediate": 128, "dtype": "fp16"}
        with mock.patch.object(hone, "tune") as tune:
            self.torch_peers.tune([case, {**case, "tokens": 1}])
        first, second = (call.kwargs for call in tune.call_args_list)
        self.assertEqual((first["tokens"], second["tokens"]), ([1, 3], [1, 3]))
        half = {"dtype": "fp16", "bias": True}
        self.assertEqual(
            first["fields"], {**half, "activation": "gelu_tanh", "gated": False, "in": 64, "out": 128}
        )
        self.assertEqual(second["fields"], {**half, "in": 128, "out": 64})


class Tables(BenchCase):
    def test_a_row_for_every_case(self) -> None:
        import compare_docs

        peers = [{"name": "hone", "us": 10.0}, {"name": "cuBLAS", "us": 12.0}, {"name": "x", "error": "e"}]
        results = [{"case": case, "bytes": 10**7, "flops": 10**10, "peers": peers} for case in self.cases()]
        machine = {"device": "NVIDIA H100", "torch": "2.11"}
        table = compare_docs.render({"date": "2026-01-02T03:04", "machine": machine, "results": results})
        self.assertIn("NVIDIA H100, PyTorch 2.11, 2026-01-02.", table)
        self.assertIn("| operator | size | dtype | Hone us | rate | cuBLAS us | x us |", table)
        size = "batch 64, heads 32/8 of 128, 1 x 8192 tokens, pages of 16"
        self.assertIn(f"| attention_paged | {size} | bf16 |", table)
        self.assertIn("| batch 1, heads 32/32 of 128, 512 x 512 tokens, causal | fp16 |", table)
        row = "| linear | 1 x 4096 x 4096 | bf16 | 10.00 | 1000 TFLOP/s | 12.00 |  | 1.200 |"
        self.assertIn(row, table)
        self.assertEqual(table.count("\n| ") - 1, len(results))
        self.assertIn("Geometric mean of the last column: 1.20.", table)
        self.assertNotIn("measured on another", table)

    def test_peers_that_were_measured_elsewhere(self) -> None:
        import compare_docs

        case = {"op": "linear_fp8", "tokens": 1, "out": 4096, "in": 4096, "dtype": "bf16"}
        peers = [{"name": "hone", "us": 5.0}, {"name": "cuBLAS", "us": 13.0}]
        work = {"bytes": 10**7, "flops": 10**7, "peers": peers}
        results = [{"case": case, **work}, {"case": {**case, "tokens": 3}, **work}]
        machine = {"device": "NVIDIA H200"}
        told = {"date": "2026-01-02T03:04", "machine": machine, "results": results}
        table = compare_docs.render(told)
        self.assertIn(r"| cuBLAS us | DeepGEMM \* us | best other / Hone |", table)
        self.assertIn("| 13.00 | 10.00 | 2.000 |", table)
        self.assertIn("| 3 x 4096 x 4096 | bf16 | 5.00 | 2.00 TB/s | 13.00 |  | 2.600 |", table)
        self.assertIn(r"\* Built from source and measured on another NVIDIA H200", table)
        machine["device"] = "NVIDIA H100"
        self.assertNotIn("DeepGEMM", compare_docs.render(told))

    def test_every_time_from_elsewhere_is_of_a_case(self) -> None:
        import compare_docs

        known = json.loads(compare_docs.ELSEWHERE.read_text())
        for time in known["times"]:
            with self.subTest(**time):
                found = [case for case in self.cases() if time["case"].items() <= case.items()]
                self.assertEqual(len(found), 1)


if __name__ == "__main__":
    unittest.main()

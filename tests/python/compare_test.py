"""Hone as a peer of PyTorch (bench/torch_peers.py), and the tables (bench/compare_docs.py): every case of
bench/cases, made smaller, on the fake driver."""

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


def cases() -> List[Dict[str, Any]]:
    files = (BENCH / "cases").glob("*.json")
    return [case for file in sorted(files) for case in json.loads(file.read_text())]


def shapes_of(case: Dict[str, Any]) -> Dict[str, tuple]:
    """Shapes of an input set, by name."""
    op = case["op"]
    if op.startswith("attention"):
        return attention_shapes_of(case)
    if op.startswith("embedding"):
        return embedding_shapes_of(case)
    if op.startswith("sample"):
        rows = ("temperature", "seed", "counter", *(("top_k", "top_p", "min_p") if "filters" in op else ()))
        return {"logits": (case["rows"], case["vocabulary"]), **{name: (case["rows"],) for name in rows}}
    if "group" in case or op.startswith("linear_"):
        return quantized_shapes_of(case)
    if op == "linear":
        return {"x": (case["tokens"], case["in"]), "w": (case["out"], case["in"])}
    hidden = case["hidden"]
    if op.startswith("ffn"):
        between = case["intermediate"]
        found = {"x": (case["tokens"], hidden), "up": (between, hidden), "down": (hidden, between)}
        if op == "ffn_swiglu":
            return {**found, "gate": (between, hidden)}
        return {**found, "up_bias": (between,), "down_bias": (hidden,)}
    rows = (case["rows"], hidden)
    found = {"x": rows, "weight": (hidden,)}
    if op == "rmsnorm_backward":
        return {**found, "dy": rows}
    if op.startswith("layernorm"):
        found["bias"] = (hidden,)
    return {**found, "residual": rows} if op.endswith("residual") else found


def attention_shapes_of(case: Dict[str, Any]) -> Dict[str, tuple]:
    batch, kv_heads, kv_len, dim = (case[name] for name in ("batch", "kv_heads", "kv_len", "head_dim"))
    kv = (batch, kv_heads, kv_len, dim)
    found = {"q": (batch, case["heads"], case["q_len"], dim), "k": kv, "v": kv}
    if "page_size" in case:
        each = kv_len // case["page_size"]
        pages = (batch * each, case["page_size"], kv_heads, dim)
        found.update(k_pages=pages, v_pages=pages, page_table=(batch, each))
    return found


def embedding_shapes_of(case: Dict[str, Any]) -> Dict[str, tuple]:
    tokens, hidden = (case["tokens"],), case["hidden"]
    found = {"ids": tokens, "table": (case["vocabulary"], hidden)}
    if "position_rows" not in case:
        return found
    return {**found, "position_ids": tokens, "position_table": (case["position_rows"], hidden)}


def quantized_shapes_of(case: Dict[str, Any]) -> Dict[str, tuple]:
    """Packed already: that is PyTorch's work."""

    def of_four_bits(name: str, rows: int, columns: int) -> Dict[str, tuple]:
        blocks, scales = -(-rows // 64), -(-columns // 64) * 64 // case["group"]
        bytes_of = (blocks, -(-columns // 64) * 2048)
        return {f"hone_{name}packed": bytes_of, f"hone_{name}packed_scales": (blocks, scales, 64)}

    op, tokens = case["op"], case["tokens"]
    if op == "ffn_swiglu_w4a16":
        hidden, between = case["hidden"], case["intermediate"]
        found = {"x": (tokens, hidden), **of_four_bits("down_", hidden, between)}
        return {**found, **of_four_bits("gate_", between, hidden), **of_four_bits("up_", between, hidden)}
    rows, columns = case["out"], case["in"]
    found = {"x": (tokens, columns)}
    if op == "linear_w4a16":
        return {**found, **of_four_bits("", rows, columns)}
    found["scales"] = (rows,)
    if op == "linear_w8a16":
        return {**found, "hone_packed": (-(-rows // 64), -(-columns // 64) * 4096)}
    return {**found, "codes": (rows, columns), "x_codes": (tokens, columns), "x_scales": (tokens,)}


class Peers(Case):
    def setUp(self) -> None:
        self.torch = fake_torch.install()
        self.addCleanup(fake_torch.uninstall)
        path = mock.patch.object(sys, "path", [str(BENCH), *sys.path])
        path.start()
        self.addCleanup(path.stop)
        sys.modules.pop("torch_peers", None)
        import torch_peers

        self.torch_peers = torch_peers

    def inputs(self, case: Dict[str, Any]) -> Dict[str, Any]:
        return {
            name: fake_torch.cuda_tensor(self.torch, *shape, dtype=self.dtype_of(name, case))
            for name, shape in shapes_of(case).items()
        }

    def dtype_of(self, name: str, case: Dict[str, Any]) -> Any:
        if name in ("page_table", "top_k"):
            return self.torch.int32
        if name in ("ids", "position_ids", "seed", "counter"):
            return self.torch.int64
        if name in ("scales", "x_scales", "temperature", "top_p", "min_p"):
            return self.torch.float32
        if name.endswith("packed"):
            return self.torch.uint8
        if name.endswith("codes"):
            return self.torch.int8 if case["op"] == "linear_w8a8" else self.torch.float8_e4m3fn
        names = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
        return getattr(self.torch, names[case["dtype"]])

    def test_every_case_is_launched(self) -> None:
        smaller = [{k: -(-v // 64) if k in SIZES else v for k, v in case.items()} for case in cases()]
        for case in smaller:
            if "group" in case:
                case["group"] = 32
        for case in map(json.loads, sorted(set(map(json.dumps, smaller)))):
            with self.subTest(case=case), contextlib.redirect_stderr(io.StringIO()) as said:
                inputs = self.inputs(case)
                call = self.torch_peers.peers(case["op"], case, inputs)["hone"]
                before = self.driver.launch_count()
                outputs = call(inputs)
                self.assertGreater(self.driver.launch_count(), before)
                first = outputs[0] if isinstance(outputs, tuple) else outputs
                self.assertEqual(first.shape, self.shape_of(case, inputs))
            self.assertIn("not exact; hone tune --op", said.getvalue())

    def shape_of(self, case: Dict[str, Any], inputs: Dict[str, Any]) -> tuple:
        """Of the first output."""
        if case["op"].startswith("sample"):
            return (case["rows"],)
        if case["op"].startswith("embedding"):
            return case["tokens"], case["hidden"]
        x, columns = inputs.get("x", inputs.get("q")), case.get("out", case.get("hidden"))
        return (*x.shape[:-1], columns or x.shape[-1])

    def test_what_another_peer_keeps_in_the_input_set_stays_its_own(self) -> None:
        case = {"op": "linear_w4a16", "tokens": 3, "in": 64, "out": 128, "group": 32, "dtype": "bf16"}
        inputs = self.inputs(case)
        packed, scales = inputs.pop("hone_packed"), inputs.pop("hone_packed_scales")
        theirs = object()
        inputs.update(codes=object(), scales=mock.Mock(shape=(128, 2)), packed=theirs)
        packing = self.torch_peers.packing
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
            call = self.torch_peers.peers(case["op"], case, {})["hone"]
            for _ in range(3):
                call(self.inputs(case))
        workspaces = [call.kwargs["workspace"] for call in run.call_args_list]
        self.assertIsNotNone(workspaces[0])
        self.assertEqual([workspace is workspaces[0] for workspace in workspaces], [True] * 3)

    def test_the_program_knows_every_problem(self) -> None:
        with mock.patch.object(hone, "tune") as tune:
            self.torch_peers.tune(cases())
        calls = [call.kwargs for call in tune.call_args_list]
        families = {
            "rmsnorm", "layernorm", "rmsnorm_backward", "linear", "attention_prefill", "attention_decode",
            "quantized_linear", "embedding", "sample",
        }  # fmt: skip
        self.assertEqual({call["op"] for call in calls}, families)
        for family in families:
            call = next(call for call in calls if call["op"] == family)
            problems = hone.tune(**call, dry_run=True, quiet=True)["problems"]
            self.assertEqual(len(problems), len(call["tokens"] or [None]))

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


class Tables(unittest.TestCase):
    def test_a_row_for_every_case(self) -> None:
        with mock.patch.object(sys, "path", [str(BENCH), *sys.path]):
            import compare_docs
        peers = [{"name": "hone", "us": 10.0}, {"name": "cuBLAS", "us": 12.0}, {"name": "x", "error": "e"}]
        results = [{"case": case, "bytes": 10**7, "flops": 10**10, "peers": peers} for case in cases()]
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


if __name__ == "__main__":
    unittest.main()

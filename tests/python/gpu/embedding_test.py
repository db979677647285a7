"""hone::embedding and the prepared operator: what PyTorch's embedding gives, and at home in what PyTorch does
with operators."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import unittest
from typing import Any, Dict, Optional

from support import DEVICE, DTYPES, Case, prepared, randn

import torch
from torch import Tensor
from torch.nn import functional

import hone
from hone import ops

HIDDEN, VOCABULARY, POSITIONS = 256, 1000, 64
IDS = {"int32": torch.int32, "int64": torch.int64}


def ids(*shape: int, rows: int = VOCABULARY, dtype: Any = torch.int64, seed: int = 0) -> Tensor:
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    return torch.randint(rows, shape, generator=generator, device=DEVICE).to(dtype)


def embed(
    tokens: Tensor, table: Tensor, scale: Optional[float] = None, position_ids: Optional[Tensor] = None,
    position_table: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    """In float64."""
    out = table.double().index_select(0, tokens.reshape(-1).long()).view(*tokens.shape, -1)
    out = out if scale is None else out * scale
    if position_ids is None:
        return out
    return out + functional.embedding(position_ids.long(), position_table.double())


def samples(dtype: Any = torch.float32, index: Any = torch.int64) -> Dict[str, tuple]:
    """Arguments of calls by name."""
    tokens, positions = ids(2, 5, dtype=index), ids(2, 5, rows=POSITIONS, dtype=index, seed=1)
    table, position_table = randn(VOCABULARY, HIDDEN, dtype=dtype), randn(POSITIONS, HIDDEN, dtype=dtype)
    return {
        "plain": (tokens, table),
        "scale": (tokens, table, 16.0),
        "positions": (tokens, table, None, positions, position_table),
        "both": (tokens, table, 0.3, positions, position_table),
    }


class Values(Case):
    def test_every_dtype_and_option(self):
        for (dtype, theirs), (index, of_ids) in itertools.product(DTYPES.items(), IDS.items()):
            for name, arguments in samples(theirs, of_ids).items():
                with self.subTest(name, dtype=dtype, index=index):
                    found = ops.embedding(*arguments)
                    self.assertEqual((found.dtype, found.shape), (theirs, (2, 5, HIDDEN)))
                    if name == "plain":
                        self.assert_same(found, functional.embedding(*arguments))
                    self.assert_near(found, embed(*arguments))
                    self.assert_same(ops.embedding(*arguments), found)  # the fast way

    def test_any_sizes(self):
        for hidden, shape in itertools.product((1, 7, 96, 4096, 12288), ((), (1,), (300,), (2, 3, 4))):
            table, tokens = randn(50, hidden), ids(*shape, rows=50)
            with self.subTest(hidden=hidden, shape=shape):
                self.assert_same(ops.embedding(tokens, table), functional.embedding(tokens, table))

    def test_no_tokens_and_many(self):
        table = randn(VOCABULARY, 64)
        for count in (1, 0, 20000, 3):
            tokens = ids(count)
            self.assert_same(ops.embedding(tokens, table), functional.embedding(tokens, table))

    def test_any_strides(self):
        wide = randn(VOCABULARY, 3 * HIDDEN + 1)
        tokens = ids(5, 4)
        for name, table, asked in (
            ("rows apart", wide[:, :HIDDEN], tokens),
            ("misaligned", wide[:, 1 : HIDDEN + 1], tokens),
            ("transposed", randn(HIDDEN, VOCABULARY).t(), tokens),
            ("every other row", wide[::2, :HIDDEN], tokens // 2),
            ("ids apart", wide[:, :HIDDEN], tokens.t()),
            ("one id", wide[:, :HIDDEN], tokens[:1, :1].expand(5, 4)),
        ):
            with self.subTest(name):
                self.assert_same(ops.embedding(asked, table), functional.embedding(asked, table))

    def test_ids_without_a_row_give_zeros(self):
        table, position_table = randn(10, HIDDEN), randn(4, HIDDEN)
        tokens = torch.tensor([0, -1, 9, 10, 2**40], device=DEVICE)
        found = ops.embedding(tokens, table)
        self.assert_same(found[::2][:2], table[[0, 9]])
        for place in (1, 3, 4):
            self.assertEqual(int(found[place].count_nonzero()), 0)
        positions = torch.tensor([0, 1, 4, 1, 1], device=DEVICE)
        found = ops.embedding(tokens, table, None, positions, position_table)
        self.assert_near(found[:1], (table[0] + position_table[0].double())[None])
        for place in (1, 2, 3, 4):
            self.assertEqual(int(found[place].count_nonzero()), 0)

    def test_the_prepared_operator(self):
        for index, of_ids in IDS.items():
            tokens, table = ids(3, 5, dtype=of_ids), randn(VOCABULARY, HIDDEN)
            embedding = prepared(hone.Embedding(HIDDEN, max_tokens=64, index=index))
            out = torch.empty(3, 5, HIDDEN, dtype=table.dtype, device=DEVICE)
            for _ in range(2):
                self.assert_same(embedding(tokens, table), functional.embedding(tokens, table))
                self.assertIs(embedding(tokens, table, out=out), out)
            with self.assertRaisesRegex(TypeError, "^ids: its dtype"):
                embedding(tokens.to(torch.int16), table)

    def test_checked_indices_are_refused(self):
        program = """
import torch, hone
from hone import ops
table, ids = torch.zeros(8, 64, device="cuda"), torch.tensor([0, 7], device="cuda")
ops.embedding(ids, table)
try:
    ops.embedding(ids + 1, table)
except hone.BadArgumentError as error:
    assert "no row in its table" in str(error), error
else:
    raise AssertionError("an id without a row")
"""
        environment = {**os.environ, "HONE_CHECK_INDICES": "1"}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, env=environment
        )
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])


class Mistakes(Case):
    def refuses(self, kind: Any, name: str, *arguments: Any) -> None:
        with self.assertRaisesRegex(kind, f"^{name}: "):
            ops.embedding(*arguments)

    def test_every_mistake_names_its_argument(self):
        tokens, table, scale, positions, position_table = samples()["both"]
        for _ in range(2):  # the fast way has to notice, too
            self.refuses(TypeError, "ids", tokens.float(), table)
            self.refuses(TypeError, "table", tokens, table.double())
            self.refuses(ValueError, "table", tokens, table[0])
            self.refuses(ValueError, "table", tokens, table[:0])
            self.refuses(ValueError, "table", tokens, table.cpu())
            self.refuses(ValueError, "ids", tokens.cpu(), table.cpu())
            self.refuses(ValueError, "position_table", tokens, table, None, positions)
            self.refuses(ValueError, "position_ids", tokens, table, None, None, position_table)
            self.refuses(TypeError, "position_ids", tokens, table, None, positions.int(), position_table)
            self.refuses(ValueError, "position_ids", tokens, table, None, positions[:1], position_table)
            self.refuses(ValueError, "position_table", tokens, table, scale, positions, position_table[:, 1:])
            self.refuses(TypeError, "position_table", tokens, table, scale, positions, position_table.half())
            ops.embedding(tokens, table, scale, positions, position_table)


class Dispatch(Case):
    def test_opcheck_is_content(self):
        for name, arguments in samples().items():
            with self.subTest(name):
                torch.library.opcheck(torch.ops.hone.embedding.default, arguments)

    def test_fake_tensors_and_those_without_memory(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        for name, arguments in samples(torch.bfloat16).items():
            wanted = ops.embedding(*arguments)
            with FakeTensorMode() as mode:
                fakes = [mode.from_tensor(a) if isinstance(a, Tensor) else a for a in arguments]
                fake = ops.embedding(*fakes)
            meta = ops.embedding(*(a.to("meta") if isinstance(a, Tensor) else a for a in arguments))
            for found in (fake, meta):
                with self.subTest(name, device=str(found.device)):
                    self.assertEqual(
                        (found.shape, found.stride(), found.dtype),
                        (wanted.shape, wanted.stride(), wanted.dtype),
                    )

    def test_there_is_no_gradient(self):
        tokens, table = samples()["plain"]
        weight = torch.nn.Parameter(table)
        out = ops.embedding(tokens, weight)
        self.assert_same(out.detach(), functional.embedding(tokens, table))
        with self.assertRaisesRegex(NotImplementedError, "^hone::embedding has no gradient; train with"):
            out.sum().backward()
        with torch.no_grad():
            self.assertFalse(ops.embedding(tokens, weight).requires_grad)

    def test_one_graph_of_dynamo(self):
        torch._dynamo.reset()
        for name, arguments in samples(torch.bfloat16).items():
            with self.subTest(name):
                compiled = torch.compile(lambda *a: ops.embedding(*a), fullgraph=True, backend="aot_eager")
                with torch.no_grad():
                    self.assert_same(compiled(*arguments), ops.embedding(*arguments))

    def test_inductor_keeps_it_between_its_own_kernels(self):
        torch._dynamo.reset()
        tokens, table = ids(16), randn(VOCABULARY, HIDDEN)

        def block(tokens: Any) -> Any:
            return torch.relu(torch.ops.hone.embedding(tokens + 1, table, scale=2.0)) * 2

        with torch.no_grad():
            self.assert_near(torch.compile(block, fullgraph=True)(tokens - 1), block(tokens - 1).double())

    def test_any_number_of_tokens_with_one_graph(self):
        torch._dynamo.reset()
        graphs = []

        def backend(graph: Any, inputs: Any) -> Any:
            graphs.append(graph)
            return graph.forward

        table = randn(VOCABULARY, HIDDEN)
        compiled = torch.compile(
            lambda tokens: ops.embedding(tokens, table), fullgraph=True, dynamic=True, backend=backend
        )
        for count in (2, 3, 17, 100):
            tokens = ids(count)
            self.assert_same(compiled(tokens), functional.embedding(tokens, table))
        self.assertEqual(len(graphs), 1)

    def test_a_graph(self):
        calls = samples(torch.bfloat16)
        for arguments in calls.values():
            ops.embedding(*arguments)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = [ops.embedding(*arguments) for arguments in calls.values()]
        calls["plain"][0].copy_(ids(2, 5, seed=7))  # the same tensor in all calls
        graph.replay()
        for one, arguments in zip(found, calls.values()):
            self.assert_same(one, ops.embedding(*arguments))


if __name__ == "__main__":
    unittest.main()

"""Rows of a table by ids: tokens, hidden, vocabulary; with position_rows where those of a second table are
added."""

from __future__ import annotations

from typing import Dict, Tuple

from torch import Tensor
from torch.nn import functional

import hone
from torch_cases import (
    Call,
    Case,
    Family,
    Input,
    Inputs,
    dtype_of,
    eager_and_compiled,
    indices,
    normal,
    table,
    wide_dtype,
)
from torch_hone import Ours


def _inputs(case: Case) -> Dict[str, Input]:
    tokens, hidden, dtype = case["tokens"], case["hidden"], dtype_of(case)
    inputs = {
        "ids": indices(tokens, below=case["vocabulary"]),
        "table": normal(case["vocabulary"], hidden, dtype=dtype),
    }
    if "position_rows" in case:
        inputs["position_ids"] = indices(tokens, below=case["position_rows"])
        inputs["position_table"] = normal(case["position_rows"], hidden, dtype=dtype)
    return inputs


def _embed(ids: Tensor, table: Tensor) -> Tensor:
    return functional.embedding(ids, table)


def _embed_with_positions(
    ids: Tensor, table: Tensor, position_ids: Tensor, position_table: Tensor
) -> Tensor:
    return functional.embedding(ids, table) + functional.embedding(position_ids, position_table)


def _peers(case: Case) -> Dict[str, Call]:
    if "position_rows" in case:
        names = ("ids", "table", "position_ids", "position_table")
        return eager_and_compiled(_embed_with_positions, *names)
    return eager_and_compiled(_embed, "ids", "table")


def _reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
    out = inputs["table"][inputs["ids"]].to(wide_dtype(case))
    if "position_rows" in case:
        out += inputs["position_table"][inputs["position_ids"]].to(out.dtype)
    return (out,)


def _work(case: Case) -> Tuple[int, int]:
    elements, with_positions = case["tokens"] * case["hidden"], "position_rows" in case
    return (2 + with_positions) * elements * dtype_of(case).itemsize, with_positions * elements


_FAMILY = Family(
    inputs=_inputs,
    out=lambda case: (case["tokens"], case["hidden"]),
    peers=_peers,
    hone=Ours(hone.Embedding),
    reference=_reference,
    work=_work,
)
FAMILIES = {"embedding": _FAMILY, "embedding_positions": _FAMILY}

CASES = {
    "embedding": table(
        "op tokens hidden vocabulary dtype",
        """
        embedding 1 4096 128256 bf16
        embedding 16 4096 128256 bf16
        embedding 64 4096 128256 bf16
        embedding 512 4096 128256 bf16
        embedding 2048 4096 128256 bf16
        embedding 8192 4096 128256 bf16
        embedding 16384 4096 128256 bf16
        embedding 1 8192 128256 bf16
        embedding 512 8192 128256 bf16
        embedding 8192 8192 128256 bf16
        embedding 1 4096 32000 bf16
        embedding 512 4096 32000 bf16
        embedding 8192 4096 32000 bf16
        embedding 2048 4096 32000 fp32
        """,
    )
    + table(
        "op tokens hidden vocabulary position_rows dtype",
        """
        embedding_positions 1 768 50257 1024 fp16
        embedding_positions 64 768 50257 1024 fp16
        embedding_positions 1024 768 50257 1024 fp16
        embedding_positions 8192 768 50257 1024 fp16
        """,
    ),
}

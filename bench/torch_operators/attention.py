"""Attention: batch, heads, kv_heads, q_len, kv_len, head_dim, causal.

q is [batch, heads, q_len, head_dim]; k and v are [batch, kv_heads, kv_len, head_dim]. A case with a page_size
has its cache a second time, as pages of that many tokens in random order, [pages, page_size, kv_heads,
head_dim], with the table that says which; PyTorch's kernels, which know no pages, read k and v.
"""

from __future__ import annotations

import math
from typing import Dict, List, Tuple

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import hone
from hone._operators.description import MOST_DECODED
from torch_cases import (
    Call,
    Case,
    Family,
    Input,
    Inputs,
    dtype_of,
    normal,
    table,
    wide_dtype,
)
from torch_hone import Ours, Problem

_BACKENDS = {
    "torch flash": "FLASH_ATTENTION",
    "torch cudnn": "CUDNN_ATTENTION",
    "torch efficient": "EFFICIENT_ATTENTION",
    "torch math": "MATH",
}


def _inputs(case: Case) -> Dict[str, Input]:
    batch, dim, dtype = case["batch"], case["head_dim"], dtype_of(case)
    inputs = {"q": normal(batch, case["heads"], case["q_len"], dim, dtype=dtype)}
    for name in ("k", "v"):
        inputs[name] = normal(batch, case["kv_heads"], case["kv_len"], dim, dtype=dtype)
    return {**inputs, **_pages(case)} if "page_size" in case else inputs


def _pages(case: Case) -> Dict[str, Input]:
    batch, size = case["batch"], case["page_size"]
    each = case["kv_len"] // size
    pages = batch * each

    def table(_: Inputs) -> Tensor:
        return torch.randperm(pages, device="cuda").view(batch, each).int()

    def pool(t: Inputs, name: str) -> Tensor:
        tokens = t[name].transpose(1, 2)  # [batch, kv_len, kv_heads, head_dim]
        made = torch.empty(pages, size, *tokens.shape[2:], dtype=tokens.dtype, device="cuda")
        made[t["page_table"].flatten().long()] = tokens.reshape(made.shape)
        return made

    shape, dtype = (pages, size, case["kv_heads"], case["head_dim"]), dtype_of(case)
    return {
        "page_table": Input((batch, each), torch.int32, table),
        "k_pages": Input(shape, dtype, lambda t: pool(t, "k")),
        "v_pages": Input(shape, dtype, lambda t: pool(t, "v")),
    }


def _peers(case: Case) -> Dict[str, Call]:
    """The fused kernels for 16 bits; for float32 the one there is, and the one that is not fused."""
    fp32 = dtype_of(case) == torch.float32
    names = ("torch efficient", "torch math") if fp32 else ("torch flash", "torch cudnn")
    return {name: _sdpa(_BACKENDS[name], case) for name in names}


def _sdpa(backend: str, case: Case) -> Call:
    causal, grouped = case["causal"], case["heads"] != case["kv_heads"]

    def call(inputs: Inputs) -> Tensor:
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return functional.scaled_dot_product_attention(
                inputs["q"], inputs["k"], inputs["v"], is_causal=causal, enable_gqa=grouped
            )

    return call


def _reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
    """The formula, one sequence and one head of the cache at a time: the scores of all need not fit."""
    group = case["heads"] // case["kv_heads"]
    out = torch.empty_like(inputs["q"], dtype=wide_dtype(case))
    for sequence in range(case["batch"]):
        for head in range(case["kv_heads"]):
            queries = slice(head * group, (head + 1) * group)
            k, v = (inputs[name][sequence, head].to(out.dtype) for name in ("k", "v"))
            scores = inputs["q"][sequence, queries].to(out.dtype) @ k.T / math.sqrt(case["head_dim"])
            if case["causal"]:
                scores.masked_fill_(_hidden(case), -math.inf)
            out[sequence, queries] = torch.softmax(scores, -1) @ v
    return (out,)


def _hidden(case: Case) -> Tensor:
    """[q_len, kv_len]: whether a query must not see a key; the last query sees all."""
    q_len, kv_len = case["q_len"], case["kv_len"]
    return torch.ones(q_len, kv_len, dtype=torch.bool, device="cuda").triu_(kv_len - q_len + 1)


def _work(case: Case) -> Tuple[int, int]:
    batch, q_len, kv_len = case["batch"], case["q_len"], case["kv_len"]
    pairs = q_len * kv_len // (2 if case["causal"] and q_len == kv_len else 1)
    elements = 2 * batch * (case["heads"] * q_len + case["kv_heads"] * kv_len) * case["head_dim"]
    return elements * dtype_of(case).itemsize, 4 * batch * case["heads"] * pairs * case["head_dim"]


def _arguments(case: Case, t: Inputs) -> Dict[str, Tensor]:
    """Hone takes [batch, tokens, heads, head_dim]."""
    q = t["q"].transpose(1, 2)
    if "page_size" in case:
        return {"q": q, "k": t["k_pages"], "v": t["v_pages"], "page_table": t["page_table"]}
    return {"q": q, "k": t["k"].transpose(1, 2), "v": t["v"].transpose(1, 2)}


def _problems(case: Case) -> List[Problem]:
    """The problem of a cache where the queries are as few as its kernels take."""
    names = ("causal", "heads", "kv_heads", "head_dim", "batch", "kv_len", "q_len")
    fields = {"dtype": case.get("dtype", "bf16"), **{name: case[name] for name in names}}
    if case["q_len"] > MOST_DECODED:
        return [("attention_prefill", fields)]
    room = 1 << (case["q_len"] - 1).bit_length()
    return [("attention_decode", {**fields, "q_tokens": room, "page_size": case.get("page_size", 0)})]


_FAMILY = Family(
    inputs=_inputs,
    out=lambda case: (case["batch"], case["heads"], case["q_len"], case["head_dim"]),
    peers=_peers,
    hone=Ours(
        hone.Attention,
        arguments=_arguments,
        result=lambda out: out.transpose(1, 2),
        problems=_problems,
    ),
    reference=_reference,
    work=_work,
)
FAMILIES = {"attention": _FAMILY, "attention_paged": _FAMILY}

CASES = {
    "attention": table(
        "op batch heads kv_heads q_len kv_len head_dim causal dtype",
        """
        attention 32 16 16 512 512 128 no bf16
        attention 32 16 16 512 512 128 yes bf16
        attention 8 16 16 2048 2048 128 no bf16
        attention 8 16 16 2048 2048 128 yes bf16
        attention 2 16 16 8192 8192 128 no bf16
        attention 2 16 16 8192 8192 128 yes bf16
        attention 1 16 16 16384 16384 128 no bf16
        attention 1 16 16 16384 16384 128 yes bf16
        attention 1 32 32 512 512 128 yes fp16
        attention 1 32 32 1024 1024 128 yes fp16
        attention 1 32 32 2048 2048 128 yes fp16
        attention 1 32 32 4096 4096 128 yes fp16
        attention 16 32 32 512 512 64 no fp16
        attention 1 32 8 8192 8192 128 yes bf16
        attention 4 8 8 4096 4096 256 yes bf16
        attention 1 12 12 1024 1024 64 yes fp16
        attention 1 32 32 512 512 128 no fp32
        attention 1 32 32 1024 1024 128 no fp32
        attention 1 32 32 2048 2048 128 no fp32
        attention 1 32 32 4096 4096 128 no fp32
        attention 1 32 32 512 512 128 yes fp32
        attention 1 32 32 1024 1024 128 yes fp32
        attention 1 32 32 2048 2048 128 yes fp32
        attention 1 32 32 4096 4096 128 yes fp32
        attention 1 32 8 1 1024 128 no bf16
        attention 1 32 8 1 4096 128 no bf16
        attention 1 32 8 1 32768 128 no bf16
        attention 8 32 8 1 4096 128 no bf16
        attention 32 32 8 1 4096 128 no bf16
        attention 64 32 8 1 8192 128 no bf16
        attention 1 32 32 1 4096 128 no bf16
        attention 16 32 32 1 2048 128 no bf16
        attention 16 64 8 1 8192 128 no bf16
        """,
    )
    + table(
        "op batch heads kv_heads q_len kv_len head_dim causal page_size dtype",
        """
        attention_paged 64 32 8 1 8192 128 no 16 bf16
        """,
    ),
}

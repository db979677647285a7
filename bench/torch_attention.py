"""Attention for bench/torch_families.py: batch, heads, kv_heads, q_len, kv_len, head_dim, causal.

q is [batch, heads, q_len, head_dim]; k and v are [batch, kv_heads, kv_len, head_dim]. A case with a page_size
has its cache a second time, as pages of that many tokens in random order, [pages, page_size, kv_heads,
head_dim], with the table that says which; PyTorch's kernels, which know no pages, read k and v.
"""

from __future__ import annotations

import math
from typing import Dict, Tuple

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from torch_cases import Call, Case, Family, Inputs, dtype_of, randn, wide_dtype

_BACKENDS = {
    "torch flash": SDPBackend.FLASH_ATTENTION,
    "torch cudnn": SDPBackend.CUDNN_ATTENTION,
    "torch efficient": SDPBackend.EFFICIENT_ATTENTION,
    "torch math": SDPBackend.MATH,
}


def _inputs(case: Case) -> Inputs:
    batch, dim, dtype = case["batch"], case["head_dim"], dtype_of(case)
    inputs = {"q": randn(batch, case["heads"], case["q_len"], dim, dtype=dtype)}
    for name in ("k", "v"):
        inputs[name] = randn(batch, case["kv_heads"], case["kv_len"], dim, dtype=dtype)
    return {**inputs, **_pages(case, inputs)} if "page_size" in case else inputs


def _pages(case: Case, inputs: Inputs) -> Inputs:
    batch, size = case["batch"], case["page_size"]
    each = case["kv_len"] // size
    table = torch.randperm(batch * each, device="cuda")
    found = {"page_table": table.view(batch, each).int()}
    for name in ("k", "v"):
        tokens = inputs[name].transpose(1, 2)  # [batch, kv_len, kv_heads, head_dim]
        pool = torch.empty(batch * each, size, *tokens.shape[2:], dtype=tokens.dtype, device="cuda")
        pool[table] = tokens.reshape(pool.shape)
        found[f"{name}_pages"] = pool
    return found


def _peers(case: Case) -> Dict[str, Call]:
    """The fused kernels for 16 bits; for float32 the one there is, and the one that is not fused."""
    fp32 = dtype_of(case) == torch.float32
    names = ("torch efficient", "torch math") if fp32 else ("torch flash", "torch cudnn")
    return {name: _sdpa(_BACKENDS[name], case) for name in names}


def _sdpa(backend: SDPBackend, case: Case) -> Call:
    causal, grouped = case["causal"], case["heads"] != case["kv_heads"]

    def call(inputs: Inputs) -> Tensor:
        with sdpa_kernel(backend):
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


FAMILY = Family(_inputs, _peers, _reference, _work)

"""Draws of tokens: rows, vocabulary. sample_greedy takes the likeliest token, sample draws at a temperature,
sample_filters from what top-k and top-p leave. What is drawn differs from way to way; so a way is wrong by
its share of tokens that could not have been drawn.
"""

from __future__ import annotations

from typing import Any, Dict, Tuple

import torch
from torch import Tensor

import hone
from torch_cases import (
    Call,
    Case,
    Family,
    Input,
    Inputs,
    counted,
    dtype_of,
    eager_and_compiled,
    filled,
    normal,
    table,
)
from torch_hone import Ours

TEMPERATURE, TOP_K, TOP_P = 0.8, 1000, 0.9


def _inputs(case: Case) -> Dict[str, Input]:
    rows = case["rows"]
    inputs = {
        "logits": normal(rows, case["vocabulary"], dtype=dtype_of(case), deviation=2.0),
        "temperature": filled(rows, value=0.0 if case["op"] == "sample_greedy" else TEMPERATURE),
        "seed": counted(rows),
        "counter": filled(rows, value=1, dtype=torch.int64),
    }
    if case["op"] == "sample_filters":
        inputs["top_k"] = filled(rows, value=TOP_K, dtype=torch.int32)
        inputs["top_p"] = filled(rows, value=TOP_P)
        inputs["min_p"] = filled(rows, value=0.0)
    return inputs


def _greedy(logits: Tensor) -> Tensor:
    return logits.argmax(-1)


def _draw(logits: Tensor, temperature: Tensor) -> Tensor:
    """torch.multinomial's algorithm without its checks, which read back from the GPU."""
    probabilities = torch.softmax(logits.float() / temperature[:, None], -1)
    return (probabilities / torch.empty_like(probabilities).exponential_(1.0)).argmax(-1)


def _draw_filtered(logits: Tensor, temperature: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    """As engines write it: sorted, cut off, put back."""
    logits, order = (logits.float() / temperature[:, None]).sort(-1)
    least = logits.gather(-1, (logits.shape[-1] - top_k.long())[:, None])
    logits = logits.masked_fill(logits < least, -torch.inf)
    below = torch.softmax(logits, -1).cumsum(-1) <= 1 - top_p[:, None]
    below[:, -1] = False
    logits = logits.masked_fill(below, -torch.inf)
    logits = torch.empty_like(logits).scatter_(-1, order, logits)
    probabilities = torch.softmax(logits, -1)
    return (probabilities / torch.empty_like(probabilities).exponential_(1.0)).argmax(-1)


def _peers(case: Case) -> Dict[str, Call]:
    if case["op"] == "sample_greedy":
        return eager_and_compiled(_greedy, "logits")
    if case["op"] == "sample":
        return eager_and_compiled(_draw, "logits", "temperature")
    return eager_and_compiled(_draw_filtered, "logits", "temperature", "top_k", "top_p")


def _reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
    """[rows, vocabulary]: whether a token may be drawn; near top-p's edge either is right."""
    logits = inputs["logits"].double()
    if case["op"] == "sample_greedy":
        return (logits == logits.amax(-1, keepdim=True),)
    if case["op"] == "sample":
        return (torch.ones_like(logits, dtype=torch.bool),)
    kept = logits >= logits.topk(TOP_K, -1).values[:, -1:]
    logits = (logits / TEMPERATURE).masked_fill(~kept, -torch.inf)
    probabilities, order = torch.softmax(logits, -1).sort(-1, descending=True)
    before = probabilities.cumsum(-1) - probabilities
    least = probabilities.masked_fill(before > TOP_P + 1e-3, 1.0).amin(-1, keepdim=True)
    allowed = torch.zeros_like(kept).scatter_(-1, order, probabilities >= least)
    return (allowed & kept,)


def _share_outside(outputs: Any, reference: Tuple[Tensor, ...]) -> float:
    tokens, allowed = outputs.long(), reference[0]
    inside = (tokens >= 0) & (tokens < allowed.shape[-1])
    drawn = allowed.gather(-1, tokens.clamp(0, allowed.shape[-1] - 1)[:, None])[:, 0]
    return 1.0 - (inside & drawn).float().mean().item()


def _work(case: Case) -> Tuple[int, int]:
    elements = case["rows"] * case["vocabulary"]
    return elements * dtype_of(case).itemsize, elements


_FAMILY = Family(
    inputs=_inputs,
    out=lambda case: (case["rows"],),
    peers=_peers,
    hone=Ours(hone.Sample),
    reference=_reference,
    work=_work,
    error=_share_outside,
)
FAMILIES = {op: _FAMILY for op in ("sample_greedy", "sample", "sample_filters")}

_SIZES = table(
    "rows vocabulary dtype",
    """
    1 128256 bf16
    4 128256 bf16
    16 128256 bf16
    64 128256 bf16
    256 128256 bf16
    1 32000 bf16
    64 152064 bf16
    64 128256 fp32
    64 50257 fp16
    """,
)
CASES = {"sample": [{"op": op, **size} for op in FAMILIES for size in _SIZES]}

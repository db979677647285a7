"""Look-ups and draws of tokens for bench/torch_families.py: embedding (tokens, hidden, vocabulary; with
position_rows where positions are added) and sample (rows, vocabulary).

sample_greedy takes the likeliest token, sample draws at a temperature, sample_filters from what top-k and
top-p leave. What is drawn differs from way to way; so a way is wrong by its share of tokens that could not
have been drawn.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import torch
from torch import Tensor
from torch.nn import functional

from torch_cases import Call, Case, Family, Inputs, compiled, dtype_of, randn, wide_dtype

TEMPERATURE, TOP_K, TOP_P = 0.8, 1000, 0.9

# Embedding


def _ids(count: int, rows: int) -> Tensor:
    return torch.randint(rows, (count,), device="cuda")


def _embedding_inputs(case: Case) -> Inputs:
    tokens, hidden, dtype = case["tokens"], case["hidden"], dtype_of(case)
    inputs = {
        "ids": _ids(tokens, case["vocabulary"]),
        "table": randn(case["vocabulary"], hidden, dtype=dtype),
    }
    if "position_rows" in case:
        inputs["position_ids"] = _ids(tokens, case["position_rows"])
        inputs["position_table"] = randn(case["position_rows"], hidden, dtype=dtype)
    return inputs


def _embed(ids: Tensor, table: Tensor) -> Tensor:
    return functional.embedding(ids, table)


def _embed_with_positions(
    ids: Tensor, table: Tensor, position_ids: Tensor, position_table: Tensor
) -> Tensor:
    return functional.embedding(ids, table) + functional.embedding(position_ids, position_table)


def _embedding_peers(case: Case) -> Dict[str, Call]:
    if "position_rows" in case:
        return _ways(_embed_with_positions, "ids", "table", "position_ids", "position_table")
    return _ways(_embed, "ids", "table")


def _ways(function: Callable[..., Tensor], *names: str) -> Dict[str, Call]:
    return {
        "torch eager": lambda inputs: function(*(inputs[name] for name in names)),
        "inductor": compiled(function, *names),
    }


def _embedding_reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
    out = inputs["table"][inputs["ids"]].to(wide_dtype(case))
    if "position_rows" in case:
        out += inputs["position_table"][inputs["position_ids"]].to(out.dtype)
    return (out,)


def _embedding_work(case: Case) -> Tuple[int, int]:
    elements, with_positions = case["tokens"] * case["hidden"], "position_rows" in case
    return (2 + with_positions) * elements * dtype_of(case).itemsize, with_positions * elements


# Sample


def _sample_inputs(case: Case) -> Inputs:
    rows = case["rows"]

    def every(value: float, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.full((rows,), value, dtype=dtype, device="cuda")

    inputs = {
        "logits": 2 * randn(rows, case["vocabulary"], dtype=dtype_of(case)),
        "temperature": every(0.0 if case["op"] == "sample_greedy" else TEMPERATURE),
        "seed": torch.arange(rows, device="cuda"),
        "counter": every(1, torch.int64),
    }
    if case["op"] == "sample_filters":
        inputs.update(top_k=every(TOP_K, torch.int32), top_p=every(TOP_P), min_p=every(0.0))
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


def _sample_peers(case: Case) -> Dict[str, Call]:
    if case["op"] == "sample_greedy":
        return _ways(_greedy, "logits")
    if case["op"] == "sample":
        return _ways(_draw, "logits", "temperature")
    return _ways(_draw_filtered, "logits", "temperature", "top_k", "top_p")


def _sample_reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
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


def _sample_work(case: Case) -> Tuple[int, int]:
    elements = case["rows"] * case["vocabulary"]
    return elements * dtype_of(case).itemsize, elements


_EMBEDDING = Family(_embedding_inputs, _embedding_peers, _embedding_reference, _embedding_work)
_SAMPLE = Family(_sample_inputs, _sample_peers, _sample_reference, _sample_work, _share_outside)

FAMILIES: Dict[str, Family] = {
    "embedding": _EMBEDDING,
    "embedding_positions": _EMBEDDING,
    "sample": _SAMPLE,
    "sample_greedy": _SAMPLE,
    "sample_filters": _SAMPLE,
}

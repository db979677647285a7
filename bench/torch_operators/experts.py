"""Mixtures of experts: tokens, in, out, experts, top_k. expert_up is the first half of a layer, gated by SiLU, whose rows
are gathered; expert_down the second, whose results are weighted and added up; expert_routing what comes before both.
PyTorch's way of a half is a loop of cuBLAS calls over the experts that have rows, whose numbers the host knows.
expert_up_w4a16, expert_down_fp8 and so on are the halves with weights of codes, w4a16 in groups of 128 and fp8 with a
scale a row, beside the same loop over the weights that were quantized.
"""

from __future__ import annotations

import functools
import random
from typing import Dict, List, Tuple

import torch
from torch import Tensor
from torch.nn import functional

import hone
from hone._operators.stored import StoredWeight
from hone._weights import packing
from torch_cases import (
    Call,
    Case,
    Family,
    Input,
    Inputs,
    dtype_of,
    eager_and_compiled,
    normal,
    table,
    wide,
)
from torch_hone import Ours

Parts = List[Tuple[int, int, int]]  # an expert that has rows, its first place, and the end


@functools.lru_cache(maxsize=None)
def _pairs_by_expert(tokens: int, experts: int, top_k: int) -> Tuple[Tuple[int, ...], ...]:
    """Of each expert, for tokens that draw theirs at random; the same in every run."""
    draw = random.Random(tokens * 1000 + experts)
    pairs: List[List[int]] = [[] for _ in range(experts)]
    for token in range(tokens):
        for slot, expert in enumerate(draw.sample(range(experts), top_k)):
            pairs[expert].append(token * top_k + slot)
    return tuple(map(tuple, pairs))


def _pairs(case: Case) -> Tuple[Tuple[int, ...], ...]:
    return _pairs_by_expert(case["tokens"], case["experts"], case["top_k"])


def _starts(case: Case) -> List[int]:
    starts = [0]
    for mine in _pairs(case):
        starts.append(starts[-1] + len(mine))
    return starts


def _parts(case: Case) -> Parts:
    starts = _starts(case)
    return [(e, first, end) for e, (first, end) in enumerate(zip(starts, starts[1:])) if first < end]


def _numbers(case: Case, shape: Tuple[int, ...], values: List[int]) -> Input:
    return Input(
        shape, torch.int32, lambda _: torch.tensor(values, dtype=torch.int32, device="cuda").view(*shape)
    )


def _is_up(case: Case) -> bool:
    return case["op"].startswith("expert_up")


def _half_inputs(case: Case) -> Dict[str, Input]:
    dtype, experts, columns, out = dtype_of(case), case["experts"], case["in"], case["out"]
    flat = [pair for mine in _pairs(case) for pair in mine]
    is_up = _is_up(case)
    x = (case["tokens"], columns) if is_up else (case["tokens"], case["top_k"], columns)
    inputs = {
        "x": normal(*x, dtype=dtype),
        "starts": _numbers(case, (experts + 1,), _starts(case)),
        "rows": _numbers(case, (case["tokens"], case["top_k"]), flat),
    }
    deviation = columns**-0.5
    if is_up:  # gate and up are once in memory, for those who read them at once
        inputs["gate_up"] = normal(experts, 2 * out, columns, dtype=dtype, deviation=deviation)
    else:
        inputs["weight"] = normal(experts, out, columns, dtype=dtype, deviation=deviation)
        shares = (case["tokens"], case["top_k"])
        inputs["routing_weights"] = Input(
            shares, torch.float32, lambda _: torch.rand(*shares, device="cuda")
        )
    return inputs


def _half_kept(case: Case) -> Dict[str, Input]:
    if case["op"] != "expert_up":
        return {}
    shape, out = (case["experts"], case["out"], case["in"]), case["out"]
    return {
        "hone_gate": Input(shape, dtype_of(case), lambda t: t["gate_up"][:, :out].contiguous()),
        "hone_up": Input(shape, dtype_of(case), lambda t: t["gate_up"][:, out:].contiguous()),
    }


def _up(case: Case, parts: Parts, inputs: Inputs) -> Tensor:
    x = inputs["x"][inputs["rows"].flatten().long() // case["top_k"]]
    found = []
    for expert, first, end in parts:
        gate, up = functional.linear(x[first:end], inputs["gate_up"][expert]).chunk(2, dim=-1)
        found.append(functional.silu(gate) * up)
    return torch.cat(found).view(case["tokens"], case["top_k"], case["out"])


def _down(case: Case, parts: Parts, inputs: Inputs) -> Tensor:
    x = inputs["x"].view(-1, case["in"])
    found = torch.cat([functional.linear(x[first:end], inputs["weight"][expert]) for expert, first, end in parts])
    pairs = inputs["rows"].flatten().long()
    shares = inputs["routing_weights"].flatten()[pairs].to(found.dtype)
    out = found.new_zeros(case["tokens"], case["out"])
    return out.index_add_(0, pairs // case["top_k"], found * shares[:, None])


def _half(case: Case, inputs: Inputs) -> Tensor:
    return (_up if _is_up(case) else _down)(case, _parts(case), inputs)


def _half_peers(case: Case) -> Dict[str, Call]:
    return {"cuBLAS loop": functools.partial(_half, case)}


def _half_reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
    numbers = {name: inputs[name] for name in ("rows", "starts")}
    return (_half(case, {**wide(case, inputs), **numbers}),)


def _half_work(case: Case) -> Tuple[int, int]:
    places, columns, out = case["tokens"] * case["top_k"], case["in"], case["out"]
    is_up = _is_up(case)
    weights = len(_parts(case)) * (2 if is_up else 1) * columns * out
    x, results = (case["tokens"], places) if is_up else (places, case["tokens"])
    moved = weights + x * columns + results * out
    return moved * dtype_of(case).itemsize, 2 * places * (2 if is_up else 1) * columns * out


def _half_out(case: Case) -> Tuple[int, ...]:
    if not _is_up(case):
        return case["tokens"], case["out"]
    return case["tokens"], case["top_k"], case["out"]


# With weights of codes. An expert's rows are whole blocks of codes in all cases, so those of all experts are codes of
# one weight [experts * out, in].


def _format(case: Case) -> str:
    return case["op"].rpartition("_")[2]


def _stored(case: Case, rows: int) -> StoredWeight:
    return StoredWeight(rows, case["in"], _format(case), case.get("group", 0))


def _codes(case: Case, rows: Tensor) -> packing.Packed:
    return hone.quantize_weights(rows, _format(case), case.get("group", 0), search=False)


def _coded_parts(case: Case) -> Dict[str, str]:
    """Names of Hone's weights, and where their rows stand."""
    return {"gate": "gate_up", "up": "gate_up"} if _is_up(case) else {"weight": "weight"}


def _rows_of(case: Case, name: str, t: Inputs) -> Tensor:
    """[experts * out, in]."""
    whole, out = t[_coded_parts(case)[name]], case["out"]
    part = whole if name == "weight" else whole[:, :out] if name == "gate" else whole[:, out:]
    return part.reshape(-1, case["in"])


def _coded_kept(case: Case) -> Dict[str, Input]:
    experts, kept = case["experts"], {}
    of_one = _stored(case, case["out"])
    codes_dtype = torch.float8_e4m3fn if _format(case) == "fp8" else torch.uint8
    scales_dtype = torch.float32 if _format(case) == "fp8" else dtype_of(case)

    def made(name: str, part: int, shape: Tuple[int, ...], t: Inputs) -> Tensor:
        return _codes(case, _rows_of(case, name, t))[part].view(experts, *shape)

    for name in _coded_parts(case):
        for part, (ending, shape, dtype) in enumerate(
            (("", of_one.codes_shape, codes_dtype), ("_scales", of_one.scales_shape, scales_dtype))
        ):
            make = functools.partial(made, name, part, shape)
            kept[f"hone_{name}{ending}"] = Input((experts, *shape), dtype, make)
    return kept


def _coded_names(case: Case) -> Dict[str, str]:
    if _is_up(case):
        return {"weight": "hone_gate", "scales": "hone_gate_scales", "up": "hone_up", "up_scales": "hone_up_scales"}
    return {"weight": "hone_weight", "scales": "hone_weight_scales"}


def _coded_reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
    """On the numbers that the codes stand for; x is not rounded to codes."""
    found = {name: inputs[name] for name in inputs if not name.startswith("hone_")}
    for name, whole in _coded_parts(case).items():
        rows = _rows_of(case, name, inputs)
        stored = _stored(case, rows.shape[0])
        values = packing.dequantize(_codes(case, rows), stored, torch.float32).view(case["experts"], -1, case["in"])
        found[whole] = torch.cat((found[whole], values), 1) if name == "up" else values
    numbers = {name: inputs[name] for name in ("rows", "starts")}
    return (_half(case, {**wide(case, found), **numbers}),)


def _coded_work(case: Case) -> Tuple[int, int]:
    moved, flops = _half_work(case)
    weights = len(_parts(case)) * (2 if _is_up(case) else 1) * case["in"] * case["out"]
    of_16_bits = weights * dtype_of(case).itemsize
    bits = 8 if _format(case) == "fp8" else 4 + 16 / case["group"]
    return int(moved - of_16_bits + weights * bits / 8), flops


def _routing_inputs(case: Case) -> Dict[str, Input]:
    return {"logits": normal(case["tokens"], case["experts"], dtype=dtype_of(case), deviation=2.0)}


def _route(logits: Tensor, top_k: int) -> Tuple[Tensor, ...]:
    values, chosen = logits.float().topk(top_k, -1)
    chosen = chosen.flatten()
    starts = torch.searchsorted(
        chosen.sort().values, torch.arange(logits.shape[-1] + 1, device=logits.device), out_int32=True
    )
    return values.softmax(-1), starts, chosen.argsort(stable=True).to(torch.int32)


def _routing_peers(case: Case) -> Dict[str, Call]:
    return eager_and_compiled(functools.partial(_route, top_k=case["top_k"]), "logits")


def _routing_reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
    return (inputs["logits"].double().topk(case["top_k"], -1).values.softmax(-1),)


def _weights_error(found: Tuple[Tensor, ...], reference: Tuple[Tensor, ...]) -> float:
    """Where logits are equal, PyTorch may choose others: weights alone are held against the reference."""
    return ((found[0].double() - reference[0]).norm() / reference[0].norm()).item()


def _routing_work(case: Case) -> Tuple[int, int]:
    places, logits = case["tokens"] * case["top_k"], case["tokens"] * case["experts"]
    return logits * dtype_of(case).itemsize + 8 * places, 2 * logits


def _coded(op: str) -> Family:
    is_up = op.startswith("expert_up")
    halves = {"activation": "silu", "gated": True, "gather": True} if is_up else {"combine": True}
    return Family(
        inputs=_half_inputs,
        out=_half_out,
        peers=_half_peers,
        hone=Ours(
            hone.QuantizedExpertLinear,
            fields=lambda case: {**halves, "format": _format(case)},
            names=_coded_names,
            kept=_coded_kept,
        ),
        reference=_coded_reference,
        work=_coded_work,
    )


_CODED = [f"expert_{half}_{format}" for half in ("up", "down") for format in ("w4a16", "fp8")]
FAMILIES = {
    **{op: _coded(op) for op in _CODED},
    "expert_up": Family(
        inputs=_half_inputs,
        out=_half_out,
        peers=_half_peers,
        hone=Ours(
            hone.ExpertLinear,
            fields=lambda _: {"activation": "silu", "gated": True, "gather": True},
            names=lambda _: {"weight": "hone_gate", "up": "hone_up"},
            kept=_half_kept,
        ),
        reference=_half_reference,
        work=_half_work,
    ),
    "expert_down": Family(
        inputs=_half_inputs,
        out=_half_out,
        peers=_half_peers,
        hone=Ours(hone.ExpertLinear, fields=lambda _: {"combine": True}),
        reference=_half_reference,
        work=_half_work,
    ),
    "expert_routing": Family(
        inputs=_routing_inputs,
        out=lambda case: (case["tokens"], case["top_k"]),
        peers=_routing_peers,
        hone=Ours(hone.ExpertRouting, fields=lambda _: {"renormalize": True}),
        reference=_routing_reference,
        work=_routing_work,
        error=_weights_error,
    ),
}

_TOKENS = (1, 4, 16, 64, 256, 1024, 4096)
_MODELS = table(  # of Mixtral 8x7B, Qwen3-30B-A3B and gpt-oss-20b
    "experts top_k hidden intermediate",
    """
    8 2 4096 14336
    128 8 2048 768
    32 4 2880 2880
    """,
)


def _sized(op: str, model: Case, tokens: int) -> Case:
    case = {"op": op, "tokens": tokens, "experts": model["experts"], "top_k": model["top_k"], "dtype": "bf16"}
    if op.startswith("expert_up"):
        case.update({"in": model["hidden"], "out": model["intermediate"]})
    elif op.startswith("expert_down"):
        case.update({"in": model["intermediate"], "out": model["hidden"]})
    if op.endswith("w4a16"):
        case["group"] = 128
    return case


def _has_groups(case: Case) -> bool:
    return "group" not in case or case["in"] % 2048 == 0


CASES = {
    "experts": list(
        filter(_has_groups, (_sized(op, model, tokens) for model in _MODELS for op in FAMILIES for tokens in _TOKENS))
    ),
}

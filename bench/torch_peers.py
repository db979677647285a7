"""Hone as a peer of PyTorch's kernels, in one process: its prepared operators, on the current stream.

`peers(op, case, inputs)` returns callables by name; each takes one input set (a dict of tensors) and returns
the output tensors. bench/compare_torch.py calls it, and any program that takes such a plugin. A new family is
one function in PEERS. Winners come from the usual cache; a case without an exact one is named on stderr, with
the command that would tune it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))  # where hone is not installed

import torch  # noqa: E402

import hone  # noqa: E402

Call = Callable[[Dict[str, Any]], Any]
Problems = List[Tuple[str, Dict[str, Any]]]

EPSILON = 1e-5


def peers(op: str, case: Dict[str, Any], inputs: Dict[str, Any]) -> Dict[str, Call]:
    """{"hone": callable} for an operator that Hone has, else {}. Prepares at the first call."""
    make = PEERS.get(op)
    if make is None:
        return {}
    made: List[Call] = []

    def call(inputs: Dict[str, Any]) -> Any:
        if not made:
            made.append(make(case, inputs))
        return made[0](inputs)

    return {"hone": call}


def _prepare(description: Any, rows: int) -> Any:
    """The operator; says when a kernel of it for `rows` rows is not a winner of this very problem."""
    operator = hone.prepare(description)
    report = operator.report()
    halves = [report] if "buckets" in report else [report["first"], report["second"]]
    for bucket in (bucket for half in halves for bucket in half["buckets"]):
        first, last = list(bucket["sizes"].values())[-1]
        if first <= rows <= last and bucket["origin"] != "exact":
            hint = bucket.get("tune_command") or "no command would tune it"
            print(f"{description}, {rows} rows: {bucket['origin']}, not exact; {hint}", file=sys.stderr)
    return operator


def _norm(case: Dict[str, Any], _: Any) -> Call:
    kind = hone.LayerNorm if case["op"].startswith("layernorm") else hone.RmsNorm
    norm = _prepare(
        kind(
            case["hidden"],
            max_rows=case["rows"],
            dtype=case.get("dtype", "bf16"),
            residual=case["op"].endswith("residual"),
        ),
        case["rows"],
    )
    return lambda t: norm(t["x"], t["weight"], t.get("residual"), t.get("bias"), epsilon=EPSILON)


def _norm_backward(case: Dict[str, Any], _: Any) -> Call:
    backward = _prepare(
        hone.RmsNormBackward(case["hidden"], max_rows=case["rows"], dtype=case.get("dtype", "bf16")),
        case["rows"],
    )
    return lambda t: backward(t["dy"], t["x"], t["weight"], epsilon=EPSILON)


def _workspace(operator: Any, tokens: int, likeness: Any) -> Any:
    """Taken once: calls that follow one another on a stream share it, those of a captured graph as well."""
    size = operator.workspace_bytes(tokens)
    return likeness.new_empty((size,), dtype=torch.uint8) if size else None


def _linear(case: Dict[str, Any], inputs: Dict[str, Any]) -> Call:
    tokens = case["tokens"]
    description = hone.Linear(
        case["in"], case["out"], max_tokens=tokens, dtype=case.get("dtype", "bf16")
    )
    linear = _prepare(description, tokens)
    workspace = _workspace(linear, tokens, inputs["x"])
    return lambda t: linear(t["x"], t["w"], workspace=workspace)


def _ffn(case: Dict[str, Any], inputs: Dict[str, Any]) -> Call:
    gated, tokens = case["op"] == "ffn_swiglu", case["tokens"]
    description = hone.FusedFfn(
        case["hidden"],
        case["intermediate"],
        max_tokens=tokens,
        dtype=case.get("dtype", "bf16"),
        activation="silu" if gated else "gelu_tanh",
        gated=gated,
        bias=not gated,
    )
    ffn = _prepare(description, tokens)
    workspace = _workspace(ffn, tokens, inputs["x"])
    return lambda t: ffn(
        t["x"], t.get("gate"), t["up"], t["down"], t.get("up_bias"), t.get("down_bias"), workspace=workspace
    )


# From a case and one of its input sets.
PEERS: Dict[str, Callable[[Dict[str, Any], Dict[str, Any]], Call]] = {
    "rmsnorm": _norm,
    "rmsnorm_residual": _norm,
    "layernorm": _norm,
    "layernorm_residual": _norm,
    "rmsnorm_backward": _norm_backward,
    "linear": _linear,
    "ffn_swiglu": _ffn,
    "ffn_gelu": _ffn,
}


def tune(cases: List[Dict[str, Any]]) -> None:
    """Tunes what the cases call, in child processes: before anything is prepared here."""
    found: Dict[tuple, set] = {}
    for case in cases:
        for family, fields in TUNE_FIELDS.get(case["op"], lambda _: [])(case):
            rows = case["rows"] if "rows" in case else case["tokens"]
            found.setdefault((family, tuple(fields.items())), set()).add(rows)
    for (family, fields), rows in found.items():
        hone.tune(op=family, fields=dict(fields), tokens=sorted(rows))


def _norm_fields(case: Dict[str, Any]) -> Problems:
    family = case["op"].replace("_residual", "")
    fields = {"dtype": case.get("dtype", "bf16"), "hidden": case["hidden"]}
    return [(family, {**fields, "residual": case["op"].endswith("residual")})]


def _linear_fields(case: Dict[str, Any]) -> Problems:
    return [("linear", {"dtype": case.get("dtype", "bf16"), "in": case["in"], "out": case["out"]})]


def _ffn_fields(case: Dict[str, Any]) -> Problems:
    """The two halves."""
    gated, hidden, intermediate = case["op"] == "ffn_swiglu", case["hidden"], case["intermediate"]
    common = {"dtype": case.get("dtype", "bf16"), "bias": not gated}
    activation = "silu" if gated else "gelu_tanh"
    return [
        ("linear", {**common, "activation": activation, "gated": gated, "in": hidden, "out": intermediate}),
        ("linear", {**common, "in": intermediate, "out": hidden}),
    ]


# The problems of `hone tune --op` behind a case: each the family's name and its static fields.
TUNE_FIELDS: Dict[str, Callable[[Dict[str, Any]], Problems]] = {
    **{op: _norm_fields for op in PEERS if "norm" in op},
    "linear": _linear_fields,
    "ffn_swiglu": _ffn_fields,
    "ffn_gelu": _ffn_fields,
}

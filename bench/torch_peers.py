"""Hone as a peer of PyTorch's kernels, in one process: its prepared operators, on the current stream.

`peers(op, case, inputs)` returns callables by name; each takes one input set (a dict of tensors) and returns
the output tensors. bench/compare_torch.py calls it, and any program that takes such a plugin. A new family is
one function in PEERS. Winners come from the usual cache; a case without an exact one is named on stderr, with
the command that would tune it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))  # where hone is not installed

import hone  # noqa: E402

Call = Callable[[Dict[str, Any]], Any]

EPSILON = 1e-5


def peers(op: str, case: Dict[str, Any], inputs: Dict[str, Any]) -> Dict[str, Call]:
    """{"hone": callable} for an operator that Hone has, else {}. Prepares at the first call."""
    make = PEERS.get(op)
    if make is None:
        return {}
    made: List[Call] = []

    def call(inputs: Dict[str, Any]) -> Any:
        if not made:
            made.append(make(case))
        return made[0](inputs)

    return {"hone": call}


def _prepare(description: Any, rows: int) -> Any:
    """The operator; says when its kernel for `rows` rows is not a winner of this very problem."""
    operator = hone.prepare(description)
    for bucket in operator.report()["buckets"]:
        if bucket["first"] <= rows <= bucket["last"] and bucket["origin"] != "exact":
            hint = bucket.get("tune_command") or "no command would tune it"
            print(f"{description}, {rows} rows: {bucket['origin']}, not exact; {hint}", file=sys.stderr)
    return operator


def _norm(case: Dict[str, Any]) -> Call:
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


def _norm_backward(case: Dict[str, Any]) -> Call:
    backward = _prepare(
        hone.RmsNormBackward(case["hidden"], max_rows=case["rows"], dtype=case.get("dtype", "bf16")),
        case["rows"],
    )
    return lambda t: backward(t["dy"], t["x"], t["weight"], epsilon=EPSILON)


PEERS: Dict[str, Callable[[Dict[str, Any]], Call]] = {
    "rmsnorm": _norm,
    "rmsnorm_residual": _norm,
    "layernorm": _norm,
    "layernorm_residual": _norm,
    "rmsnorm_backward": _norm_backward,
}


def tune(cases: List[Dict[str, Any]]) -> None:
    """Tunes what the cases call, in child processes: before anything is prepared here."""
    found: Dict[tuple, set] = {}
    for case in cases:
        if case["op"] in TUNE_FIELDS:
            family, fields = TUNE_FIELDS[case["op"]](case)
            found.setdefault((family, tuple(fields.items())), set()).add(case["rows"])
    for (family, fields), rows in found.items():
        hone.tune(op=family, fields=dict(fields), tokens=sorted(rows))


def _norm_fields(case: Dict[str, Any]) -> Any:
    family = case["op"].replace("_residual", "")
    fields = {"dtype": case.get("dtype", "bf16"), "hidden": case["hidden"]}
    return family, {**fields, "residual": case["op"].endswith("residual")}


# The problem of `hone tune --op` behind a case: the family's name and its static fields.
TUNE_FIELDS: Dict[str, Callable[[Dict[str, Any]], Any]] = {op: _norm_fields for op in PEERS}

"""Turns the results of bench/compare_torch.py into tables of docs/performance.md, without GPU and PyTorch.

A table stands between `<!-- compare:NAME:begin -->` and `<!-- compare:NAME:end -->`; NAME is that of the
cases, and stands in the results. Peers that PyTorch does not bring (FlashAttention 3, Marlin, DeepGEMM) were
measured by themselves, on another GPU of the same name: their times stand in measured_elsewhere.json beside
this file, get columns of their own with a mark, and count among the others.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Dict, List, Optional

HONE = "hone"
# From so many operations a byte on, a rate is given in operations.
FLOPS_PER_BYTE = 100
# {"device", "times": [{"peer", "us", "case"}]}: microseconds of a call, of cases that have these entries.
ELSEWHERE = Path(__file__).resolve().parent / "measured_elsewhere.json"
MARK = " \\*"


def update(page: Path, results: Dict[str, Any]) -> None:
    """Writes the table between its markers. Raises ValueError where the page has none."""
    begin, end = (f"<!-- compare:{results['name']}:{word} -->" for word in ("begin", "end"))
    text = page.read_text()
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{page} has to have one line {begin} and one line {end}")
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    page.write_text(f"{before}{begin}\n{render(results)}{end}{after}")


def render(results: Dict[str, Any]) -> str:
    """Where and when, a table with a row for each case, and the geometric mean."""
    rows = with_elsewhere(results)
    others = _others(rows)
    header = ["operator", "size", "dtype", "Hone us", "rate"]
    header += [*(f"{name} us" for name in others), "best other / Hone"]
    lines = [_where(results), "", _line(header), "|" + "---|" * len(header)]
    lines += [_line(_cells(row, others)) for row in rows]
    ratios = [ratio for ratio in map(_ratio, rows) if ratio is not None]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines += ["", f"Geometric mean of the last column: {mean:.2f}."]
    if any(name.endswith(MARK) for name in others):
        device = results["machine"]["device"]
        lines += ["", f"{MARK.strip()} Built from source and measured on another {device}, not in this run."]
    return "\n".join(lines) + "\n"


def with_elsewhere(results: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The rows, each with the peers of its case that were measured elsewhere on such a GPU."""
    known = json.loads(ELSEWHERE.read_text())
    if known["device"] != results["machine"]["device"]:
        return results["results"]
    return [{**row, "peers": row["peers"] + _elsewhere(row["case"], known["times"])} for row in results["results"]]


def _elsewhere(case: Dict[str, Any], times: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    return [
        {"name": time["peer"] + MARK, "us": time["us"]}
        for time in times
        if time["case"].items() <= case.items()
    ]


def _where(results: Dict[str, Any]) -> str:
    machine = results["machine"]
    names = {"driver": "driver", "torch": "PyTorch", "cuda": "CUDA", "cudnn": "cuDNN"}
    versions = [f"{name} {machine[key]}" for key, name in names.items() if machine.get(key)]
    return f"{', '.join([machine['device'], *versions])}, {results['date'][:10]}."


def _others(rows: List[Dict[str, Any]]) -> List[str]:
    """The peers beside Hone, in the order of their first appearance."""
    return list(dict.fromkeys(peer["name"] for row in rows for peer in row["peers"] if peer["name"] != HONE))


def _time(row: Dict[str, Any], name: str) -> Optional[float]:
    """None for a peer that the case does not have, or that failed."""
    return next((peer.get("us") for peer in row["peers"] if peer["name"] == name), None)


def _ratio(row: Dict[str, Any]) -> Optional[float]:
    ours = _time(row, HONE)
    theirs = [peer["us"] for peer in row["peers"] if peer["name"] != HONE and "us" in peer]
    return min(theirs) / ours if ours and theirs else None


def _cells(row: Dict[str, Any], others: List[str]) -> List[str]:
    case = row["case"]
    ratio = _ratio(row)
    return [
        case["op"],
        _size(case),
        case.get("dtype", "bf16"),
        _microseconds(_time(row, HONE)),
        _rate(row),
        *(_microseconds(_time(row, name)) for name in others),
        "" if ratio is None else f"{ratio:.3f}",
    ]


def _size(case: Dict[str, Any]) -> str:
    if "head_dim" not in case:
        return " x ".join(str(value) for key, value in case.items() if key not in ("op", "dtype"))
    words = "batch {batch}, heads {heads}/{kv_heads} of {head_dim}, {q_len} x {kv_len} tokens".format(**case)
    words += ", causal" if case["causal"] else ""
    return words + (f", pages of {case['page_size']}" if "page_size" in case else "")


def _rate(row: Dict[str, Any]) -> str:
    us = _time(row, HONE)
    if not us:
        return ""
    if row["flops"] >= FLOPS_PER_BYTE * row["bytes"]:
        return f"{row['flops'] / us * 1e-6:.0f} TFLOP/s"
    return f"{row['bytes'] / us * 1e-6:.2f} TB/s"


def _microseconds(us: Optional[float]) -> str:
    return "" if us is None else f"{us:.2f}"


def _line(cells: List[str]) -> str:
    return f"| {' | '.join(cells)} |"

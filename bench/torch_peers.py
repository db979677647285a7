"""Hone as a peer of PyTorch's kernels, in one process: its prepared operators, on the current stream.

`peers(op, case, inputs)` returns callables by name; each takes one input set (a dict of tensors) and returns
the output tensors. What a callable makes once for an input set it keeps there, under names that begin with
`hone_`: other peers keep theirs beside it. bench/compare_torch.py calls it, and any program that takes such a
plugin. What is known of an operator stands in its module of bench/torch_operators. Winners come from the
usual cache; a case without an exact one is named on stderr, with the command that would tune it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

sys.path.append(str(Path(__file__).resolve().parent))  # where another program loads this file

import torch_hone  # noqa: E402
from torch_operators import FAMILIES  # noqa: E402

hone = torch_hone.hone


def peers(op: str, case: Dict[str, Any], inputs: Dict[str, Any]) -> Dict[str, Callable[..., Any]]:
    """{"hone": callable} for an operator that Hone has, else {}. Prepares at the first call."""
    if op not in FAMILIES:
        return {}
    family = FAMILIES[op]
    made: List[Callable[..., Any]] = []

    def call(inputs: Dict[str, Any]) -> Any:
        if not made:
            made.append(torch_hone.prepared_call(family.hone, case, family.inputs(case), inputs))
        return made[0](inputs)

    return {"hone": call}


def tune(cases: List[Dict[str, Any]]) -> None:
    """Tunes what the cases call, in child processes: before anything is prepared here."""
    found: Dict[tuple, set] = {}
    for case in (case for case in cases if case["op"] in FAMILIES):
        family = FAMILIES[case["op"]]
        for name, fields in torch_hone.problems(family.hone, case, family.inputs(case)):
            rows = case.get("rows", case.get("tokens"))  # None: the fields have all sizes
            found.setdefault((name, tuple(fields.items())), set()).update([] if rows is None else [rows])
    for (name, fields), rows in found.items():
        hone.tune(op=name, fields=dict(fields), tokens=sorted(rows) or None)

"""Recorded sweeps (docs/how-we-measure.md) as spaces to search, for strategies.py and kernel_tuner_cache.py."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

NOT_OF_THIS_VARIANT = -1  # the value of a tunable that the candidate's variant does not have
POWER_LIMITED_US = 20  # calls that take longer run on a clock that falls while they are measured


class Space(NamedTuple):
    """The recorded candidates of one problem. The variant is a parameter as the tunables are."""

    problem: str
    device: str
    keys: List[str]  # "variant", then every tunable of any variant
    candidates: List[str]
    configs: List[Tuple[Any, ...]]  # a value a key, by candidate
    records: List[Dict[str, Any]]  # what was recorded, by candidate

    @property
    def family(self) -> str:
        return self.problem.split()[0]

    def us(self) -> List[float]:
        """What a call takes, by candidate; infinite where it failed."""
        return [time_of(record) for record in self.records]


def time_of(record: Dict[str, Any]) -> float:
    """The median of the samples; of long calls the tenth percentile, which still sees the high clock."""
    if record["status"] != "ok" or not record.get("us"):
        return math.inf
    median = statistics.median(record["us"])
    ordered = sorted(record["us"])
    return median if median < POWER_LIMITED_US else ordered[len(ordered) // 10]


def tunables_of(candidate: str) -> Dict[str, Any]:
    """'gemv rows=1 unroll=4' -> {"variant": "gemv", "rows": 1, "unroll": 4}"""
    variant, *words = candidate.split()
    pairs = (word.split("=") for word in words)
    return {"variant": variant, **{name: int(value) for name, value in pairs}}


def space_of(problem: str, device: str, candidates: Dict[str, Dict[str, Any]]) -> Space:
    named = {candidate: tunables_of(candidate) for candidate in candidates}
    keys = list(dict.fromkeys(key for tunables in named.values() for key in tunables))
    configs = [tuple(tunables.get(key, NOT_OF_THIS_VARIANT) for key in keys) for tunables in named.values()]
    return Space(problem, device, keys, list(candidates), configs, list(candidates.values()))


def read_recording(path: Path) -> Iterator[Space]:
    """Every problem of which a candidate was measured. Raises ValueError for what is no recording."""
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    header = json.loads(head)
    if header.get("schema") != "hone.recorded/1":
        raise ValueError(f"{path}: its first line is of no recorded sweep (schema {header.get('schema')})")
    for line in lines:
        row = json.loads(line)
        space = space_of(row["problem"], header["device"]["gpu"]["name"], row["candidates"])
        if any(math.isfinite(us) for us in space.us()):
            yield space

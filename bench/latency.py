#!/usr/bin/env python3
"""How long one call takes at decode sizes, Hone beside PyTorch: the host's time as well as the GPU's.

    python3 bench/latency.py [--rows 1,4,8] [--hidden 4096] [--calls 2000] [--json results.json]

"call" is one call and waiting for it; "replay" the same as a CUDA graph of that one call; "calls/s" many
calls and waiting once; "host" the time until a call returns, of batches that the GPU's queue holds. Times are
microseconds.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))  # where hone is not installed

import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

import hone  # noqa: E402
from hone import ops  # noqa: E402

EPSILON = 1e-5
BATCH = 50  # calls between two waits where the host alone is timed: fewer than a stream queues
WARM_UP = 50

Call = Callable[[], Any]


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--rows", default="1,4,8")
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, bf16, {options.hidden} a row")
    print(TITLE)
    with torch.inference_mode():
        for rows in map(int, options.rows.split(",")):
            for operator, ways in contestants(rows, options.hidden).items():
                for name, call in ways.items():
                    who = {"rows": rows, "operator": operator, "way": name}
                    results.append({**who, **measured(call, options.calls)})
                    print(table_line(results[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"schema": "hone.latency/1", "results": results}, indent=1) + "\n")
    return 0


def contestants(rows: int, hidden: int) -> Dict[str, Dict[str, Call]]:
    """By operator and name, calls on tensors of their own."""
    x, residual = (torch.randn(rows, hidden, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    weight = torch.randn(hidden, device="cuda", dtype=torch.bfloat16)
    shape = (hidden,)

    def plain(x: Any, weight: Any) -> Any:
        return functional.rms_norm(x, shape, weight, EPSILON)

    def with_residual(x: Any, residual: Any, weight: Any) -> Any:
        total = x + residual
        return functional.rms_norm(total, shape, weight, EPSILON), total

    norm = hone.prepare(hone.RmsNorm(hidden, max_rows=rows))
    norm_residual = hone.prepare(hone.RmsNorm(hidden, max_rows=rows, residual=True))
    compiled, compiled_residual = (torch.compile(f, dynamic=False) for f in (plain, with_residual))
    out, total = torch.empty_like(x), torch.empty_like(x)
    return {
        "rms_norm": {
            "hone prepared": lambda: norm(x, weight, epsilon=EPSILON),
            "hone prepared, out=": lambda: norm(x, weight, out=out, epsilon=EPSILON),
            "hone.ops": lambda: ops.rms_norm(x, weight, EPSILON),
            "torch.ops.hone": lambda: torch.ops.hone.rms_norm(x, weight, EPSILON),
            "torch eager": lambda: plain(x, weight),
            "torch compiled": lambda: compiled(x, weight),
        },
        "rms_norm_residual": {
            "hone prepared": lambda: norm_residual(x, weight, residual, epsilon=EPSILON),
            "hone prepared, out=": lambda: norm_residual(
                x, weight, residual, out=out, sum=total, epsilon=EPSILON
            ),
            "hone.ops": lambda: ops.rms_norm_residual(x, residual, weight, EPSILON),
            "torch.ops.hone": lambda: torch.ops.hone.rms_norm_residual(x, residual, weight, EPSILON),
            "torch eager": lambda: with_residual(x, residual, weight),
            "torch compiled": lambda: compiled_residual(x, residual, weight),
        },
    }


def measured(call: Call, calls: int) -> Dict[str, Any]:
    """All four figures of a call."""
    for _ in range(WARM_UP):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    gc.disable()
    try:
        return {
            "call_us": percentiles(waited(call, calls)),
            "replay_us": percentiles(waited(graph.replay, calls)),
            "calls_per_s": round(throughput(call, calls)),
            "host_us": percentiles(enqueued(call, calls)),
        }
    finally:
        gc.enable()


def waited(call: Call, calls: int) -> List[float]:
    """Microseconds until a call's work is done."""
    times = []
    for _ in range(calls):
        begin = time.perf_counter_ns()
        call()
        torch.cuda.synchronize()
        times.append((time.perf_counter_ns() - begin) / 1000)
    return times


def enqueued(call: Call, calls: int) -> List[float]:
    """Microseconds until a call returns, one mean a batch."""
    times = []
    for _ in range(max(calls // BATCH, 20)):
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(BATCH):
            call()
        times.append((time.perf_counter_ns() - begin) / 1000 / BATCH)
    torch.cuda.synchronize()
    return times


def throughput(call: Call, calls: int) -> float:
    """Calls a second, the GPU's work included."""
    torch.cuda.synchronize()
    begin = time.perf_counter_ns()
    for _ in range(calls):
        call()
    torch.cuda.synchronize()
    return calls * 1e9 / (time.perf_counter_ns() - begin)


def percentiles(times: List[float]) -> Dict[str, float]:
    ordered = sorted(times)
    last = len(ordered) - 1
    return {f"p{share}": round(ordered[round(last * share / 100)], 2) for share in (50, 95, 99)}


COLUMNS = ("rows", "operator", "way", "call p50", "p95", "p99", "replay p50", "p95", "p99", "calls/s", "host")
WIDTHS = (4, 18, 20, 9, 7, 7, 11, 7, 7, 9, 9)
TITLE = "  ".join(name.rjust(width) for name, width in zip(COLUMNS, WIDTHS))


def table_line(result: Dict[str, Any]) -> str:
    call, replay = result["call_us"], result["replay_us"]
    cells = [result["rows"], result["operator"], result["way"], *call.values(), *replay.values()]
    cells += [result["calls_per_s"], result["host_us"]["p50"]]
    return "  ".join(str(cell).rjust(width) for cell, width in zip(cells, WIDTHS))


if __name__ == "__main__":
    sys.exit(main())

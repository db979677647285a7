#!/usr/bin/env python3
"""Hone beside PyTorch on one GPU: eager, Inductor, and the libraries that each operator has.

    python3 bench/compare_torch.py --tune --out results.json --update-docs
    python3 bench/compare_torch.py --docs results.json             # the table again, without a GPU
    python3 bench/compare_torch.py --cases sample                  # other cases than those of the norms
    python3 bench/compare_torch.py --yardstick FILE --ops rmsnorm  # that program's figures, Hone as a peer

Every way of a case is checked against a reference in float32 (float64 for fp32 cases) before it is timed; how
it is timed says bench/torch_timing.py, what is compared bench/torch_operators. Prints a line for each way.
Exit code: 0 when every way worked.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List

import compare_docs

BENCH = Path(__file__).resolve().parent
PAGE = BENCH.parent / "docs" / "performance.md"
SCHEMA = "hone.compare/1"


def main() -> int:
    options = parse_arguments()
    if options.docs:
        compare_docs.update(PAGE, json.loads(options.docs.read_text()))
        return 0
    cases = read_cases(options.cases, options.ops)
    if options.tune:
        import torch_peers

        torch_peers.tune(cases)
    if options.yardstick:
        return run_yardstick(cases, options)
    results = compare(cases, options)
    if options.update_docs:
        compare_docs.update(PAGE, results)
    return 0 if all("us" in peer for row in results["results"] for peer in row["peers"]) else 1


def parse_arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--cases", default="norms", help="a table of cases, or FILE.json with a list")
    parser.add_argument("--ops", default="", help="only these operators, with commas between them")
    parser.add_argument("--tune", action="store_true", help="tune the cases first")
    parser.add_argument("--budget-ms", type=float, default=40, help="GPU time for each way of a case")
    parser.add_argument("--limit-s", type=float, default=math.inf, help="begin no case later than that")
    parser.add_argument("--out", type=Path, help="write the results as JSON, anew after every case")
    parser.add_argument("--update-docs", action="store_true", help="write the table of docs/performance.md")
    parser.add_argument("--docs", type=Path, metavar="RESULTS", help="only write the table, from such a file")
    parser.add_argument("--yardstick", type=Path, help="run this program instead, with Hone as its plugin")
    options = parser.parse_args()
    if options.yardstick and not options.ops:
        parser.error("--yardstick needs --ops: the operators that the program knows")
    return options


def read_cases(name: str, ops: str) -> List[Dict[str, Any]]:
    """Those of a table of bench/torch_operators, or of a file."""
    from torch_operators import CASES

    if name not in CASES and not name.endswith(".json"):
        sys.exit(f"--cases: {name}; allowed are {', '.join(CASES)}, and a JSON file: FILE.json")
    cases = CASES[name] if name in CASES else json.loads(Path(name).read_text())
    wanted = set(filter(None, ops.split(",")))
    return [case for case in cases if not wanted or case["op"] in wanted]


def run_yardstick(cases: List[Dict[str, Any]], options: argparse.Namespace) -> int:
    """Its interface: --cases FILE, --plugin, --only, --out."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(cases, file)
        file.flush()
        command = [sys.executable, str(options.yardstick), "--cases", file.name]
        command += ["--plugin", str(BENCH / "torch_peers.py"), "--only", options.ops]
        command += ["--out", str(options.out)] if options.out else []
        return subprocess.run(command, check=False).returncode


def compare(cases: List[Dict[str, Any]], options: argparse.Namespace) -> Dict[str, Any]:
    """Measures, and returns what stands in the file."""
    import torch

    configure_torch()
    begin = time.monotonic()
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    name = Path(options.cases).stem
    found: Dict[str, Any] = {"schema": SCHEMA, "name": name, "date": now, "machine": machine()}
    found["results"] = []
    with torch.inference_mode():
        for case in cases:
            if time.monotonic() - begin > options.limit_s:
                print(f"left out, as the time is up: {case}", file=sys.stderr)
                continue
            found["results"].append(compare_case(case, options.budget_ms))
            torch.cuda.empty_cache()
            if options.out:
                options.out.write_text(json.dumps(found, indent=1) + "\n")
    return found


def configure_torch() -> None:
    """The same random inputs in every run; float32 that is float32; a compile for every case."""
    import torch
    import torch._dynamo

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("highest")
    for limit in ("recompile_limit", "cache_size_limit"):  # two names of different versions
        if hasattr(torch._dynamo.config, limit):
            setattr(torch._dynamo.config, limit, 1000)


def compare_case(case: Dict[str, Any], budget_ms: float) -> Dict[str, Any]:
    """{case, sets, bytes, flops, peers}; a peer has name, relative_error, us, p10, p90, samples, or name and
    error."""
    import torch_peers
    import torch_timing
    from torch_cases import check_shape, make_inputs
    from torch_operators import FAMILIES

    family = FAMILIES[case["op"]]
    bytes_moved, flops = family.work(case)
    first = make_inputs(family, case)
    count = torch_timing.set_count(bytes_moved, first)
    sets = [first] + [make_inputs(family, case) for _ in range(count - 1)]
    ways = {**torch_peers.peers(case["op"], case, first), **family.peers(case)}
    reference, error_of = family.reference(case, first), family.error or relative_error
    graphs, peers = {}, {name: {"name": name} for name in ways}
    for name, call in ways.items():
        try:
            outputs = call(first)
            check_shape(outputs, family.out(case))
            peers[name]["relative_error"] = error_of(outputs, reference)
            graphs[name] = torch_timing.capture(call, sets)
        except Exception as error:  # one way that does not work must not end the comparison
            peers[name]["error"] = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"
    for name, timing in torch_timing.interleaved(graphs, count, budget_ms).items():
        peers[name].update({key: round(value, 4) for key, value in timing._asdict().items()})
    for peer in peers.values():
        print(json.dumps({**case, **peer}), flush=True)
    work = {"bytes": bytes_moved, "flops": flops}
    return {"case": case, "sets": count, **work, "peers": list(peers.values())}


def relative_error(outputs: Any, reference: Any) -> float:
    """The largest of the outputs' errors in the L2 norm, NaN where one is not finite."""
    import torch
    from torch_cases import as_tuple

    worst = 0.0
    for output, wanted in zip(as_tuple(outputs), reference):
        output = output.to(wanted.dtype)
        if not torch.isfinite(output).all():
            return float("nan")
        worst = max(worst, ((output - wanted).norm() / wanted.norm()).item())
    return float(f"{worst:.2e}")


def machine() -> Dict[str, Any]:
    import torch

    return {
        "device": torch.cuda.get_device_name(0),
        "driver": driver_version(),
        "torch": torch.__version__.partition("+")[0],
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }


def driver_version() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


if __name__ == "__main__":
    sys.exit(main())

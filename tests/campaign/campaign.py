"""The whole campaign within a budget: python3 campaign.py BUILD_FOLDER [--budget SECONDS] [--out FOLDER]
[--coverage FILE].

Two lanes run side by side, each test with its share of the time. results.json and a log of each test go to
the output folder; docs/reliability.md is written from results.json. Ends with 1 when anything failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import reliability

HERE = Path(__file__).parent
SOURCE = HERE.parents[1]

# Parts of a lane's time. Those without a share have a fixed amount of work, about a minute.
LANES = [
    [("kill_points_test", 0.65), ("adversity_test", 0.15), ("power_cut_test", None), ("fuzz", 0.1)],
    [("failing_calls_test", 0.40), ("random_kills_test", 0.40), ("crowd_test", 0.1)],
]


def command_of(name: str, build: Path, seconds: float, out: Path) -> list[str] | None:
    if name == "fuzz":
        fuzzers = build.parent / "fuzz"  # of the preset of that name, where it is built
        script = SOURCE / "tests/fuzz/run.sh"
        return [str(script), str(fuzzers), str(int(seconds)), str(out / "fuzz")] if fuzzers.is_dir() else None
    if (HERE / f"{name}.py").exists():
        return [sys.executable, "-B", str(HERE / f"{name}.py"), "-v"]
    return [str(build / "tests/hone_campaign_tests"), f"--source-file=*/{name}.cpp"]


def run_step(name: str, build: Path, seconds: float, out: Path) -> dict | None:
    command = command_of(name, build, seconds, out)
    if command is None:
        return None
    environment = {**os.environ, "HONE_BUILD": str(build), "HONE_CAMPAIGN_RESULTS": str(out / "lines.jsonl"),
                   "HONE_CAMPAIGN_SECONDS": str(seconds),
                   "HONE_CAMPAIGN_SOAK": str(seconds)}  # comes on top of the test's other seconds
    start = time.monotonic()
    with open(out / f"{name}.log", "w", encoding="utf-8") as log:
        ended = subprocess.run(command, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)
    code = ended.returncode
    print(f"{name}: {'held' if code == 0 else 'FAILED, ' + str(out / name) + '.log'}", flush=True)
    return {"name": name, "ok": code == 0, "seconds": round(time.monotonic() - start, 1)}


def run_lane(lane, build: Path, budget: float, out: Path) -> list[dict]:
    steps = [run_step(name, build, budget * (share or 0), out) for name, share in lane]
    return [step for step in steps if step is not None]


def machine() -> str:
    gpus = len([path for path in Path("/dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)])
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, {f'{gpus} GPUs' if gpus else 'no GPU'}"


def run_campaign(build: Path, budget: float, out: Path) -> dict:
    out.mkdir(parents=True, exist_ok=True)
    (out / "lines.jsonl").write_text("")
    start = time.monotonic()
    with ThreadPoolExecutor(len(LANES)) as pool:
        lanes = pool.map(lambda lane: run_lane(lane, build, budget, out), LANES)
        steps = [step for lane in lanes for step in lane]
    lines = [json.loads(line) for line in (out / "lines.jsonl").read_text().splitlines()]
    lines.sort(key=lambda line: (line["promise"], line["test"], line["what"]))
    return {"date": date.today().isoformat(), "machine": machine(), "budget_s": budget,
            "seconds": round(time.monotonic() - start), "steps": steps, "lines": lines}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--budget", type=float, default=3600, help="seconds")
    parser.add_argument("--out", type=Path, default=Path("campaign"))
    parser.add_argument("--coverage", type=Path, help="what tests/coverage.sh has written")
    parser.add_argument("--only-write", action="store_true", help="the document from an earlier run")
    parser.add_argument("--note", help="a sentence for the document about how this run came about")
    options = parser.parse_args()
    out = options.out.resolve()
    if options.only_write:
        results = json.loads((out / "results.json").read_text())
    else:
        results = run_campaign(options.build.resolve(), options.budget, out)
    if options.coverage:
        results["coverage"] = json.loads(options.coverage.read_text())
    if options.note:
        results["note"] = options.note
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (SOURCE / "docs/reliability.md").write_text(reliability.document(results))
    return 0 if all(step["ok"] for step in results["steps"]) else 1


if __name__ == "__main__":
    sys.exit(main())

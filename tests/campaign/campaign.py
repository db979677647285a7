"""The campaign within a budget: python3 campaign.py BUILD_FOLDER [--budget SECONDS] [--out FOLDER] [--jobs N]
[--only PART ...] [--coverage FILE] [--sanitized FILE].

Two lanes run side by side, each part with its share of the time; N processes share the points of a test in
Python. results.json and a log of each test go to the output folder. docs/reliability.json has what each part
reached when it last ran, anywhere; what ran now takes the place of what it had, and docs/reliability.md is
written from it. Ends with 1 when anything failed.
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
KEPT = SOURCE / "docs/reliability.json"
NOTHING_TO_TEST = 77  # the exit code of a program whose tests were all left out

# Parts of a lane's time. Those without a share have a fixed amount of work, about a minute.
LANES = [
    [("kill_points_test", 0.65), ("adversity_test", 0.15), ("power_cut_test", None), ("fuzz", 0.1)],
    [("promises", None), ("failing_calls_test", 0.50), ("random_kills_test", 0.25), ("crowd_test", 0.1)],
]


def command_of(name: str, build: Path, seconds: float, out: Path) -> list[str] | None:
    if name == "fuzz":
        fuzzers = build.parent / "fuzz"  # of the preset of that name, where it is built
        script = SOURCE / "tests/fuzz/run.sh"
        return [str(script), str(fuzzers), str(int(seconds)), str(out / "fuzz")] if fuzzers.is_dir() else None
    if (HERE / f"{name}.py").exists():
        return [sys.executable, "-B", str(HERE / f"{name}.py"), "-v"]
    return [str(build / "tests/hone_campaign_tests"), f"--source-file=*/{name}.cpp"]


def run_shard(name: str, command: list[str], environment: dict[str, str], log: Path) -> bool:
    with open(log, "w", encoding="utf-8") as out:
        ended = subprocess.run(command, env=environment, stdout=out, stderr=subprocess.STDOUT, check=False)
    print(f"{name}: {'held' if ended.returncode == 0 else f'FAILED, {log}'}", flush=True)
    return ended.returncode == 0


def run_command(name: str, build: Path, seconds: float, out: Path, jobs: int) -> bool | None:
    """Whether it held; None where there is nothing to run."""
    command = command_of(name, build, seconds, out)
    if command is None:
        return None
    environment = {**os.environ, "HONE_BUILD": str(build), "HONE_CAMPAIGN_RESULTS": str(out / "lines.jsonl"),
                   "HONE_CAMPAIGN_SECONDS": str(seconds),
                   "HONE_CAMPAIGN_SOAK": str(seconds)}  # comes on top of the test's other seconds
    shards = jobs if command[0] == sys.executable else 1
    with ThreadPoolExecutor(shards) as pool:
        held = list(pool.map(
            lambda shard: run_shard(name, command, {**environment, "HONE_CAMPAIGN_SHARD": f"{shard}/{shards}"},
                                    out / (f"{name}.log" if shards == 1 else f"{name}.{shard}.log")),
            range(shards)))
    if name == "fuzz":
        fuzzed((out / "fuzz.log").read_text(), out / "lines.jsonl")
    return all(held)


def fuzzed(log: str, lines: Path) -> None:
    """How often each target ran, from what tests/fuzz/run.sh prints."""
    with open(lines, "a", encoding="utf-8") as out:
        for target, count in re.findall(r"^(\S+) +(\d+) executions", log, re.MULTILINE):
            out.write(json.dumps({"promise": 6, "test": "fuzz", "what": f"inputs of the fuzz target {target}",
                                  "count": int(count)}) + "\n")


def checks_of(test: str, build: Path, out: Path) -> tuple[bool, int] | None:
    """Runs a test in C++ that holds a promise: whether it held, and how many checks it made; None where it
    needs a GPU and there is none."""
    folder, stem = Path(test).parent.name, Path(test).stem
    log = out / f"{stem}.log"
    command = [str(build / f"tests/hone_{folder}_tests"), f"--source-file=*/{test}", "--no-colors"]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           check=False)
    log.write_text(ended.stdout)
    if ended.returncode == NOTHING_TO_TEST:
        return None
    checks = re.search(r"assertions: *(\d+)", ended.stdout)
    return ended.returncode == 0, int(checks[1]) if checks else 0


def run_promises(build: Path, out: Path) -> bool:
    """The tests in C++ that docs/reliability.md names with the promises, those of the campaign aside."""
    held = True
    for promise, (_, tests) in reliability.PROMISES.items():
        for test in tests:
            if not test.endswith("_test.cpp") or test.startswith("tests/campaign"):
                continue
            found = checks_of(test, build, out)
            if found is None:
                continue
            held &= found[0]
            print(f"{Path(test).stem}: {'held' if found[0] else 'FAILED'}", flush=True)
            line = {"promise": promise, "test": test, "what": f"checks of {Path(test).stem}", "count": found[1]}
            with open(out / "lines.jsonl", "a", encoding="utf-8") as lines:
                lines.write(json.dumps(line) + "\n")
    return held


def run_step(name: str, build: Path, seconds: float, out: Path, jobs: int) -> dict | None:
    start = time.monotonic()
    held = run_promises(build, out) if name == "promises" else run_command(name, build, seconds, out, jobs)
    if held is None:
        return None
    return {"name": name, "ok": held, "seconds": round(time.monotonic() - start), "machine": machine(),
            "date": date.today().isoformat()}


def run_lane(lane, build: Path, budget: float, out: Path, jobs: int) -> list[dict]:
    steps = [run_step(name, build, budget * (share or 0), out, jobs) for name, share in lane]
    return [step for step in steps if step is not None]


def merged(lines: list[dict]) -> list[dict]:
    """One line for each thing that was counted. Processes that share points (lines with a total) add up; of
    times the worst process counts."""
    found: dict[tuple, dict] = {}
    for line in lines:
        one = found.setdefault((line["promise"], line["test"], line["what"]), {**line, "count": 0})
        count = one["count"] + line["count"] if "total" in line else max(one["count"], line["count"])
        worst = {name: max(value, one[name]) for name, value in line.items() if name.startswith("ready_ms")}
        one.update(count=count, **worst)
    return [found[key] for key in sorted(found)]


def machine() -> str:
    gpus = len([path for path in Path("/dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)])
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, {f'{gpus} GPU' if gpus else 'no GPU'}{'s' if gpus > 1 else ''}"


def part_of(line: dict) -> str:
    return "promises" if line["test"].startswith("tests/") else line["test"].removeprefix("campaign.")


def run_campaign(build: Path, budget: float, out: Path, jobs: int, only: list[str]) -> dict:
    (out / "lines.jsonl").write_text("")
    lanes = [[step for step in lane if not only or step[0] in only] for lane in LANES]
    with ThreadPoolExecutor(len(lanes)) as pool:
        results = pool.map(lambda lane: run_lane(lane, build, budget, out, jobs), lanes)
        steps = [step for lane in results for step in lane]
    lines = [json.loads(line) for line in (out / "lines.jsonl").read_text().splitlines()]
    return {"steps": steps, "lines": merged(lines)}


def joined(before: dict, now: dict) -> dict:
    """What was reached before, but for the parts that ran now."""
    ran = {step["name"] for step in now["steps"]}
    steps = [step for step in before["steps"] if step["name"] not in ran] + now["steps"]
    lines = [line for line in before["lines"] if part_of(line) not in ran] + now["lines"]
    return {**before, **now, "steps": sorted(steps, key=lambda step: step["name"]), "lines": merged(lines)}


def keep(results: dict, kept: Path = KEPT) -> None:
    kept.write_text(json.dumps(results, indent=1) + "\n")
    kept.with_suffix(".md").write_text(reliability.document(results))


def result_of(options: argparse.Namespace) -> dict:
    """What this run has to say, as results.json does."""
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    results = run_campaign(options.build.resolve(), options.budget, out, options.jobs, options.only)
    if options.note:
        results["steps"] = [{**step, "note": options.note} for step in results["steps"]]
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--budget", type=float, default=3600, help="seconds")
    parser.add_argument("--out", type=Path, default=Path("campaign"))
    parser.add_argument("--jobs", type=int, default=max(1, len(os.sched_getaffinity(0)) // len(LANES)),
                        help="processes that share the points of a test (default: cores over lanes)")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART",
                        choices=[name for lane in LANES for name, _ in lane])
    parser.add_argument("--join", type=Path, nargs="+", default=[], metavar="RESULTS",
                        help="results.json of runs on other machines, and what --coverage and --sanitized say; "
                             "nothing is run")
    parser.add_argument("--coverage", type=Path, help="what tests/coverage.sh has written")
    parser.add_argument("--sanitized", type=Path, help="what tests/sanitized.sh has written")
    parser.add_argument("--note", help="a sentence for the document about how these parts came about")
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text())
    for results in [json.loads(file.read_text()) for file in options.join] or [result_of(options)]:
        kept = joined(kept, results)
    if options.coverage:
        kept["coverage"] = json.loads(options.coverage.read_text())
    if options.sanitized:
        kept["sanitized"] = [json.loads(line) for line in options.sanitized.read_text().splitlines()]
    keep(kept)
    return 0 if all(step["ok"] for step in kept["steps"]) else 1


if __name__ == "__main__":
    sys.exit(main())

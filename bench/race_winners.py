"""Has winners that ship raced anew: says which, and takes what a race made of them.

    python3 bench/race_winners.py choose --family linear --where dtype=bf16 --until 2026-11-29 -o rows.json
    hone tune --captured rows.json && hone export --gpu H200 -o run.json      # on such a GPU
    python3 bench/race_winners.py take run.json

choose writes a capture for `hone tune --captured` of the rows that fit all of its options, the shortest calls first. Rows that
were chosen in a model's step are left out: a race of a call alone does not replace them. --stale HONE takes those that are of
other templates than that build has, which never run (bench/carry_winners.py).

take puts newer rows of an exported file, and those of problems that had none, into the file of winners. A row that a model's
step chose stays, unless the new one comes from the same step. Rows of other kinds of GPU are left out and counted. Nothing else
of the file changes, not a byte but its SHA-256.

Exit code: 0, or 2 when a file cannot be read or no row fits.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

from carry_winners import TREE, Program
from tuned_bundle import Bundle, Failed, Row, Trial, rendered

KIND = ("gpu_name", "compute_major", "compute_minor", "sm_count", "memory_clock_mhz", "mig_profile")


def kind(trial: Trial) -> Tuple[Any, ...]:
    """Of its GPU."""
    return tuple(trial.facts[name] for name in KIND)


def key(trial: Trial) -> Tuple[Any, ...]:
    """In the order of a file."""
    return tuple(trial.facts[name] for name in ("family", "static_fields", "dynamic_fields")) + kind(trial)


def text(row: Row) -> str:
    return rendered([trial.text for trial in row.trials])


def fields_of(trial: Trial) -> Dict[str, str]:
    return dict(word.split("=", 1) for word in trial.problem.split()[1:])


class Choice(NamedTuple):
    """By a model's step: `step` is empty for a row that was raced alone, `kept` says whether the step still takes it."""

    step: str
    kept: bool


def choice_of(trial: Trial) -> Choice:
    step, lost, _ = trial.facts.get("chain", "").partition(" kept=no")
    return Choice(step, bool(step) and not lost)


def milliseconds(date: str) -> float:
    try:
        return datetime.datetime.fromisoformat(date).replace(tzinfo=datetime.timezone.utc).timestamp() * 1000
    except ValueError as error:
        raise Failed(f"--until {date}: allowed: YYYY-MM-DD") from error


def wanted_fields(words: List[str]) -> Dict[str, str]:
    for word in words:
        if "=" not in word:
            raise Failed(f"--where {word}: allowed: FIELD=VALUE")
    return dict(word.split("=", 1) for word in words)


def choose(options: argparse.Namespace) -> None:
    wanted = wanted_fields(options.where)
    until = milliseconds(options.until) if options.until else None
    hashes = None
    if options.stale:
        with tempfile.TemporaryDirectory(prefix="hone-race-") as folder:
            hashes = Program(options.stale, Path(folder) / "program").hashes

    def fits(trial: Trial) -> bool:
        fields = fields_of(trial)
        return (
            not trial.facts.get("chain")
            and (not options.family or trial.facts["family"] in options.family)
            and all(fields.get(name) == value for name, value in wanted.items())
            and (until is None or trial.facts["created_at"] < until)
            and (hashes is None or hashes.get(trial.variant) != trial.hash)
        )

    rows = [row.trials[0] for row in Bundle(options.winners).rows]
    chosen = sorted(filter(fits, rows), key=lambda trial: trial.facts["median_us"])
    if not chosen:
        raise Failed(f"{options.winners}: none of {len(rows)} rows fits")
    # The tuner begins with what took most time in all: calls stand for the order.
    problems = [
        {"calls": int(1e9 * (len(chosen) - i) / trial.facts["median_us"]), "gpu": trial.facts["gpu_name"], "problem": trial.problem}
        for i, trial in enumerate(chosen)
    ]
    options.output.write_text(json.dumps({"schema": "hone.capture/1", "problems": problems}), encoding="utf-8")
    print(f"{options.output}: {len(chosen)} of {len(rows)} rows")


def take(options: argparse.Namespace) -> None:
    bundle = Bundle(options.winners)
    kinds = {kind(row.trials[0]) for row in bundle.rows}
    rows = {key(row.trials[0]): row for row in bundle.rows}
    counts = {"new": 0, "replaced": 0, "left, as a step chose them": 0, "left, of other GPUs": 0}
    for file in options.runs:
        for row in Bundle(file).rows:
            raced = row.trials[0]
            place = rows.get(key(raced))
            shipped = place.trials[0] if place else None
            if kinds and kind(raced) not in kinds:
                counts["left, of other GPUs"] += 1
            elif shipped is None:
                rows[key(raced)] = row
                counts["new"] += 1
            elif raced.facts["created_at"] <= shipped.facts["created_at"]:
                continue
            elif choice_of(shipped).kept and choice_of(shipped).step != choice_of(raced).step:
                counts["left, as a step chose them"] += 1
            else:
                rows[key(raced)] = row
                counts["replaced"] += 1
    bundle.file.write_text(bundle.text([text(rows[name]) for name in sorted(rows)]), encoding="utf-8")
    print(f"{bundle.file}: {len(rows)} rows; " + ", ".join(f"{count} {what}" for what, count in counts.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    chooses = commands.add_parser("choose", help="write a capture of rows")
    chooses.add_argument("--family", action="append", metavar="NAME", help="may be given several times")
    chooses.add_argument("--where", action="append", default=[], metavar="FIELD=VALUE", help="likewise: all have to hold")
    chooses.add_argument("--until", metavar="YYYY-MM-DD", help="measured before this day (UTC)")
    chooses.add_argument("--stale", type=Path, metavar="HONE", help="of other templates than this build has")
    chooses.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    takes = commands.add_parser("take", help="put the rows of exported files into the file of winners")
    takes.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="as `hone export -o` wrote it")
    for command in (chooses, takes):
        command.add_argument(
            "--winners", type=Path, default=TREE / "configs" / "tuned" / "h200-sxm.json", metavar="FILE", help="default: %(default)s"
        )
    options = parser.parse_args()
    try:
        (choose if options.command == "choose" else take)(options)
    except (Failed, OSError) as error:
        print(f"race_winners: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

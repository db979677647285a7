"""docs/reliability.md from the results of a campaign: each promise with its tests and the counts that were
reached.
"""

from __future__ import annotations

from pathlib import Path

PROMISES = {
    1: ("A result is used only where it is valid, and `hone explain` says why or why not.",
        ["tests/runtime/choice_test.cpp", "tests/runtime/dispatcher_test.cpp", "tests/cache/layers_test.cpp"]),
    2: ("A kernel that faults, hangs, writes out of bounds or computes wrong numbers is never chosen and never ends a run.",
        ["tests/tuner/gpu_measurer_test.cpp", "tests/tuner/end_to_end_test.cpp", "tests/tuner/planted_gpu_test.cpp"]),
    3: ("Killing any process at any moment loses no committed result and leaves no cache that needs repair.",
        ["tests/campaign/kill_points_test.py", "tests/campaign/random_kills_test.py", "tests/campaign/power_cut_test.cpp",
         "tests/campaign/adversity_test.py", "tests/tuner/kill_storm_test.cpp", "tests/cache/survival_test.cpp"]),
    4: ("Any number of processes may tune, import and dispatch at once; none fails because of another.",
        ["tests/campaign/crowd_test.cpp", "tests/cache/survival_test.cpp"]),
    5: ("A damaged, foreign, newer, read-only, full or missing cache never makes dispatch fail: it degrades to fallbacks, "
        "with one warning.",
        ["tests/campaign/failing_calls_test.py", "tests/campaign/adversity_test.py", "tests/cache/damage_test.cpp",
         "tests/runtime/dispatcher_test.cpp"]),
    6: ("Nothing imported is executed; values from outside cannot change a program beyond declared constants.",
        ["tests/cache/bundle_test.cpp", "tests/runtime/strict_json_test.cpp", "tests/fuzz/targets/checkpoint.cpp"]),
    7: ("A tuned choice is never slower than the default beyond the noise.",
        ["tests/tuner/race_test.cpp", "tests/tuner/statistics_test.cpp"]),
}

ANCHORS = """\
- SQLite makes the n-th call fail and stops at every step ([how SQLite is tested](https://sqlite.org/testing.html)): here an
  allocation of every call stack and every I/O call of nine commands and of the C interface can be made to fail, and every I/O call
  to be the last.
- ccache runs its whole suite under sanitizers: here `tests/sanitized.sh` is one command for that; `.ci/run` runs the layers that it names.
- LevelDB drops what was not synced (its `fault_injection_test`): here an SQLite VFS does, piece by piece.
"""

BEGINNING = """\
# How reliable is Hone?

{summary}
Made by `tests/campaign.sh` from [reliability.json](reliability.json); do not edit. A part may be run alone, on any machine:

| part | last run | on | notes |
|---|---|---|---|
{parts}

"n of m" means that m points exist and time allowed n of them, drawn at random. What the words
in the tables mean stands at the top of each test.

Against whom we measure ourselves:

{anchors}
"""


def summary_of(results: dict) -> str:
    failed = [step["name"] for step in results["steps"] if not step["ok"]]
    if failed:
        parts = f"{len(failed)} of {len(results['steps'])} parts"
        return f"**{parts} of the campaign failed: {', '.join(failed)}.**"
    return f"All {len(results['steps'])} parts of the campaign held."


def part(step: dict) -> str:
    notes = "" if step["ok"] else " **failed**"
    if step.get("note"):
        notes += f" {step['note']}"
    return f"| {step['name']} | {step['date']} | {step['machine']} |{notes} |"


def row(line: dict) -> str:
    total = line.get("total")
    count = f"{line['count']:,}" + (f" of {total:,}" if total and total != line["count"] else "")
    note = ""
    if "ready_ms_p99" in line:
        note = (f" dispatch ready in {line['ready_ms_p99']:.0f} ms at the 99th percentile, "
                f"{line['ready_ms_max']:.0f} at most")
    return f"| {line['what']} | {count} |{note} |"


def section(number: int, lines: list[dict]) -> str:
    promise, tests = PROMISES[number]
    held = ", ".join(f"[{Path(test).name.split('.')[0]}](../{test})" for test in tests)
    text = f"## {number}. {promise}\n\nTests: {held}.\n"
    if not lines:
        return text + "\nThe campaign adds no count of its own.\n"
    return text + "\n| what | count | notes |\n|---|---|---|\n" + "\n".join(row(line) for line in lines) + "\n"


def coverage(results: dict) -> str:
    if not results.get("coverage"):
        return ""
    shares = "".join(f"- `{folder}/`: {share:.1f} %\n" for folder, share in results["coverage"].items())
    return "## Coverage\n\nLines that the tests of cache, runtime and the C interface run (`tests/coverage.sh`):\n\n" + shares


def sanitized(results: dict) -> str:
    if not results.get("sanitized"):
        return ""
    runs = "".join(f"- `{run['preset']}`: {run['tests']} tests of {run['layers'].replace(' ', ', ')}\n"
                   for run in results["sanitized"])
    return "## Sanitizers\n\nWhat ran without a finding (`tests/sanitized.sh`):\n\n" + runs


def document(results: dict) -> str:
    beginning = BEGINNING.format(summary=summary_of(results), anchors=ANCHORS.rstrip(),
                                 parts="\n".join(part(step) for step in results["steps"]))
    sections = [section(number, [line for line in results["lines"] if line["promise"] == number])
                for number in PROMISES]
    texts = [beginning.rstrip() + "\n", *sections, coverage(results), sanitized(results)]
    return "\n".join(text for text in texts if text)

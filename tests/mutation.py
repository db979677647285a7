"""Mutation testing of what decides which kernel wins: python3 tests/mutation.py BUILD_FOLDER [--count N]
[--budget SECONDS] [FILE ...].

Changes one place of a file at a time (a comparison, a sign, a constant, a condition, a statement that is left
out), builds the test programs that hold it and runs them: a mutant that no test notices survives. The places
are drawn, the same in every run. Prints the share that was killed and each survivor as a diff; what is written
here is never kept. BUILD_FOLDER is a finished build of a clean tree, whose files are put back at the end.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

# File -> test programs with what of them holds it.
TESTS = {
    "tuner/search/race.cpp": {
        "hone_tuner_tests": "*/race_test.cpp,*/statistics_test.cpp,*/tune_test.cpp,*/end_to_end_test.cpp"},
    "tuner/gpu/verifier.cpp": {
        "hone_tuner_tests": "*/gpu_measurer_test.cpp,*/end_to_end_test.cpp"},
    "cache/validator.cpp": {
        "hone_cache_tests": "*", "hone_regressions_tests": "*/hostile_rows_test.cpp,*/fuzzed_input_test.cpp"},
}
TIMEOUT_S = 300

# What is looked for in a line, and what stands there in its place.
CHANGES = [
    (r"(?<![<>=!-])<(?![<=])(?=[^<>]*$|\s)", "<="), (r"<=(?!>)", "<"), (r"(?<![->])>(?![>=])(?=\s)", ">="),
    (r">=", ">"), (r"==", "!="), (r"!=", "=="), (r"&&", "||"), (r"\|\|", "&&"), (r" \+ ", " - "),
    (r" - ", " + "), (r" \* ", " / "), (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"\bstd::min\b", "std::max"), (r"\bstd::max\b", "std::min"), (r"\bif \((?!const|!)", "if (!"),
    (r"\bif \(!", "if ("), (r"(?<![\w.])(\d+)(?![\w.'])", lambda found: str(int(found[1]) + 1)),
]


@dataclass(frozen=True)
class Mutant:
    line: int
    text: str  # the line as it becomes


def is_code(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith(("//", "#", "using ", "namespace", "}  //", "[[noreturn", "template"))


def mutants_of(lines: list[str]) -> list[Mutant]:
    found = []
    for number, line in enumerate(lines):
        if not is_code(line) or '"' in line and not re.search(r"\bif\b|return", line):
            continue
        code = line.split("//")[0]
        for pattern, into in CHANGES:
            for place in re.finditer(pattern, code):
                text = into(place) if callable(into) else into
                found.append(Mutant(number, line[: place.start()] + text + line[place.end() :]))
        if re.fullmatch(r"\s+[\w.\->:\[\]()]+(\(.*\)| [+-]?= .*);\s*", code) and "const " not in code:
            found.append(Mutant(number, "\n"))
    return found


class Bench:
    def __init__(self, build: Path) -> None:
        self.build = build
        cache = (build / "CMakeCache.txt").read_text()
        self.source = Path(re.search(r"CMAKE_HOME_DIRECTORY:INTERNAL=(.*)", cache)[1])

    def run(self, *words: str) -> int:
        try:
            return subprocess.run(words, cwd=self.source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=TIMEOUT_S, check=False).returncode
        except subprocess.TimeoutExpired:
            return -1

    def build_tests(self, tests: dict[str, str]) -> bool:
        return self.run("cmake", "--build", str(self.build), "--target", *tests) == 0

    def passes(self, tests: dict[str, str]) -> bool:
        programs = self.build / "tests"
        return all(self.run(str(programs / name), f"--source-file={files}", "--abort-after=1") == 0
                   for name, files in tests.items())


def survivors_of(bench: Bench, name: str, count: int, end: float) -> tuple[int, list[str]]:
    """How many mutants were built, and those that no test noticed."""
    file, tests = bench.source / name, TESTS[name]
    whole = file.read_text()
    lines = whole.splitlines(keepends=True)
    mutants = mutants_of(lines)
    random.Random(name).shuffle(mutants)
    if not bench.build_tests(tests) or not bench.passes(tests):
        sys.exit(f"{name}: its tests fail as it is")
    built, survivors = 0, []
    try:
        for mutant in mutants[:count]:
            if time.monotonic() > end:
                break
            file.write_text("".join([*lines[: mutant.line], mutant.text, *lines[mutant.line + 1 :]]))
            if not bench.build_tests(tests):
                continue
            built += 1
            if bench.passes(tests):
                survivors.append(f"{name}:{mutant.line + 1}\n- {lines[mutant.line].strip()}\n+ {mutant.text.strip()}")
    finally:
        file.write_text(whole)
    return built, survivors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("files", nargs="*", default=list(TESTS))
    parser.add_argument("--count", type=int, default=60, help="mutants of a file")
    parser.add_argument("--budget", type=float, default=3600, help="seconds, for all files")
    options = parser.parse_intermixed_args()
    bench = Bench(options.build.resolve())
    end = time.monotonic()
    for place, name in enumerate(options.files):
        end = max(end, time.monotonic()) + options.budget / len(options.files)
        built, survivors = survivors_of(bench, name, options.count, end)
        killed = built - len(survivors)
        print(f"{name}: {killed} of {built} mutants killed ({100 * killed / max(1, built):.0f} %)", flush=True)
        for survivor in survivors:
            print(survivor, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

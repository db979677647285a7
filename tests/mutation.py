"""Mutation testing of what decides which kernel wins: python3 tests/mutation.py BUILD_FOLDER [--count N]
[--budget SECONDS] [--jobs N] [FILE ...].

Changes one place of a file at a time (a comparison, a sign, a constant, a condition, a statement that is left
out), links the test programs that hold it with the changed file and runs them: a mutant that no test notices
survives. The places are drawn, the same in every run. Prints the share that was killed and each survivor as a
diff. BUILD_FOLDER is a finished build of the release preset with -DHONE_UNITS=OFF; nothing in it or in the tree
is changed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# File -> test programs with what of them holds it.
TESTS = {
    "tuner/search/race.cpp": {
        "hone_tuner_tests": "*/race_*test.cpp,*/statistics_test.cpp,*/tune_test.cpp,*/end_to_end_test.cpp"},
    "tuner/gpu/verifier.cpp": {
        "hone_tuner_tests": "*/verifier_test.cpp,*/gpu_measurer_test.cpp,*/end_to_end_test.cpp"},
    "cache/validator.cpp": {
        "hone_cache_tests": "*/validator_test.cpp,*/bundle_test.cpp",
        "hone_regressions_tests": "*/hostile_rows_test.cpp,*/fuzzed_input_test.cpp"},
}
TIMEOUT_S = 300  # of a command at most

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
    """Builds the test programs of one file in folders of their own, with a changed file in its place."""

    def __init__(self, build: Path, name: str) -> None:
        self.build = build
        cache = (build / "CMakeCache.txt").read_text()
        self.source = Path(re.search(r"CMAKE_HOME_DIRECTORY:INTERNAL=(.*)", cache)[1])
        self.name = name
        self.tests = TESTS[name]
        commands = json.loads((build / "compile_commands.json").read_text())
        self.compile = next((shlex.split(entry["command"]) for entry in commands
                             if entry["file"] == str(self.source / name)), None)
        if self.compile is None:
            sys.exit(f"{name} is not compiled by itself in {build}: configure it with -DHONE_UNITS=OFF")
        self.links = {program: self.link_of(program) for program in self.tests}

    def link_of(self, program: str) -> str:
        listed = subprocess.run(["ninja", "-C", str(self.build), "-t", "commands", "-s", f"tests/{program}"],
                                capture_output=True, text=True, check=True).stdout
        return next(line for line in listed.splitlines() if f"-o tests/{program} " in line)

    def builds(self, folder: Path, text: str) -> bool:
        """Whether the programs with this text in place of the file's can be built; they are in `folder`."""
        changed = folder / Path(self.name).name
        changed.write_text(text)
        words = list(self.compile)
        words[words.index("-o") + 1] = str(changed) + ".o"
        words[words.index("-c") + 1] = str(changed)
        if not run(words, self.build):
            return False
        # Of two definitions, the linker takes that which comes before the library.
        return all(run(["sh", "-c", link.replace(f"-o tests/{program} ", f"-o {folder}/{program} {changed}.o ")],
                       self.build)
                   for program, link in self.links.items())

    def passes(self, folder: Path, seconds: float) -> bool:
        return all(run([str(folder / program), f"--source-file={files}", "--abort-after=1"], self.source, seconds)
                   for program, files in self.tests.items())

    def is_noticed(self, text: str, seconds: float) -> bool | None:
        """Whether a test fails with this text; None where it is no program."""
        with tempfile.TemporaryDirectory(prefix="hone-mutant-") as scratch:
            return not self.passes(Path(scratch), seconds) if self.builds(Path(scratch), text) else None


def run(words: list[str], folder: Path, seconds: float = TIMEOUT_S) -> bool:
    """Whether it ends well and in time; what it started ends with it."""
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False


def survivors_of(bench: Bench, count: int, budget: float, jobs: int) -> tuple[int, list[str]]:
    """How many mutants were tried, and those that no test noticed."""
    lines = (bench.source / bench.name).read_text().splitlines(keepends=True)
    mutants = mutants_of(lines)
    random.Random(bench.name).shuffle(mutants)
    start = time.monotonic()
    unchanged = bench.is_noticed("".join(lines), TIMEOUT_S)
    if unchanged is not False:
        sys.exit(f"{bench.name}: {'cannot be built' if unchanged is None else 'its tests fail'} as it is")
    seconds = 20 + 10 * (time.monotonic() - start)

    def noticed(mutant: Mutant) -> bool | None:
        if time.monotonic() > start + budget:
            return None
        return bench.is_noticed("".join([*lines[: mutant.line], mutant.text, *lines[mutant.line + 1 :]]), seconds)

    with ThreadPoolExecutor(jobs) as pool:
        found = list(zip(mutants, pool.map(noticed, mutants[:count])))
    survivors = [f"{bench.name}:{mutant.line + 1}\n- {lines[mutant.line].strip()}\n+ {mutant.text.strip()}"
                 for mutant, killed in found if killed is False]
    return sum(killed is not None for _, killed in found), survivors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("files", nargs="*", default=list(TESTS))
    parser.add_argument("--count", type=int, default=1000, help="mutants of a file at most")
    parser.add_argument("--budget", type=float, default=3600, help="seconds, for all files")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="mutants at once")
    options = parser.parse_intermixed_args()
    for name in options.files:
        bench = Bench(options.build.resolve(), name)
        tried, survivors = survivors_of(bench, options.count, options.budget / len(options.files), options.jobs)
        killed = tried - len(survivors)
        print(f"{name}: {killed} of {tried} mutants killed ({100 * killed / max(1, tried):.0f} %)", flush=True)
        for survivor in survivors:
            print(survivor, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs the tests that need a GPU, from a build that may have been made elsewhere: the cases in C++ with the ctest label `gpu`,
each in a process of its own, the examples, and the tests of the Python package in tests/python/gpu.

    tests/run_gpu_tests.py BUILD_FOLDER [NAME...]     # all, or those with a NAME in their file or case
    tests/run_gpu_tests.py BUILD_FOLDER --sanitize    # and then the kernels at small sizes under compute-sanitizer
    tests/run_gpu_tests.py BUILD_FOLDER --images DIR  # images are kept there: the next run compiles what has changed

Most of the time is compiling, so that many run side by side. What each of them came to is said when it ends, with all that a failed one
printed; at the end, also of a run that is cut off, stand the slowest, and those that failed, were skipped or did not come to an end.
Exit code: 0 when none failed or was cut off, 77 when there is no GPU.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, TextIO

TREE = Path(__file__).resolve().parents[1]
SKIPPED = 77  # the exit code that ctest knows, too
# What a process takes beside its compilers: a context on the GPU, PyTorch and its models.
GPU_MIB = {"C++": 1500, "Python": 4000}
MEMORY_MIB = {"C++": 2000, "Python": 5000}

# What takes longest begins first, by parts of the names.
LONGEST = (
    "decoder_", "accelerate_", "variants_gpu_test", "ring is right", "ring_w8 is right", "tiles of two widths", "neighbours take tiles",
    "tiles of 192 rows", "two blocks join", "sorted masses", "late maxima",
)  # fmt: skip
# The cases that are small enough for compute-sanitizer, by their names: a new one is "small ..." or "rows with a stride ...".
SMALL = (
    "small *,rows with a stride*,gradients of rows with a stride*,tokens of rows with a stride*,*any head dimension*,"
    "residual and quantized*,resident groups*"
)
# racecheck does not see that a warp's reads are over when its first lane arrives at an mbarrier behind __syncwarp(), which is how
# variant ring gives its stages back, and two_widths, whose ring comes round at any size
# (docs/compute-sanitizer.md): it runs without them, and without the operators that may choose ring.
WITHOUT_RACECHECK = "quantized_linear/ring/kernel.cu,quantized_linear/two_widths/kernel.cu"


VERDICTS = ("passed", "skipped", "failed", "out of time", "cut off")


class Job(NamedTuple):
    name: str
    command: List[str]
    kind: str = "C++"
    environment: Dict[str, str] = {}
    alone: bool = False  # it measures times: nothing runs beside it


class Ended(NamedTuple):
    job: Job
    verdict: str  # one of VERDICTS
    seconds: float
    cpu_seconds: float
    said: str

    @property
    def is_bad(self) -> bool:
        return self.verdict not in ("passed", "skipped")


class Running:
    """A job's process, with a group and a file for its output of its own."""

    def __init__(self, job: Job, limit: float) -> None:
        self.job, self.begin = job, time.monotonic()
        self.end = self.begin + limit
        self.output: TextIO = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(
            job.command, cwd=TREE, env={**os.environ, **job.environment}, stdin=subprocess.DEVNULL,
            stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        if job.kind == "C++" and not job.alone:  # many short ones, which would keep the few long ones from a core
            os.setpriority(os.PRIO_PGRP, self.process.pid, 5)

    def poll(self) -> Optional[Ended]:
        """What it came to; None while it runs."""
        if time.monotonic() >= self.end:
            return self.kill("out of time")
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if pid == 0:
            return None
        return self._ended(None, os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)

    def kill(self, verdict: str) -> Ended:
        os.killpg(self.process.pid, signal.SIGKILL)
        _, _, usage = os.wait4(self.process.pid, 0)
        return self._ended(verdict, -signal.SIGKILL, usage.ru_utime + usage.ru_stime)

    def _ended(self, verdict: Optional[str], code: int, cpu_seconds: float) -> Ended:
        self.process.returncode = code
        self.output.seek(0)
        said = self.output.read()
        self.output.close()
        if verdict is None:
            verdict = "skipped" if code == SKIPPED or all_skipped(said) else "failed" if code else "passed"
            if verdict == "failed":
                said += f"exit code {code}\n"
        return Ended(self.job, verdict, time.monotonic() - self.begin, cpu_seconds, said)


def all_skipped(said: str) -> bool:
    """By unittest's last lines. Whether those that were skipped count among the tests that ran depends on the version of Python."""
    found = re.search(r"^Ran (\d+) tests? in .*\s+(?:OK|NO TESTS RAN) \(skipped=(\d+)\)$", said, re.M)
    return found is not None and int(found[2]) >= int(found[1])


class Suite:
    """Runs jobs in their order, `places` of a kind side by side; those that measure times when all others have ended, one after the other."""

    def __init__(self, places: Dict[str, int], limit: float, out: TextIO = sys.stdout) -> None:
        self.places, self.limit, self.out = places, limit, out
        self.ended: List[Ended] = []
        self._running: List[Running] = []

    def run(self, jobs: List[Job], within: float = float("inf")) -> None:
        """None takes longer than the limit, all together no longer than `within` seconds. What is left then, or when something is raised here,
        is killed and counts as cut off."""
        end = time.monotonic() + within
        waiting = sorted(jobs, key=lambda job: job.alone)
        try:
            while (waiting or self._running) and time.monotonic() < end:
                if not self._take_ended() and not self._begin_one(waiting):
                    time.sleep(0.02)
        finally:
            for one in self._running:
                self._say(one.kill("cut off"))
            self._running = []
            self.ended += [Ended(job, "cut off", 0.0, 0.0, "") for job in waiting]

    def summary(self) -> None:
        """The slowest, and every one that did not pass by its name."""
        self._print("\nseconds  of a CPU  the slowest")
        for one in sorted(self.ended, key=lambda one: -one.seconds)[:15]:
            self._print(f"{one.seconds:7.1f}  {one.cpu_seconds:8.1f}  {one.job.name}")
        total = sum(one.cpu_seconds for one in self.ended)
        self._print(f"{total:.0f} seconds of CPUs in all")
        counts = []
        for verdict in VERDICTS:
            names = [one.job.name for one in self.ended if one.verdict == verdict]
            if verdict in ("skipped", "cut off"):
                for name in names:
                    self._print(f"{verdict}: {name}")
            if names:
                counts.append(f"{len(names)} {verdict}" + (f" ({'; '.join(names)})" if verdict in ("failed", "out of time") else ""))
        self._print(", ".join(counts) or "nothing ran")

    def _take_ended(self) -> bool:
        for one in self._running:
            ended = one.poll()
            if ended is not None:
                self._running.remove(one)
                self._say(ended)
                return True
        return False

    def _begin_one(self, waiting: List[Job]) -> bool:
        if any(one.job.alone for one in self._running):
            return False
        for job in waiting:
            beside = sum(one.job.kind == job.kind for one in self._running)
            if not self._running if job.alone else beside < self.places[job.kind]:
                waiting.remove(job)
                self._running.append(Running(job, self.limit))
                return True
        return False

    def _say(self, ended: Ended) -> None:
        self.ended.append(ended)
        self._print(f"{ended.verdict}, {ended.seconds:.1f} s ({ended.cpu_seconds:.1f} of a CPU): {ended.job.name}")
        if ended.is_bad or ended.verdict == "skipped":
            self._print("".join(f"    {line}\n" for line in ended.said.splitlines()).rstrip("\n"))

    def _print(self, line: str) -> None:
        print(line, file=self.out, flush=True)


def measures_times(file: Path) -> bool:
    """It says so itself, in a line that begins with `// Measures times` or `# Measures times`."""
    return re.search(r"^(//|#) Measures times", file.read_text(encoding="utf-8"), re.M) is not None


def parts_of(file: Path) -> List[str]:
    """A file with a line `// In 3 parts` or `# In 3 parts` runs three times side by side, for a part each: HONE_TEST_PART=2/3."""
    found = re.search(r"^(?://|#) In (\d+) parts$", file.read_text(encoding="utf-8"), re.M)
    count = int(found[1]) if found else 1
    return [f"{part}/{count}" for part in range(1, count + 1)]


def named(part: str) -> str:
    return "" if part == "1/1" else f", {part}"


def cpp_jobs(build: Path, images: Optional[Path] = None) -> List[Job]:
    """Each case by itself. A case has its compilers in as many processes as there are cores."""
    jobs = []
    for file in sorted(TREE.glob("tests/*/*_gpu_test.cpp")):
        name = str(file.relative_to(TREE))
        program = [str(build / "tests" / f"hone_{file.parent.name}_tests"), f"--source-file=*/{name}"]
        if not Path(program[0]).exists():
            sys.exit(f"error: {program[0]} is missing: cmake --build {build} --target {Path(program[0]).name}")
        listed = subprocess.run([*program, "--list-test-cases", "--no-colors"], capture_output=True, text=True, check=False)
        if listed.returncode == SKIPPED:
            print(listed.stdout, end="")
            sys.exit(SKIPPED)
        cases = [line for line in listed.stdout.splitlines() if not line.startswith(("[doctest]", "==="))]
        if listed.returncode != 0 or not cases:
            sys.exit(f"error: {program[0]} names no cases of {name}: build it anew\n{listed.stdout}{listed.stderr}")
        alone = measures_times(file)
        for case, part in itertools.product(cases, parts_of(file)):
            command = [*program, "--test-case=" + case.replace(",", "\\,")]
            environment = {"HONE_TEST_PART": part, **({"HONE_TEST_CACHE": str(images)} if images else {})}
            jobs.append(Job(f"{name}: {case}" + named(part), command, "C++", environment, alone))
    return jobs


def example_jobs(build: Path, folder: Path) -> List[Job]:
    """What programs on the public interface compute is checked by themselves; the built ones need no arguments."""
    names = sorted(file.stem for pattern in ("*.cpp", "*.c") for file in (TREE / "examples").glob(pattern))
    cache = {"HONE_CACHE": str(folder / "cache.db")}
    return [Job(f"examples/{name}", [str(build / "examples" / name)], environment=cache) for name in names]


def python_jobs(build: Path, folder: Path) -> List[Job]:
    """All files, with one cache, that of the examples, which starts empty."""
    path = os.pathsep.join(filter(None, (str(TREE / "python"), os.environ.get("PYTHONPATH"))))
    environment = {
        "PYTHONPATH": path, "HONE_LIBRARY": str(build / "libhone.so.0"), "HONE_PROGRAM": str(build / "hone"),
        "HONE_CACHE": str(folder / "cache.db"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "2",  # not one for each core in every file
    }  # fmt: skip
    discover = [os.environ.get("PYTHON", sys.executable), "-B", "-m", "unittest", "discover", "-s", "tests/python/gpu", "-p"]
    jobs = []
    for file in sorted((TREE / "tests/python/gpu").glob("*_test.py")):
        for part in parts_of(file):
            name = f"tests/python/gpu/{file.name}" + named(part)
            jobs.append(Job(name, [*discover, file.name], "Python", {**environment, "HONE_TEST_PART": part}, measures_times(file)))
    return jobs


def sanitizer_jobs(build: Path, folder: Path) -> List[Job]:
    """Every variant of every family, then the operators as programs call them."""
    jobs = []
    images = {"HONE_TEST_CACHE": str(folder / "images.db")}
    for tool in ("memcheck", "synccheck", "initcheck", "racecheck"):
        environment = {**images, **({"HONE_TEST_WITHOUT": WITHOUT_RACECHECK} if tool == "racecheck" else {})}

        def add(processes: str, program: str, *arguments: str) -> None:
            command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--target-processes", processes]
            jobs.append(Job(f"{tool} {' '.join(arguments)}", [*command, str(build / "tests" / program), *arguments], "sanitizer", environment))

        add("application-only", "hone_tuner_tests", "--source-file=*/variants_gpu_test.cpp")
        for file in sorted((TREE / "tests/runtime").glob("*_gpu_test.cpp")) if tool != "initcheck" else []:
            if (tool, file.name) != ("racecheck", "quantized_linear_gpu_test.cpp"):
                add("all", "hone_runtime_tests", f"--source-file=*/{file.name}", f"--test-case={SMALL}")
    return jobs


def places_here() -> Dict[str, int]:
    """As many as there are cores, half of each kind, and as memory and the GPU's have room for. Each has as many compilers as there are cores."""
    cores = len(os.sched_getaffinity(0))
    asked = ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    try:
        gpu_mib = int(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0])
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError):
        gpu_mib = 24576
    memory_mib = int(re.search(r"MemAvailable: *(\d+)", Path("/proc/meminfo").read_text())[1]) // 1024
    places = {kind: max(1, min(-(-cores // 2), gpu_mib // 2 // GPU_MIB[kind], memory_mib // 2 // MEMORY_MIB[kind])) for kind in GPU_MIB}
    return {**places, "sanitizer": 1}


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD_FOLDER", type=lambda text: Path(text).resolve())
    parser.add_argument("names", metavar="NAME", nargs="*", help="part of the file or of the case")
    parser.add_argument("--sanitize", action="store_true", help="small sizes under compute-sanitizer, too")
    parser.add_argument("--images", metavar="DIR", type=Path, help="keep images there, and take those that are there")
    parser.add_argument("--limit", metavar="SECONDS", type=float, default=300, help="for a case or file (default: %(default)s)")
    parser.add_argument("--within", metavar="SECONDS", type=float, default=float("inf"), help="for all of them; what is left then is cut off")
    asked = parser.parse_intermixed_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what runs is ended, and the summary said
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.images.resolve() if asked.images else Path(scratch)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        images = folder / "images.db" if asked.images else None
        jobs = python_jobs(asked.build, folder) + cpp_jobs(asked.build, images) + example_jobs(asked.build, folder)
        jobs = [job for job in jobs if not asked.names or any(name in job.name for name in asked.names)]
        jobs.sort(key=lambda job: not any(part in job.name for part in LONGEST))
        suite = Suite(places_here(), asked.limit)
        try:
            suite.run(jobs, asked.within)
            if asked.sanitize:
                suite.limit = float("inf")
                suite.run(sanitizer_jobs(asked.build, folder))
        finally:
            suite.summary()
    return 1 if any(one.is_bad for one in suite.ended) or not suite.ended else 0


if __name__ == "__main__":
    sys.exit(main())

"""What a process pays before it has chosen a kernel: cache layers, the winners that ship, the catalog.

    python3 bench/process_start.py HONE [HONE_BEFORE]... [--processes 1,4] [--times 20]

Runs `hone explain PROBLEM` of each program in turns, so many processes side by side, with and without the
packaged winners, and prints medians in milliseconds: CPU time (user and system) of one process, and wall time
until the last of those side by side has ended. The user's cache is an empty file of its own.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time
from typing import Dict, List, Tuple

PROBLEMS = [
    "rmsnorm dtype=bf16 hidden=4096 rows=16",
    "linear dtype=bf16 in=4096 out=4096 tokens=8",
    "quantized_linear dtype=bf16 format=w4a16 group=128 in=4096 out=6144 tokens=8",
]


def cpu_ms() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (usage.ru_utime + usage.ru_stime)


def run(program: str, problem: str, count: int, environment: Dict[str, str]) -> Tuple[float, float]:
    """Milliseconds of CPU a process, and of wall time."""
    command = [program, "explain", *problem.split(), "--arch", "sm_90a"]
    before, begin = cpu_ms(), time.perf_counter()
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(count)
    ]
    for process in processes:
        if process.wait() != 0:
            raise SystemExit(f"{' '.join(command)} failed")
    return (cpu_ms() - before) / count, 1000 * (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("programs", nargs="+", metavar="HONE")
    parser.add_argument("--processes", default="1,4", help="side by side (default: 1,4)")
    parser.add_argument("--times", type=int, default=20)
    options = parser.parse_args()
    samples: Dict[Tuple[int, str, str], List[Tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.times):
            for count in map(int, options.processes.split(",")):
                for packaged in ("on", "off"):
                    environment = {**os.environ, "HONE_CACHE": f"{folder}/cache.db", "HONE_PACKAGED": packaged}
                    for program in options.programs:
                        for problem in PROBLEMS:
                            sample = run(program, problem, count, environment)
                            samples.setdefault((count, packaged, program), []).append(sample)
    print(f"{'processes':>9} {'packaged':>8} {'CPU ms':>8} {'wall ms':>8}  program")
    for (count, packaged, program), values in samples.items():
        cpu, wall = (statistics.median(column) for column in zip(*values))
        print(f"{count:9} {packaged:>8} {cpu:8.1f} {wall:8.1f}  {program}")


if __name__ == "__main__":
    main()

"""Writes a recorded sweep as cache files of Kernel Tuner, which its simulation mode searches without a GPU:

    python3 bench/kernel_tuner_cache.py configs/recorded/h200-sxm.jsonl --out FOLDER

One file a problem, in the form of its schema cache/1.1.0. The space is what was recorded, and not the product of the values:
a simulation has to be restricted to configurations that the file has. Recordings do not say how long compiling and
verifying took, nor when: these are 0, and the beginning of 1970.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Dict

from recorded_space import Space, read_recording

ERRORS = {"over_limits": "InvalidConfig", "compile_failed": "CompilationFailedConfig"}
NOT_RECORDED = {"compile_time": 0, "verification_time": 0, "strategy_time": 0, "framework_time": 0,
                "timestamp": "1970-01-01T00:00:00+00:00"}  # fmt: skip


def entry(config: Dict[str, Any], record: Dict[str, Any], us: float) -> Dict[str, Any]:
    """Times in milliseconds."""
    times = [sample / 1000 for sample in record.get("us", [])]
    if record["status"] == "ok" and times:
        return {**config, "time": us / 1000, "times": times, "benchmark_time": sum(times), **NOT_RECORDED}
    error = ERRORS.get(record["status"], "RuntimeFailedConfig")
    return {**config, "time": error, "benchmark_time": 0, **NOT_RECORDED}


def cache_of(space: Space) -> Dict[str, Any]:
    family, fields = space.problem.split(" ", 1)
    columns = zip(*space.configs)
    cache = {}
    for config, record, us in zip(space.configs, space.records, space.us()):
        cache[",".join(map(str, config))] = entry(dict(zip(space.keys, config)), record, us)
    return {
        "schema_version": "1.1.0",
        "device_name": space.device,
        "kernel_name": family,
        "problem_size": fields,
        "tune_params_keys": space.keys,
        "tune_params": {key: sorted(set(values)) for key, values in zip(space.keys, columns)},
        "objective": "time",
        "cache": cache,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    written = 0
    for number, space in enumerate(read_recording(options.recording)):
        file = options.out / f"{space.family}-{number:03}.json"
        file.write_text(json.dumps(cache_of(space), indent=1) + "\n", encoding="utf-8")
        written += 1
    print(f"{written} files in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

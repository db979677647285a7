"""bench/kernel_tuner_cache.py: recorded sweeps in the form that Kernel Tuner's simulation mode reads."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict

from fakes import TREE

sys.path.insert(0, str(TREE / "bench"))
import kernel_tuner_cache
import recorded_space

HEADER = {"schema": "hone.recorded/1", "device": {"gpu": {"name": "Made Up"}}}
PROBLEM = {
    "problem": "linear dtype=bf16 in=64 out=128 tokens=4",
    "calls_per_replay": 10,
    "candidates": {
        "gemv rows=1 unroll=4": {"status": "ok", "us": [3.0, 1.0, 2.0]},
        "gemv rows=2 unroll=4": {"status": "over_limits"},
        "mma rows=16 tile=64": {"status": "ok", "us": [30.0 + i for i in range(20)]},
        "mma rows=32 tile=64": {"status": "compile_failed"},
        "mma rows=64 tile=64": {"status": "timed_out"},
    },
}
REQUIRED = {"time", "compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time", "timestamp"}


class Converter(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def write(self, *rows: Dict[str, Any]) -> Path:
        file = self.folder / "sweep.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return file

    def cache(self) -> Dict[str, Any]:
        (space,) = recorded_space.read_recording(self.write(HEADER, PROBLEM))
        return kernel_tuner_cache.cache_of(space)

    def test_the_head_names_device_kernel_problem_and_parameters(self) -> None:
        cache = self.cache()
        entries = cache.pop("cache")
        self.assertEqual(cache, {
            "schema_version": "1.1.0",
            "device_name": "Made Up",
            "kernel_name": "linear",
            "problem_size": "dtype=bf16 in=64 out=128 tokens=4",
            "tune_params_keys": ["variant", "rows", "unroll", "tile"],
            "tune_params": {"variant": ["gemv", "mma"], "rows": [1, 2, 16, 32, 64], "unroll": [-1, 4], "tile": [-1, 64]},
            "objective": "time",
        })  # fmt: skip
        self.assertEqual(list(entries), ["gemv,1,4,-1", "gemv,2,4,-1", "mma,16,-1,64", "mma,32,-1,64", "mma,64,-1,64"])

    def test_times_are_milliseconds_and_failures_are_words(self) -> None:
        entries = self.cache()["cache"]
        for entry in entries.values():
            self.assertEqual(REQUIRED - set(entry), set())
        short = entries["gemv,1,4,-1"]
        self.assertAlmostEqual(short["time"], 0.002)
        self.assertEqual([round(time, 6) for time in short["times"]], [0.003, 0.001, 0.002])
        self.assertAlmostEqual(short["benchmark_time"], 0.006)
        self.assertAlmostEqual(entries["mma,16,-1,64"]["time"], 0.032)  # the tenth percentile of a long call
        self.assertEqual([entry["time"] for entry in entries.values() if isinstance(entry["time"], str)],
                         ["InvalidConfig", "CompilationFailedConfig", "RuntimeFailedConfig"])  # fmt: skip

    def test_the_sweeps_of_the_tree_come_out_whole(self) -> None:
        file = TREE / "configs/recorded/h200-sxm.jsonl"
        script = TREE / "bench/kernel_tuner_cache.py"
        command = [sys.executable, "-B", str(script), str(file), "--out", str(self.folder / "out")]
        self.assertEqual(subprocess.run(command, stdout=subprocess.PIPE, check=True).returncode, 0)
        written = sorted((self.folder / "out").iterdir(), key=lambda path: int(path.stem.rsplit("-", 1)[1]))
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()[1:]]
        self.assertEqual(len(written), len(rows))
        for path, row in zip(written, rows):
            self.check_file(json.loads(path.read_text(encoding="utf-8")), row)

    def check_file(self, cache: Dict[str, Any], row: Dict[str, Any]) -> None:
        self.assertEqual(f"{cache['kernel_name']} {cache['problem_size']}", row["problem"])
        self.assertEqual(len(cache["cache"]), len(row["candidates"]))
        for key, entry in cache["cache"].items():
            values = [entry[name] for name in cache["tune_params_keys"]]
            self.assertEqual(key, ",".join(map(str, values)))
            self.assertTrue(all(entry[name] in cache["tune_params"][name] for name in cache["tune_params_keys"]))
            present = [f"{name}={entry[name]}" for name in cache["tune_params_keys"][1:] if entry[name] != -1]
            recorded = row["candidates"][self.text_of(row, entry["variant"], set(present))]
            self.assertEqual(isinstance(entry["time"], str), recorded["status"] != "ok")
            if recorded["status"] == "ok" and statistics.median(recorded["us"]) < 20:
                self.assertTrue(math.isclose(1000 * entry["time"], statistics.median(recorded["us"])))

    def text_of(self, row: Dict[str, Any], variant: str, tunables: set) -> str:
        """The candidate with these, whatever their order."""
        if row is not getattr(self, "row", None):
            self.row = row
            self.texts = {(text.split()[0], frozenset(text.split()[1:])): text for text in row["candidates"]}
        return self.texts[variant, frozenset(tunables)]

    def test_what_is_no_recording_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "sweep.jsonl: its first line is of no recorded sweep"):
            list(recorded_space.read_recording(self.write({"schema": "else"})))


if __name__ == "__main__":
    unittest.main()

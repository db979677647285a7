"""bench/python_call.py runs, and times what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest

from fakes import TREE


class PythonCall(unittest.TestCase):
    def test_every_line_has_a_time(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "results.json")
            bench = str(TREE / "bench" / "python_call.py")
            # A number that PyTorch's driver has not; the fake one does not read numbers.
            ended = subprocess.run(
                [sys.executable, "-B", bench, "--rounds", "3", "--json", file],
                env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            self.assertEqual(ended.returncode, 0)
            with open(file, encoding="utf-8") as text:
                results = json.load(text)["results"]
        times = {result["call"]: result["median_ns"] for result in results}
        self.assertEqual(len(times), 6)
        self.assertGreater(min(times.values()), 0)
        self.assertLess(times["hone_norm_run(...) in C"], times["norm(x, weight)"])
        for call in times:
            self.assertIn(call, ended.stdout)


if __name__ == "__main__":
    unittest.main()

"""Every operator has an example in C++ that prepares and launches. The fake driver computes nothing: there an example
ends by saying that its results are wrong, which is what its check is for."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Dict

TREE = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ["HONE_EXAMPLES"])
OPERATORS = sorted(page.stem for page in (TREE / "docs" / "operators").glob("*.md") if page.stem != "README")
FAILURE, NO_GPU, WRONG_RESULTS = 1, 3, 4


class Programs(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        cache = Path(scratch.name) / "cache"
        cache.mkdir(mode=0o700)
        self.cache = {"HONE_CACHE": str(cache / "cache.db"), "HONE_PACKAGED": "off"}

    def run_program(self, name: str, environment: Dict[str, str]) -> subprocess.CompletedProcess:
        return subprocess.run(
            [BUILT / name], env={**os.environ, **self.cache, **environment}, capture_output=True, text=True, timeout=120
        )

    def test_there_is_one_for_every_operator_and_no_other(self) -> None:
        sources = {path.stem for path in (TREE / "examples").glob("*.cpp")}
        self.assertEqual(sources, set(OPERATORS))

    def test_the_tutorial_lists_them(self) -> None:
        text = (TREE / "docs" / "tutorial.md").read_text(encoding="utf-8")
        linked = re.findall(r"\(\.\./examples/(?:python/)?(\w+)\.(cpp|py)\) \|", text)
        self.assertEqual(sorted(linked), sorted((name, kind) for name in OPERATORS for kind in ("cpp", "py")))

    def test_they_prepare_and_launch(self) -> None:
        for name in OPERATORS:
            if name == "quantize_weights":  # below
                continue
            with self.subTest(name):
                ended = self.run_program(name, {})
                self.assertEqual(ended.returncode, WRONG_RESULTS, ended.stderr)
                self.assertRegex(ended.stdout, r"WRONG\n$")
                self.assertRegex(ended.stdout, re.compile(r"^  runs \w+ .*\(fallback\)$", re.MULTILINE))

    def test_quantizing_launches_and_reads_which_rows_had_codes(self) -> None:
        ended = self.run_program("quantize_weights", {})
        self.assertEqual(ended.returncode, FAILURE, ended.stdout)
        self.assertIn("row 0 of the weight has no codes", ended.stderr)

    def test_the_one_in_c_prepares_and_launches(self) -> None:
        ended = self.run_program("c_rms_norm", {})
        self.assertEqual(ended.returncode, WRONG_RESULTS, ended.stderr)
        self.assertIn("largest error", ended.stdout)

    def test_without_a_gpu_they_say_so(self) -> None:
        for name in [*OPERATORS, "c_rms_norm"]:
            with self.subTest(name):
                ended = self.run_program(name, {"HONE_CUDA_LIBRARY": "/nowhere/libcuda.so.1"})
                self.assertEqual(ended.returncode, NO_GPU, ended.stderr)
                self.assertIn("/nowhere/libcuda.so.1", ended.stderr)


if __name__ == "__main__":
    unittest.main()

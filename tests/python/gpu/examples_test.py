"""Every program of examples/python computes what PyTorch does: each in a process of its own, as a person would
start it."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path

import support  # noqa: F401 - skips where PyTorch or a GPU is missing

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "python"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.stem != "checking")
# A whole model takes minutes to tune; its norms do.
TUNES_LESS = """
import runpy, sys
import hone
tune = hone.tune
hone.tune = lambda model: tune(model, op="rmsnorm", tokens=[16], effort="quick")
sys.path.insert(0, sys.argv[1])
del sys.argv[:2]  # the example's own, which has no arguments
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        """All at once: most of their time is one thread's compiling."""
        cls.started = {path.stem: cls.start(path) for path in EXAMPLES}

    @staticmethod
    def start(path: Path) -> subprocess.Popen:
        words = [sys.executable, "-B", "-c", TUNES_LESS, str(FOLDER), str(path)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_they_are_right(self) -> None:
        for name, process in self.started.items():
            with self.subTest(name):
                said, _ = process.communicate()
                self.assertEqual(process.returncode, 0, said)
                self.assertIn("relative error", said)


if __name__ == "__main__":
    unittest.main()

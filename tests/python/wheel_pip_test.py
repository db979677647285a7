"""The wheel through pip, in a virtual environment of its own. Exit code 77, skipped, where this Python has no
pip to put there (Debian's is in python3-venv)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from fakes.wheel import build_wheel, environment_of_a_user

import hone


class Installed(unittest.TestCase):
    def test_it_is_installed_used_and_taken_away_again(self) -> None:
        with tempfile.TemporaryDirectory(prefix="hone-pip-test-") as name:
            folder = Path(name)
            wheel = build_wheel(folder / "dist")
            self.folder = folder
            self.run_tool(sys.executable, "-m", "venv", str(folder / "env"))
            self.run_tool("env/bin/python", "-m", "pip", "install", "--no-index", str(wheel))
            self.assertIn(hone.__version__, self.run_tool("env/bin/hone", "--version"))
            dry_run = self.run_tool("env/bin/hone", "tune", "--dry-run", "--json", "llama-3-8b")
            self.assertIn("hidden=4096", dry_run)
            where = self.run_tool("env/bin/python", "-c", "import hone; print(hone.__file__)")
            self.assertTrue(where.startswith(f"{folder}/env/lib/"), where)
            self.run_tool("env/bin/python", "-m", "pip", "check")
            self.run_tool("env/bin/python", "-m", "pip", "uninstall", "--yes", "hone")
            self.assertEqual([str(path) for path in (folder / "env").rglob("*hone*")], [])

    def run_tool(self, *command: str) -> str:
        ended = subprocess.run(
            command, cwd=self.folder, env=environment_of_a_user(), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.assertEqual(ended.returncode, 0, ended.stdout)
        return ended.stdout


if __name__ == "__main__":
    if importlib.util.find_spec("ensurepip") is None:
        print("skipped: this Python has no ensurepip")
        sys.exit(77)
    unittest.main()

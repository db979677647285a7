"""What the tests of the fleet examples share: the fake GPUs, a folder for a fleet, and what its caches know."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Dict, Optional

TREE = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ["HONE_PROGRAM"])
MODEL = ["llama-3-8b", "--op", "rmsnorm", "--tokens", "1,2,4,8,16,32"]  # two static parts
PROBLEMS = 12


class FleetTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="hone-fleet-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.fleet = self.folder / "fleet"
        self.environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "HONE_PACKAGED": "off",
                            "HOME": str(self.folder), "FLEET": str(self.fleet)}

    def hone(self, cache: Path, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([PROGRAM, *words], env={**self.environment, "HONE_CACHE": str(cache)},
                              capture_output=True, text=True, timeout=120, check=False)

    def winners(self, cache: Path) -> Dict[str, str]:
        """The candidate of each problem."""
        listed = json.loads(self.hone(cache, "list", "--json").stdout)["data"]["winners"]
        return {f"{row['family']} {row['static']} {row['dynamic']}": row["candidate"] for row in listed}

    def problems_of_one_run(self) -> Dict[str, str]:
        alone = self.folder / "alone"
        alone.mkdir(mode=0o700)
        self.assertEqual(self.hone(alone / "cache.db", "tune", *MODEL).returncode, 0)
        return self.winners(alone / "cache.db")


def missing_program(*names: str) -> Optional[str]:
    """The first of them that is not installed."""
    folders = os.get_exec_path() + ["/usr/sbin", "/sbin"]
    return next((name for name in names if not any(Path(folder, name).is_file() for folder in folders)), None)

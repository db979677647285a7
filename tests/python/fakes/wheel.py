"""The wheel of the build under test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Dict

from . import TREE


def build_wheel(output: Path) -> Path:
    """Runs python/build_wheel.py on the folder of the library under test."""
    build = Path(os.environ["HONE_LIBRARY"]).parent
    script = TREE / "python" / "build_wheel.py"
    ended = subprocess.run(
        [sys.executable, "-B", str(script), "--build", str(build), "--output", str(output)],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return Path(ended.stdout.strip())


def environment_of_a_user(**changes: str) -> Dict[str, str]:
    """The environment without what points to this tree and its build."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "PYTHON"))}
    return {**kept, "HONE_CACHE": os.environ["HONE_CACHE"], "HONE_PACKAGED": "off", **changes}

"""Stand-ins for what the Python tests have no real one of: GPUs, PyTorch, arrays of other libraries.

Importing this sets the process up, before it imports hone: the package of this tree, the library, the program
and the fake driver that the environment names (as ctest does) or else those of build/release, and a cache of
its own.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]

_BUILT = {
    "HONE_LIBRARY": "libhone.so.0",
    "HONE_PROGRAM": "hone",
    "HONE_CUDA_LIBRARY": "tests/libfake_cuda.so",
    "HONE_NVRTC_LIBRARY": "tests/libfake_nvrtc.so",
    "HONE_NVML_LIBRARY": "tests/libfake_nvml.so",
}

for _name, _file in _BUILT.items():
    _path = os.environ.setdefault(_name, str(TREE / "build" / "release" / _file))
    if not Path(_path).is_file():
        raise FileNotFoundError(f"{_name}: {_path} is not there; `./hone test` builds it")

sys.path.insert(0, str(TREE / "python"))
_folder = tempfile.TemporaryDirectory(prefix="hone-python-test-")
os.environ["HONE_CACHE"] = os.path.join(_folder.name, "cache.db")
os.environ["HONE_PACKAGED"] = "off"  # the fake GPU looks like one that Hone ships results for
for _name in ("HONE_FAKE_SCRIPT", "HONE_SITE_CACHE", "HONE_DATA_DIR", "HONE_WORKER_EXECUTABLE"):
    os.environ.pop(_name, None)

PROGRAM = os.environ["HONE_PROGRAM"]

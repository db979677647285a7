"""What the campaign's tests share: the program in a folder of its own, on the fake driver, and under the
shim.

HONE_BUILD names the build folder. Inside of tests/campaign.sh, HONE_CAMPAIGN_RESULTS names the file that gets
what was reached, and HONE_CAMPAIGN_SECONDS how long one test may take: it goes through all of its points in a
random order until then. HONE_CAMPAIGN_SHARD=i/n leaves it every n-th of them, from the i-th (from 0) on: n
processes share them. Else a test takes a sample of its points, scaled by HONE_TEST_SCALE.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
import unittest
from dataclasses import dataclass
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HONE_BUILD", Path(__file__).parents[2] / "build/release")).resolve()
HONE = str(BUILD / "hone")
ENGINE = str(BUILD / "tests/hone_engine")
DECODING_ENGINE = str(BUILD / "tests/hone_decoding_engine")
SHIM = str(BUILD / "tests/libhone_shim.so")

RESULTS = os.environ.get("HONE_CAMPAIGN_RESULTS")
SHARD, SHARDS = map(int, os.environ.get("HONE_CAMPAIGN_SHARD", "0/1").split("/"))
SCALE = float(os.environ.get("HONE_TEST_SCALE", "1"))

# What the README lists, and the end by SIGINT. Anything else is a fault.
EXIT_CODES = {0, 1, 2, 3, 4, 5, 6, 7, 130}

NORM = ["dtype=bf16", "hidden=4096", "rows=16"]


def tune(hidden: int = 4096, *more: str) -> list[str]:
    """A tuning run of a tenth of a second: one static problem, two sizes, some candidates."""
    return [HONE, "tune", "--op", "rmsnorm", "--fields", f"dtype=bf16 hidden={hidden}", "--tokens", "1,16",
            "--effort", "quick", *more]


def report(promise: int, test: str, what: str, count: int, **details) -> None:
    """One line of what was reached, for docs/reliability.md."""
    line = {"promise": promise, "test": f"campaign.{test}", "what": what, "count": count, **details}
    print(json.dumps(line), flush=True)
    if RESULTS:
        with open(RESULTS, "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")


@dataclass
class Points:
    """Which of the points from 1 to `total` are tried: a sample, or in the campaign all that time allows."""

    total: int
    sample: int
    share: float = 1.0  # of the campaign's seconds for this test
    tried: int = 0
    seed: int = 16
    among: list[int] | None = None  # `total` numbers; all from 1 on where it is left out

    def __iter__(self):
        order = list(self.among if self.among is not None else range(1, self.total + 1))
        random.Random(self.seed).shuffle(order)
        if RESULTS:
            order = order[SHARD::SHARDS]
        else:
            order = order[: max(1, round(self.sample * SCALE))]
        end = time.monotonic() + float(os.environ.get("HONE_CAMPAIGN_SECONDS", "60")) * self.share
        for point in order:
            if RESULTS and time.monotonic() > end:
                return
            self.tried += 1
            yield point


@dataclass
class Ended:
    code: int  # negative: minus the signal
    out: str
    err: str
    seconds: float
    words: str  # for a message: the command, its code and the end of its stderr


class Box:
    """A folder with a cache in it, and the program's environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.caches = folder / "cache"
        self.environment = {
            "PATH": "/usr/bin:/bin", "HOME": str(folder), "HONE_PACKAGED": "off",
            "HONE_CACHE": str(self.caches / "cache.db"),
            "HONE_CUDA_LIBRARY": str(BUILD / "tests/libfake_cuda.so"),
            "HONE_NVRTC_LIBRARY": str(BUILD / "tests/libfake_nvrtc.so"),
            "HONE_NVML_LIBRARY": str(BUILD / "tests/libfake_nvml.so"),
        }

    @property
    def cache(self) -> Path:
        return Path(self.environment["HONE_CACHE"])

    def run(self, words: list[str], timeout: float = 60, before=None, **environment: str) -> Ended:
        start = time.monotonic()
        process = subprocess.Popen(words, cwd=self.folder, env={**self.environment, **environment},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True, preexec_fn=before)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise AssertionError(f"{' '.join(words)} did not end in {timeout} s") from None
        text = err.decode(errors="replace")
        return Ended(process.returncode, out.decode(errors="replace"), text, time.monotonic() - start,
                     f"{' '.join(Path(w).name for w in words)}: code {process.returncode}: {text[-400:]}")

    def under_shim(self, words: list[str], mode: str, at: int = 0, timeout: float = 60, **settings) -> Ended:
        """Settings are the shim's variables without HONE_SHIM_, in lower case."""
        variables = {f"HONE_SHIM_{name.upper()}": str(value) for name, value in settings.items()}
        return self.run(words, timeout, LD_PRELOAD=SHIM, HONE_SHIM=mode, HONE_SHIM_AT=str(at), **variables)

    def counts(self, words: list[str]) -> dict[str, int]:
        """How many allocations, I/O calls and looks at the clock the command makes."""
        file = self.folder.parent / f"{self.folder.name}.counts"
        ended = self.under_shim(words, "count", counts=file)
        if ended.code != 0:
            raise AssertionError(ended.words)
        numbers = [int(text) for text in file.read_text().split()]
        file.unlink()
        return dict(zip(("alloc", "io", "clock"), numbers))

    def stacks(self, words: list[str]) -> list[int]:
        """Numbers of the command's allocations, one of each call stack."""
        file = self.folder.parent / f"{self.folder.name}.stacks"
        ended = self.under_shim(words, "count", stacks=file)
        if ended.code != 0:
            raise AssertionError(ended.words)
        numbers = sorted(int(line) for line in file.read_text().split())
        file.unlink()
        return numbers

    def rows(self) -> set[str]:
        """Identities of the trials, read by SQLite from a copy: the cache's own files stay untouched."""
        with tempfile.TemporaryDirectory(dir=self.folder.parent) as copy:
            for file in self.caches.glob("cache.db*"):
                shutil.copy(file, copy)
            database = sqlite3.connect(Path(copy) / "cache.db", timeout=5)
            try:
                return {row[0] for row in database.execute("SELECT identity FROM trial")}
            finally:
                database.close()


def write_checkpoint(folder: Path, layers: int = 2, size: int = 128) -> None:
    """A small model of linear layers in bf16, as `hone quantize` reads it."""
    numbers = random.Random(1)
    tensors = {}
    for layer in range(layers):
        values = b"".join(struct.pack("<H", numbers.choice([0x3C00, 0xBC23, 0x3D11, 0xBD77]))
                          for _ in range(size * size))
        tensors[f"model.layers.{layer}.mlp.up_proj.weight"] = ([size, size], values)
    tensors["model.norm.weight"] = ([size], b"\x80\x3f" * size)
    header, offset = {}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    folder.mkdir()
    content = struct.pack("<Q", len(text)) + text + b"".join(data for _, data in tensors.values())
    (folder / "model.safetensors").write_bytes(content)
    (folder / "config.json").write_text('{"torch_dtype": "bfloat16", "model_type": "llama"}')


class Case(unittest.TestCase):
    """Made once: a base cache with winners for hidden=4096, a bundle and a cache of others, a checkpoint."""

    @classmethod
    def setUpClass(cls) -> None:
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # nothing here depends on a real disk
        cls.scratch = tempfile.TemporaryDirectory(prefix="hone-campaign-", dir=memory)
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.root = Path(cls.scratch.name)
        cls.base = cls.tuned("base", 4096)
        other = cls.tuned("other", 2048)
        cls.other_cache = other.cache
        cls.bundle = cls.root / "winners.json"
        cls.must(other.run([HONE, "export", "-o", str(cls.bundle)]))
        write_checkpoint(cls.root / "checkpoint")
        cls.boxes = 0

    @classmethod
    def tuned(cls, name: str, hidden: int) -> Box:
        (cls.root / name).mkdir(mode=0o700)
        box = Box(cls.root / name)
        cls.must(box.run(tune(hidden)))
        return box

    @staticmethod
    def must(ended: Ended) -> Ended:
        if ended.code != 0:
            raise AssertionError(ended.words)
        return ended

    def fresh(self, with_cache: bool = True) -> Box:
        """A new folder, with a copy of the base cache. The one before it is removed."""
        cls = type(self)
        shutil.rmtree(self.root / f"box{cls.boxes}", ignore_errors=True)
        cls.boxes += 1
        folder = self.root / f"box{cls.boxes}"
        folder.mkdir(mode=0o700)
        if with_cache:
            shutil.copytree(self.base.caches, folder / "cache")
        return Box(folder)

    def commands(self, box: Box) -> dict[str, list[str]]:
        """The nine commands, and the engine on the C interface."""
        return {
            "tune": tune(4096, "--retune"),
            "import": [HONE, "import", str(self.bundle)],
            "merge": [HONE, "merge", str(self.other_cache)],
            "gc": [HONE, "cache", "gc"],
            "verify": [HONE, "cache", "verify"],
            "export": [HONE, "export", "-o", str(box.folder / "out.json")],
            "explain": [HONE, "explain", "rmsnorm", *NORM],
            "list": [HONE, "list"],
            "quantize": [HONE, "quantize", str(self.root / "checkpoint"), "--format", "w4a16", "-o",
                         str(box.folder / "packed")],
            "engine": [ENGINE],
        }


def quantile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]

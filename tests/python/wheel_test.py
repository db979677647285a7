"""The wheel: what is in it, and that it works where it was unpacked, without this tree's environment."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path
from typing import Dict, List, Set, Tuple

from fakes import TREE
from fakes.wheel import build_wheel, environment_of_a_user

import hone

USE = """
import ctypes, os, hone
driver = ctypes.CDLL(os.environ["HONE_CUDA_LIBRARY"])
norm = hone.prepare(hone.RmsNorm(64, max_rows=1))
norm.run_pointers(0, 1, 1 << 20, 0, 1 << 21, 0, 1 << 22, 0, 0, 0, 0, 0, 0, 1e-5)
llama = hone.prepare("llama-3-8b", max_rows=1)
launches = driver.fake_cuda_launch_count()
decoder = hone.Decoder(os.environ["MODEL"], max_context=64)
print(hone.__file__, launches, *decoder.generate("a", max_tokens=3).ids, *llama)
"""

# Debian 12's, for whose functions runtime/system/old_glibc/ is made; other processors have other versions.
AT_MOST_2_36 = os.uname().machine == "x86_64" and os.confstr("CS_GNU_LIBC_VERSION") <= "glibc 2.36"
FILES_OF_GLIBC = {"libpthread.so.0", "libdl.so.2", "libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"}
# What runtime/system/old_glibc/ asks for by version; the first glibc for x86-64 had it in the same files.
OLDER_VERSIONS = {
    f"{name}@GLIBC_2.2.5" for name in ("__libc_start_main", "exp", "exp2", "log", "log2", "pow")
}


def tool(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def version_number(version: str) -> Tuple[int, ...]:
    return tuple(map(int, version.partition("_")[2].split(".")))


def libraries_of(binary: str) -> Dict[str, str]:
    """The libraries that the loader finds for a binary, and the mathematical one beside them."""
    found = dict(re.findall(r"(\S+) => (/\S+)", tool("ldd", binary)))
    return {"libm.so.6": str(Path(found["libc.so.6"]).with_name("libm.so.6")), **found}


def symbols_of(library: str) -> Set[str]:
    """name@@VERSION for those that a linker takes, name@VERSION for others."""
    return set(re.findall(r"\s(\w+@@?GLIBC_\S+)", tool("readelf", "-W", "--dyn-syms", library)))


def needed_symbols(binary: Path) -> List[Tuple[str, str, str]]:
    """(symbol, version, the library that it is looked for in)."""
    files: Dict[str, str] = {}
    for line in tool("readelf", "-W", "-V", str(binary)).splitlines():
        if named := re.search(r" File: (\S+)", line):
            file = named[1]
        elif version := re.search(r" Name: GLIBC_\S+ .*Version: (\d+)", line):
            files[version[1]] = file
    listed = tool("readelf", "-W", "--dyn-syms", str(binary))
    symbols = re.findall(r" UND (\w+)@(GLIBC_\S+) \((\d+)\)", listed)
    return [(symbol, version, files[index]) for symbol, version, index in symbols]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="hone-wheel-test-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        cls.wheel = build_wheel(cls.folder / "dist")


class Backend(Case):
    """What pip calls, in a process of its own, as it does."""

    def call(self, hook: str, *arguments: object) -> str:
        code = f"import build_backend; print(build_backend.{hook}(*{arguments!r}))"
        ended = subprocess.run([sys.executable, "-B", "-c", code], cwd=TREE, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONPATH": str(TREE / "python")}, check=True)
        return ended.stdout.splitlines()[-1]

    def test_pyproject_names_it(self) -> None:
        text = (TREE / "pyproject.toml").read_text(encoding="utf-8")
        for words in ('build-backend = "build_backend"', 'backend-path = ["python"]', "requires = []"):
            self.assertIn(words, text)

    def test_a_wheel_of_a_finished_build(self) -> None:
        build = str(Path(os.environ["HONE_LIBRARY"]).parent)
        name = self.call("build_wheel", str(self.folder), {"build-dir": build})
        self.assertEqual((self.folder / name).read_bytes(), self.wheel.read_bytes())

    def test_the_sources_as_an_archive(self) -> None:
        first = self.call("build_sdist", str(self.folder))
        content = (self.folder / first).read_bytes()
        self.call("build_sdist", str(self.folder))
        self.assertEqual((self.folder / first).read_bytes(), content)
        with tarfile.open(self.folder / first) as archive:
            names = archive.getnames()
            root = f"hone-{hone.__version__}"
            metadata = archive.extractfile(f"{root}/PKG-INFO").read().decode()
        self.assertIn(f"\nName: hone\nVersion: {hone.__version__}\n", metadata)
        needed = ("CMakeLists.txt", "hone", "pyproject.toml", "python/build_backend.py", "LICENSE")
        self.assertEqual([name for name in needed if f"{root}/{name}" not in names], [])
        self.assertFalse([name for name in names if "__pycache__" in name or f"{root}/build/" in name])


class Contents(Case):
    def test_its_name_and_metadata(self) -> None:
        name = re.fullmatch(rf"hone-{hone.__version__}-py3-none-manylinux_2_(\d+)_{os.uname().machine}\.whl",
                            self.wheel.name)
        self.assertIsNotNone(name, self.wheel.name)
        if AT_MOST_2_36:
            self.assertEqual(int(name[1]), 28)  # of RHEL 8: what is built on Debian 12 runs there
        with zipfile.ZipFile(self.wheel) as wheel:
            self.assertIsNone(wheel.testzip())
            info = f"hone-{hone.__version__}.dist-info"
            metadata = wheel.read(f"{info}/METADATA").decode()
            tag = self.wheel.stem.split("-", 2)[2]
            self.assertIn(f"\nTag: {tag}\n", wheel.read(f"{info}/WHEEL").decode())
            self.assertIn(f"\nName: hone\nVersion: {hone.__version__}\n", metadata)
            self.assertRegex(metadata, r"\nRequires-External: glibc \(>=2\.\d+\)\n")
            self.assertEqual(wheel.read(f"{info}/licenses/LICENSE"), (TREE / "LICENSE").read_bytes())
            points = wheel.read(f"{info}/entry_points.txt").decode()
            self.assertIn("[console_scripts]\nhone = hone.program:main\n", points)
            self.assertIn("[vllm.general_plugins]\nhone = hone.vllm:register\n", points)
            self.assertIn("[sglang.srt.plugins]\nhone = hone.sglang:register\n", points)

    def test_it_has_the_whole_package_and_nothing_else_of_the_tree(self) -> None:
        with zipfile.ZipFile(self.wheel) as wheel:
            names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        python = TREE / "python"
        package = {str(path.relative_to(python)) for path in (python / "hone").rglob("*.py")}
        models = {f"hone/share/hone/models/{path.name}" for path in (TREE / "configs" / "models").iterdir()}
        self.assertLessEqual(package | models | {"hone/py.typed"}, names)
        rest = names - package - models
        self.assertTrue(all(name.startswith("hone/share/hone/") for name in rest - {
            "hone/py.typed", "hone/bin/hone", "hone/lib/libhone.so.0", "hone/lib/libhone_decoder.so.0",
        }), rest)  # fmt: skip

    def test_the_record_holds_for_every_file(self) -> None:
        with zipfile.ZipFile(self.wheel) as wheel:
            record = f"hone-{hone.__version__}.dist-info/RECORD"
            rows = list(csv.reader(io.StringIO(wheel.read(record).decode())))
            self.assertEqual(sorted(row[0] for row in rows), sorted(wheel.namelist()))
            for name, digest, size in rows:
                if name == record:
                    self.assertEqual((digest, size), ("", ""))
                    continue
                content = wheel.read(name)
                wanted = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
                self.assertEqual((digest, int(size)), (f"sha256={wanted}", len(content)))

    def test_the_same_inputs_make_the_same_bytes(self) -> None:
        again = build_wheel(self.folder / "again")
        self.assertEqual(again.read_bytes(), self.wheel.read_bytes())

    def test_a_folder_that_was_not_built_in_is_refused(self) -> None:
        ended = subprocess.run(
            [sys.executable, "-B", str(TREE / "python" / "build_wheel.py"), "--build", str(self.folder)],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, "^build_wheel: .*/libhone.so.0 is not built: ")


class Unpacked(Case):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.site = cls.folder / "site packages"
        with zipfile.ZipFile(cls.wheel) as wheel:
            for member in wheel.infolist():
                Path(wheel.extract(member, cls.site)).chmod(member.external_attr >> 16 & 0o777)

    def run_python(self, code: str, **changes: str) -> subprocess.CompletedProcess:
        """In another folder than this tree's, with the wheel on the path."""
        return subprocess.run(
            [sys.executable, "-B", "-c", code], cwd=self.folder, timeout=120, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env=environment_of_a_user(PYTHONPATH=str(self.site), **changes),
        )  # fmt: skip

    def test_an_operator_and_a_model_run_on_the_fake_driver(self) -> None:
        fakes = {name: os.environ[name] for name in ("HONE_CUDA_LIBRARY", "HONE_NVRTC_LIBRARY")}
        ended = self.run_python(USE, MODEL=str(TREE / "examples" / "tiny-llama"), **fakes)
        operators = " ".join(hone.prepare("llama-3-8b", max_rows=1))  # of this tree
        self.assertIn("rmsnorm rmsnorm_residual ", operators)
        wanted = f"{self.site}/hone/__init__.py 1 0 0 0 {operators}\n"
        self.assertEqual((ended.stdout, ended.stderr), (wanted, ""))

    def test_without_a_driver_it_says_what_is_missing(self) -> None:
        ended = self.run_python(
            "import hone\n"
            "try:\n    hone.prepare(hone.RmsNorm(64))\n"
            "except hone.NoGpuError as error:\n    print(error)",
            HONE_CUDA_LIBRARY="/nonexistent/libcuda.so.1",
        )
        self.assertRegex(ended.stdout, r"(?s)libcuda.so.1.*/nonexistent/libcuda.so.1.*Install the NVIDIA")

    def test_the_program_is_the_wheels_and_has_its_data(self) -> None:
        run = "import sys; from hone.program import main; sys.argv[1:] = {}; main()"
        version = self.run_python(run.format(["--version"]), PATH="/nonexistent")
        self.assertEqual((version.returncode, hone.__version__ in version.stdout), (0, True), version.stderr)
        doctor = self.run_python(run.format(["doctor", "--json"]), PATH="/nonexistent")
        texts = [finding["text"] for finding in json.loads(doctor.stdout)["data"]["findings"]]
        self.assertIn(f"{self.site}/hone/share/hone", "\n".join(texts))

    def test_the_binaries_need_nothing_but_the_c_library(self) -> None:
        for binary in ("bin/hone", "lib/libhone.so.0", "lib/libhone_decoder.so.0"):
            command = ["objdump", "-pt", str(self.site / "hone" / binary)]
            facts = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            needed = set(re.findall(r"NEEDED +(\S+)", facts))
            self.assertLessEqual(needed, FILES_OF_GLIBC)
            self.assertIn("no symbols", facts)
            self.assertNotRegex(facts, "RUNPATH|RPATH")

    @unittest.skipUnless(AT_MOST_2_36, "what is built here runs here")
    def test_every_function_is_looked_for_where_glibc_2_28_has_it(self) -> None:
        """What has moved into libc since, with a new version, is in this machine's libc with the old version,
        too, but not as the one that a linker takes."""
        here = {name: symbols_of(path) for name, path in libraries_of(sys.executable).items()}
        for binary in ("bin/hone", "lib/libhone.so.0", "lib/libhone_decoder.so.0"):
            for symbol, version, file in needed_symbols(self.site / "hone" / binary):
                self.assertLessEqual(version_number(version), (2, 28), f"{binary} needs {symbol}@{version}")
                if file in ("libc.so.6", "libm.so.6") and f"{symbol}@{version}" not in OLDER_VERSIONS:
                    self.assertIn(f"{symbol}@@{version}", here[file], f"{binary} looks for it in {file}")


if __name__ == "__main__":
    unittest.main()

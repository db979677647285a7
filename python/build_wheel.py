"""Makes the wheel of the Python package from a build folder, with the standard library and binutils alone.

    python3 python/build_wheel.py [--build build/release] [--output dist]

The wheel has the package, libhone.so and libhone_decoder.so (hone/lib), the program (hone/bin) and the models and recorded sweeps
that it reads (hone/share/hone, where the program looks beside its own folder), all stripped of symbols. The
same inputs make the same bytes. Prints the wheel's path.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

TREE = Path(__file__).resolve().parent.parent
PACKAGE = TREE / "python" / "hone"
DATA_FOLDERS = ("models", "plans", "recorded")  # of configs/, as cmake/install.cmake has them
# What every Linux has; the C++ library is linked in.
SYSTEM_LIBRARIES = re.compile(r"(libc|libm|libdl|libpthread|librt)\.so\.\d+|ld-linux-.*")
# Debian's packages whose code the binaries contain; each brings its licence.
LINKED_PACKAGES = (
    "libfmt-dev",
    "nlohmann-json3-dev",
    "libxxhash-dev",
    "libyaml-cpp-dev",
    "libcli11-dev",
    "zlib1g-dev",
    "libpcre2-dev",
    "libutf8proc-dev",
)
VEGA_LICENSES = ("LICENSE", "LICENSE.vega-lite")  # of what draws the charts of `hone report`
# The oldest time that a zip file can say.
NO_TIME = (1980, 1, 1, 0, 0, 0)

METADATA = """\
Metadata-Version: 2.1
Name: hone
Version: {version}
Summary: Tuned CUDA kernels: measured on the GPU at hand, remembered, and launched from Python
License: MIT
Requires-Python: >=3.9
{requires}Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

Hone compiles CUDA kernel templates at run time, measures their configurations on the GPU at hand, remembers
the winners, and launches them: `hone.tune("llama-3-8b")` once per GPU and model, then `hone.prepare(...)` and
call what it returns.

`hone.Decoder(folder)` runs a model of a Hugging Face folder.

The libraries and the `hone` program need, to do more than say what is missing, an NVIDIA driver and NVRTC (of a
CUDA toolkit, or the package nvidia-cuda-nvrtc). PyTorch is not needed; tensors of PyTorch and arrays of other
libraries are taken alike.
"""

WHEEL = """\
Wheel-Version: 1.0
Generator: hone build_wheel
Root-Is-Purelib: false
Tag: {tag}
"""

ENTRY_POINTS = """\
[console_scripts]
hone = hone.program:main

[vllm.general_plugins]
hone = hone.vllm:register

[sglang.srt.plugins]
hone = hone.sglang:register
"""


class Entry(NamedTuple):
    """A file of the wheel."""

    content: bytes
    mode: int = 0o644


class WheelError(Exception):
    """There is something that a wheel cannot be made of."""


def package_version() -> str:
    """The version in python/hone/_native/library.py, which the tests hold to hone.h."""
    return re.search(r'^VERSION = "(.*)"', (PACKAGE / "_native" / "library.py").read_text(), re.MULTILINE)[1]


def metadata(glibc: str = "") -> str:
    """`glibc`: the oldest version that a wheel runs on."""
    requires = f"Requires-External: glibc (>={glibc})\n" if glibc else ""
    return METADATA.format(version=package_version(), requires=requires)


def run_tool(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    except FileNotFoundError:
        raise WheelError(f"{command[0]} is not installed; it is one of the binutils") from None


def stripped(binary: Path) -> Tuple[bytes, Tuple[int, ...]]:
    """A binary without its symbols, and the version of glibc that it needs. Raises WheelError for one that
    needs
    other libraries than the system's."""
    if not binary.is_file():
        command = f"cmake --build {binary.parent} --target hone hone_c hone_decoder_c"
        raise WheelError(f"{binary} is not built: `{command}` builds it")
    facts = run_tool("objdump", "-p", str(binary))
    for needed in re.findall(r"NEEDED +(\S+)", facts):
        if not SYSTEM_LIBRARIES.fullmatch(needed):
            raise WheelError(f"{binary} needs {needed}, which other machines may not have")
    glibc = max(tuple(map(int, found.split("."))) for found in re.findall(r" GLIBC_([\d.]+)", facts))
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, binary.name)
        run_tool("strip", "--strip-unneeded", "-o", str(result), str(binary.resolve()))
        return result.read_bytes(), glibc


def package_files() -> Dict[str, Entry]:
    sources = [*PACKAGE.rglob("*.py"), PACKAGE / "py.typed"]
    return {f"hone/{source.relative_to(PACKAGE)}": Entry(source.read_bytes()) for source in sources}


def data_files() -> Dict[str, Entry]:
    """What the program reads: tuner/data_files.h says where it looks."""
    configs = TREE / "configs"
    files = [file for folder in DATA_FOLDERS for file in (configs / folder).rglob("*") if file.is_file()]
    return {f"hone/share/hone/{file.relative_to(configs)}": Entry(file.read_bytes()) for file in files}


def license_files(info: str) -> Dict[str, Entry]:
    """Ours, and those of the code that is linked in; SQLite's is in the public domain."""
    files = {f"{info}/licenses/LICENSE": Entry((TREE / "LICENSE").read_bytes())}
    for name in LINKED_PACKAGES:
        text = Path("/usr/share/doc", name, "copyright")
        if not text.is_file():
            raise WheelError(f"{text} is not there: the wheel has to contain the licence of {name}")
        files[f"{info}/licenses/{name}.txt"] = Entry(text.read_bytes())
    for name in VEGA_LICENSES:
        text = TREE / "third_party" / "vega" / name
        files[f"{info}/licenses/vega/{name}.txt"] = Entry(text.read_bytes())
    return files


def record(files: Dict[str, Entry], name: str) -> Entry:
    """Path, hash and size of each file; of itself the path."""
    lines = []
    for path, entry in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(entry.content).digest()).decode().rstrip("=")
        lines.append(f"{path},sha256={digest},{len(entry.content)}\n")
    return Entry("".join([*lines, f"{name},,\n"]).encode())


def wheel_files(build: Path, version: str) -> Tuple[str, Dict[str, Entry]]:
    """The wheel's tag (PEP 600: the oldest glibc that it runs on), and its files by their paths."""
    info = f"hone-{version}.dist-info"
    binaries = {
        "hone/lib/libhone.so.0": stripped(build / "libhone.so.0"),
        "hone/lib/libhone_decoder.so.0": stripped(build / "libhone_decoder.so.0"),
        "hone/bin/hone": stripped(build / "hone"),
    }
    glibc = max(needed for _, needed in binaries.values())
    tag = f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_{platform.machine()}"
    files = {
        **package_files(),
        **data_files(),
        **{path: Entry(content, 0o755) for path, (content, _) in binaries.items()},
        f"{info}/METADATA": Entry(metadata(".".join(map(str, glibc))).encode()),
        f"{info}/WHEEL": Entry(WHEEL.format(tag=tag).encode()),
        f"{info}/entry_points.txt": Entry(ENTRY_POINTS.encode()),
        **license_files(info),
    }
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD")
    return tag, files


def write_wheel(path: Path, files: Dict[str, Entry]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        # The metadata last, as the format recommends.
        for name in sorted(files, key=lambda name: (".dist-info/" in name, name)):
            member = zipfile.ZipInfo(name, NO_TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3  # the mode below is Unix's
            member.external_attr = (0o100000 | files[name].mode) << 16
            wheel.writestr(member, files[name].content)


def build_wheel(build: Path, output: Path) -> Path:
    """The path of the wheel. Raises WheelError."""
    version = package_version()
    tag, files = wheel_files(build, version)
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"hone-{version}-{tag}.whl"
    write_wheel(path, files)
    return path


def main(arguments: List[str]) -> None:
    parser = argparse.ArgumentParser(description="Makes the wheel of the Python package.")
    built = TREE / "build" / "release"
    parser.add_argument("--build", type=Path, default=built, help="folder that was built in")
    parser.add_argument("--output", type=Path, default=Path("dist"), help="folder for the wheel")
    options = parser.parse_args(arguments)
    try:
        print(build_wheel(options.build, options.output))
    except WheelError as error:
        sys.exit(f"build_wheel: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])

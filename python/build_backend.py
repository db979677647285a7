"""What pip calls (PEP 517): a wheel of a fresh build, and a source distribution.

Needs CMake, Ninja and the packages of cmake/packages.txt, and nothing of PyPI. `--config-settings build-dir=DIR`
names the build folder; without it, build/release of the tree, or, where the tree is read-only, a temporary
one.
"""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Dict, Iterator, Optional

import build_wheel as wheels

TREE = Path(__file__).resolve().parent.parent
# What a tree has beside its sources, where there is no git to ask.
NOT_SOURCES = {".git", "build", "dist", "__pycache__", ".gpu"}

Settings = Optional[Dict[str, str]]


def compile_into(folder: Path) -> None:
    """Builds the program and the libraries; what is up to date stays."""
    configure = ["cmake", "--preset", "release", "-S", str(TREE), "-B", str(folder), "-DHONE_BUILD_TESTS=OFF",
                 "-DHONE_BUILD_BENCH=OFF", "-DHONE_BUILD_EXAMPLES=OFF"]
    if not (folder / "build.ninja").is_file():
        subprocess.run(configure, check=True, cwd=TREE)
    subprocess.run(["cmake", "--build", str(folder), "--target", "hone", "hone_c", "hone_decoder_c"], check=True)


def build_wheel(wheel_directory: str, config_settings: Settings = None,
                metadata_directory: Optional[str] = None) -> str:
    """The name of the wheel that is made in `wheel_directory`."""
    with tempfile.TemporaryDirectory(prefix="hone-build-") as scratch:
        default = TREE / "build" / "release" if os.access(TREE, os.W_OK) else Path(scratch)
        folder = Path((config_settings or {}).get("build-dir", default)).resolve()
        compile_into(folder)
        return wheels.build_wheel(folder, Path(wheel_directory)).name


def sources() -> Iterator[Path]:
    """Files of the tree, below it."""
    listed = subprocess.run(["git", "-C", str(TREE), "ls-files", "-coz", "--exclude-standard"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, check=False)
    if listed.returncode == 0 and listed.stdout:
        yield from (Path(name) for name in listed.stdout.decode().split("\0") if name)
        return
    for folder, folders, files in os.walk(TREE):
        folders[:] = sorted(set(folders) - NOT_SOURCES)
        yield from (Path(folder, name).relative_to(TREE) for name in sorted(files))


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """The name of the archive that is made in `sdist_directory`. The same tree makes the same bytes."""
    root = f"hone-{wheels.package_version()}"
    name = f"{root}.tar.gz"
    with open(Path(sdist_directory, name), "wb") as file, \
            gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for source in sources():
            if (TREE / source).exists():
                archive.add(TREE / source, f"{root}/{source}", recursive=False, filter=without_owner)
        metadata = wheels.metadata().encode()
        member = without_owner(tarfile.TarInfo(f"{root}/PKG-INFO"))
        member.size = len(metadata)
        archive.addfile(member, io.BytesIO(metadata))
    return name


def without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member

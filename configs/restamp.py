#!/usr/bin/env python3
"""Gives results of a template the template's new hash, after a change that leaves its kernels as they were: code that moved, a
comment, a new fallback. For every winner of a changed variant the program from before the change and the one from after it must
compile the same image; results of a variant with one that differs stay as they are, and are stale. That the launch plans are the
same is for whoever changed them to see: plan() and what it calls.

    python3 configs/restamp.py --before OLD/hone --after NEW/hone [--arch sm_90a]

Needs NVRTC, no GPU. Rewrites configs/tuned/*.json; recorded sweeps carry no hash.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

CONFIGS = Path(__file__).resolve().parent
Variant = Tuple[str, str]  # family, name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, metavar="HONE", help="the program from before the change")
    parser.add_argument("--after", type=Path, required=True, metavar="HONE", help="and from after it")
    parser.add_argument("--arch", default="sm_90a", help="to compile for (default: %(default)s)")
    options = parser.parse_args()

    old, new = hashes(options.before), hashes(options.after)
    changed = {variant: (old[variant], new[variant]) for variant in old if new.get(variant, old[variant]) != old[variant]}
    if not changed:
        print("no template has another hash")
        return 0
    same = {variant: pair for variant, pair in changed.items() if compiles_the_same(variant, pair, options)}
    for path in CONFIGS.glob("tuned/*.json"):
        rewrite(path, dict(same.values()))
    return 0 if len(same) == len(changed) else 1


def hashes(hone: Path) -> Dict[Variant, str]:
    """Of every variant that a program knows."""
    spaces = json.loads(subprocess.run([hone, "spaces", "--json"], check=True, capture_output=True).stdout)
    return {
        (family["name"], variant["name"]): variant["template_hash"]
        for family in spaces["data"]["families"]
        for variant in family["variants"]
    }


def compiles_the_same(variant: Variant, pair: Tuple[str, str], options: argparse.Namespace) -> bool:
    problems = [
        winner
        for path in CONFIGS.glob("tuned/*.json")
        for winner in json.loads(path.read_text())["winners"]
        if winner["family"] == variant[0] and winner["template_hash"] == pair[0]
    ]
    seen: Set[Tuple[str, str]] = set()
    if not problems:
        return True
    with tempfile.TemporaryDirectory() as scratch:
        before = Program(options.before, Path(scratch) / "before", problems, pair[0])
        after = Program(options.after, Path(scratch) / "after", problems, pair[1])
        for winner in problems:
            image = (winner["static_fields"], winner["candidate"])
            if image in seen:
                continue
            seen.add(image)
            if before.image(winner, options.arch) != after.image(winner, options.arch):
                print(f"{' '.join(variant)}: {winner['candidate']} of {winner['static_fields']} is another image; left as it was")
                return False
    print(f"{' '.join(variant)}: {len(problems)} winners, {len(seen)} images, all the same")
    return True


class Program:
    """One of the two, with a cache that has the packaged winners of a template under the hash it has there: no others, which a
    program from before other changes might refuse."""

    def __init__(self, hone: Path, folder: Path, winners: List[Dict[str, Any]], template_hash: str) -> None:
        folder.mkdir(mode=0o700)
        self._hone = hone
        self._cache = folder / "cache.db"
        self._environment = {**os.environ, "HONE_CACHE": str(self._cache), "HONE_PACKAGED": "off"}
        bundle = folder / "winners.json"
        bundle.write_text(bundle_of([{**winner, "template_hash": template_hash} for winner in winners]))
        subprocess.run([hone, "import", bundle], check=True, capture_output=True, env=self._environment)

    def image(self, winner: Dict[str, Any], arch: str) -> bytes:
        fields = f"{winner['static_fields']} {winner['dynamic_fields']}"
        command: List[Any] = [self._hone, "compile", "--op", winner["family"], "--fields", fields, "--arch", arch]
        subprocess.run(command, check=True, capture_output=True, env=self._environment)
        with sqlite3.connect(self._cache) as cache:
            rows = cache.execute(
                "SELECT cubin FROM image WHERE static_fields = ? AND candidate = ?", (winner["static_fields"], winner["candidate"])
            ).fetchall()
        if len(rows) != 1:
            sys.exit(f"{self._hone} compiled {len(rows)} images of {winner['candidate']} for {fields}")
        return rows[0][0]


def bundle_of(winners: List[Dict[str, Any]]) -> str:
    """As hone export writes it (cache/bundle.cpp)."""
    array = "[\n" + ",\n".join(json.dumps(winner, separators=(",", ":")) for winner in winners) + "\n]"
    return f'{{\n"schema": "hone.tuned/1",\n"sha256": "{checksum(array)}",\n"winners": {array}\n}}\n'


def rewrite(path: Path, renamed: Dict[str, str]) -> None:
    """A bundle with other hashes, and the checksum of its new text."""
    before = text = path.read_text()
    for old, new in renamed.items():
        text = text.replace(old, new)
    if text != before:
        path.write_text(text.replace(json.loads(text)["sha256"], checksum(text)))


def checksum(bundle: str) -> str:
    """Of its one array, as it stands in the text (cache/bundle.cpp)."""
    return hashlib.sha256(bundle[bundle.index("[") : bundle.rindex("]") + 1].encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())

"""SIGKILL at every I/O call of short runs, and in the middle of what one writes.

After each kill, before anybody else opens the cache, a process that only dispatches must come up fast with
every winner that was committed; as another user too, who may only read. Rows are all of an import or a merge
or none, files that commands write are the old or the new ones, and after the next run nothing is left lying
about.
"""

from __future__ import annotations

import filecmp
import json
import os
import time
import unittest
from collections import Counter
from pathlib import Path

import sandbox
from sandbox import ENGINE, HONE, Box, Points, quantile, report, tune

READY_MS = 1000  # for a machine with much else to do; the campaign reports the 99th percentile

NOBODY = 65534


def only_reading() -> None:
    """Runs in the child: whoever is not root may not write the cache, and needs no change."""
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)


class Kills(sandbox.Case):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.before = cls.base.rows()

    def setUp(self) -> None:
        self.root.chmod(0o755)
        self.faults: Counter[str] = Counter()
        self.ready: list[float] = []

    def check_dispatch(self, name: str, box: Box, winners: int, as_reader: bool) -> None:
        """An engine comes up at once, with what was committed before the killed run."""
        if as_reader and os.geteuid() == 0:
            for path in [box.folder, box.caches, *box.caches.glob("*")]:
                if path.exists():
                    path.chmod(0o755 if path.is_dir() else 0o644)
        ended = box.run([ENGINE], before=only_reading if as_reader else None)
        if ended.code != 0:
            self.faults[f"{name}: dispatch fails, {ended.words}"] += 1
            return
        told = json.loads(ended.out)
        self.ready.append(told["ready_ms"])
        if told["exact"] < winners:
            self.faults[f"{name}: dispatch has {told['exact']} of {winners} winners, {ended.err[-200:]}"] += 1
        if told["ready_ms"] > READY_MS:
            self.faults[f"{name}: dispatch needs more than {READY_MS} ms"] += 1

    def check_gone(self, name: str, box: Box) -> None:
        """No worker outlives the killed process for long."""
        mark = f"HOME={box.folder}\0".encode()
        end = time.monotonic() + 5
        while any(mark in environment for environment in environments()):
            if time.monotonic() > end:
                self.faults[f"{name}: a worker stays"] += 1
                return
            time.sleep(0.02)

    def check_litter(self, name: str, box: Box, expected: set[str]) -> None:
        found = {path.name for path in [*box.folder.iterdir(), *box.caches.glob("*")]}
        for extra in found - expected - {"cache", "cache.db", "cache.db-wal", "cache.db-shm"}:
            word = ".".join(extra.split(".")[:2]) if extra.startswith("packed") else extra
            self.faults[f"{name}: left behind {word.split('-')[0]}"] += 1

    def settle(self, name: str, words: list[str]) -> None:
        self.assertEqual(dict(self.faults), {}, words)
        if self.ready:
            report(3, "kill_points_test", name, self.tried, total=2 * self.total,
                   ready_ms_p99=quantile(self.ready, 0.99), ready_ms_max=max(self.ready))

    def attack(self, name: str, command, check, sample: int, share: float, with_cache=True,
               leaves=frozenset()) -> None:
        """Kills at the points of command(box); check(box, before) looks at what the command works on."""
        box = self.fresh(with_cache)
        self.total = box.counts(command(box))["io"]
        self.tried = 0
        for mode, of_sample in (("kill", sample), ("torn", sample // 4)):
            points = Points(self.total, of_sample, share / 2)
            for point in points:
                self.kill_at(name, mode, point, command, check, with_cache, leaves)
            self.tried += points.tried
        self.settle(f"kills at I/O calls of {name}", list(self.faults))

    def kill_at(self, name, mode, point, command, check, with_cache, leaves) -> None:
        box = self.fresh(with_cache)
        words = command(box)
        before = self.before if with_cache else set()
        ended = box.under_shim(words, mode, point)
        if ended.code not in (-9, 0):  # 0: this run had fewer calls than the one that was counted
            self.faults[f"{name}: {ended.words}"] += 1
        self.check_dispatch(name, box, 2 if with_cache else 0, point % 2 == 0)
        if name.startswith("tune"):
            self.check_gone(name, box)
        check(box, before)
        again = box.run(words)
        if again.code != 0:
            self.faults[f"{name}: the next run: {again.words}"] += 1
        verified = box.run([HONE, "cache", "verify"])
        if verified.code != 0:
            self.faults[f"{name}: {verified.words}"] += 1
        elif not before <= box.rows():
            self.faults[f"{name}: rows are lost"] += 1
        self.check_litter(name, box, set(leaves))

    def check_all_or_nothing(self, added: set[str]):
        def check(box: Box, before: set[str]) -> None:
            if not box.cache.exists() or box.cache.stat().st_size == 0:
                return
            try:
                found = box.rows()
            except sandbox.sqlite3.OperationalError:  # no table yet
                found = set()
            if found - before not in (set(), added) or not before <= found:
                self.faults[f"{len(found - before)} of {len(added)} rows were added"] += 1

        return check

    def test_tune(self) -> None:
        self.attack("tune", lambda box: tune(4096, "--retune"), lambda box, before: None, 8, 0.45)

    def test_tune_without_a_cache(self) -> None:
        self.attack("tune without a cache", lambda box: tune(), lambda box, before: None, 8, 0.45,
                    with_cache=False)

    def imported_rows(self) -> set[str]:
        box = self.fresh(with_cache=False)
        self.must(box.run([HONE, "import", str(self.bundle)]))
        return box.rows()

    def test_import(self) -> None:
        check = self.check_all_or_nothing(self.imported_rows())
        self.attack("import", lambda box: [HONE, "import", str(self.bundle)], check, 57, 0.1)

    def test_import_without_a_cache(self) -> None:
        check = self.check_all_or_nothing(self.imported_rows())
        self.attack("import without a cache", lambda box: [HONE, "import", str(self.bundle)], check, 20, 0.1,
                    with_cache=False)

    def test_merge(self) -> None:
        added = Box(self.root / "other").rows()
        check = self.check_all_or_nothing(added)
        self.attack("merge", lambda box: [HONE, "merge", str(self.other_cache)], check, 40, 0.1)

    def test_gc(self) -> None:
        self.attack("cache gc", lambda box: [HONE, "cache", "gc"], self.check_all_or_nothing(set()), 30, 0.05)

    def test_export(self) -> None:
        old = b"what stood there before\n"
        box = self.fresh()
        self.must(box.run([HONE, "export", "-o", "out.json"]))
        new = (box.folder / "out.json").read_bytes()

        def command(box: Box) -> list[str]:
            (box.folder / "out.json").write_bytes(old)
            return [HONE, "export", "-o", "out.json"]

        def check(box: Box, before: set[str]) -> None:
            if (box.folder / "out.json").read_bytes() not in (old, new):
                self.faults["export: the file is neither the old nor the new one"] += 1

        self.attack("export", command, check, 20, 0.05, leaves={"out.json"})

    def test_quantize(self) -> None:
        def command(box: Box) -> list[str]:
            return [HONE, "quantize", str(self.root / "checkpoint"), "--format", "w4a16", "-o", "packed"]

        whole = self.root / "whole"
        box = self.fresh()
        self.must(box.run([*command(box)[:-1], str(whole)]))

        def check(box: Box, before: set[str]) -> None:
            packed = box.folder / "packed"
            if packed.exists():
                if not same_folder(packed, whole):
                    self.faults["quantize: a folder that is not whole has its name"] += 1
                packed.rename(self.root / "taken")  # or the next run refuses to replace it
                sandbox.shutil.rmtree(self.root / "taken")

        self.attack("quantize", command, check, 40, 0.1, leaves={"packed"})


def environments():
    """What every process that is alive was started with; zombies have nothing."""
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            yield file.read_bytes()
        except OSError:
            continue


def same_folder(one: Path, two: Path) -> bool:
    names = {path.name for path in one.iterdir()}
    equal, _, _ = filecmp.cmpfiles(one, two, names, shallow=False)
    return names == {path.name for path in two.iterdir()} and set(equal) == names


if __name__ == "__main__":
    unittest.main()

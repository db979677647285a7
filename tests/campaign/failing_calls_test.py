"""The n-th allocation fails, or the n-th I/O call, once or for ever: over nine commands and an engine on the
C interface. Of allocations that are reached over the same call stack, one is chosen: they fail alike.

No process aborts, crashes or hangs, each ends with a code that the README lists, what it says it has done it
has done, and the cache is sound afterwards and has all its rows.
"""

from __future__ import annotations

import errno
import random
import unittest
from collections import Counter
from pathlib import Path

import sandbox
from sandbox import DECODING_ENGINE, ENGINE, EXIT_CODES, HONE, TREE, Box, Points, report
from kill_points_test import same_folder

WRITERS = {"tune", "import", "merge", "gc", "engine"}
TIMEOUT_S = 60
ERRORS = (errno.EIO, errno.ENOSPC, errno.EMFILE)

# Seconds that a failed call may add: nothing waits for what will not come.
SLOW_S = 20

# Parts of the campaign's time: of a command, and of it for its allocations.
SHARES = {"tune": (0.58, 0.75)}
SHARE_OF_OTHERS = (0.046, 0.95)


class FailingCalls(sandbox.Case):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.before = cls.base.rows()
        cls.wanted = {name: cls.outcome(name) for name in ("import", "merge", "export", "quantize")}

    @classmethod
    def outcome(cls, name: str):
        """What a run that succeeds leaves behind."""
        box = Box(cls.root / f"wanted-{name}")
        box.folder.mkdir(mode=0o700)
        sandbox.shutil.copytree(cls.base.caches, box.caches)
        cls.must(box.run(cls.commands(cls, box)[name]))
        return cls.result(name, box)

    @staticmethod
    def result(name: str, box: Box):
        if name == "export":
            return (box.folder / "out.json").read_bytes()
        return box.folder / "packed" if name == "quantize" else box.rows()

    def check_result(self, name: str, box: Box) -> bool:
        """Whether a command that ended with 0 has done what it should."""
        found, wanted = self.result(name, box), self.wanted[name]
        return same_folder(found, wanted) if name == "quantize" else found == wanted

    def check(self, name: str, box: Box, ended: sandbox.Ended, what: str) -> None:
        allowed = {0, 1} if name == "engine" else EXIT_CODES
        if ended.code not in allowed:
            end = f"signal {-ended.code}" if ended.code < 0 else f"code {ended.code}"
            self.fault(f"{name}: {what} ends it with {end}", ended)
        if ended.code == 0 and name in self.wanted and not self.check_result(name, box):
            self.fault(f"{name}: {what}, code 0, but the result is wrong", ended)
        if ended.seconds > SLOW_S:
            self.fault(f"{name}: {what} takes more than {SLOW_S} s", ended)
        if name in WRITERS:
            self.check_cache(name, box, what)

    def check_cache(self, name: str, box: Box, what: str) -> None:
        verified = box.run([HONE, "cache", "verify"])
        if verified.code != 0:
            self.fault(f"{name}: {what}, and the cache is not sound", verified)
        elif not self.before <= box.rows():
            self.fault(f"{name}: {what}, and rows are lost", verified)

    def fault(self, what: str, ended: sandbox.Ended) -> None:
        self.faults[what] += 1
        self.examples.setdefault(what, f"point {self.point}: {ended.words}")

    def attack(self, kind: str, name: str, sample: int) -> None:
        """Fails the calls of one sort of one command; half of the points fail for ever from there on."""
        box = self.fresh()
        words = self.commands(box)[name]
        places = box.stacks(words) if kind == "alloc" else range(1, box.counts(words)["io"] + 1)
        share, of_allocations = SHARES.get(name, SHARE_OF_OTHERS)
        share *= of_allocations if kind == "alloc" else 1 - of_allocations
        points = Points(len(places), sample, share, among=list(places))
        for self.point in points:
            chosen = random.Random(self.point)
            settings = {"errno": chosen.choice(ERRORS)} if kind == "io" else {}
            ever = chosen.random() < 0.3
            if ever:
                settings["for_ever"] = 1
            box = self.fresh()
            what = "an allocation" if kind == "alloc" else "an I/O call"
            what += " and all later ones" if ever else ""
            try:
                ended = box.under_shim(self.commands(box)[name], kind, self.point, TIMEOUT_S, **settings)
            except AssertionError as hangs:
                self.faults[f"{name}: {what}: {hangs}"] += 1
                continue
            self.check(name, box, ended, what + " fails")
        self.reached.append((kind, name, points.tried, len(places)))

    def attack_all(self, kind: str, sample: int) -> None:
        self.faults: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.reached: list[tuple[str, str, int, int]] = []
        for name in self.commands(self.fresh()):
            self.attack(kind, name, sample)
        word = "call stacks whose allocation fails," if kind == "alloc" else "failed I/O calls of"
        for _, name, tried, total in self.reached:
            report(5, "failing_calls_test", f"{word} {name}", tried, total=total)
        examples = {fault: self.examples.get(fault) for fault in self.faults}
        self.assertEqual(examples, {}, dict(self.faults))

    def test_allocations(self) -> None:
        self.attack_all("alloc", 12)

    def test_io(self) -> None:
        self.attack_all("io", 8)


class Decoder(sandbox.Case):
    """A model runs, and an allocation fails: on the caller's thread, or on one of the library's."""

    WORDS = [DECODING_ENGINE, str(TREE / "examples" / "tiny-llama")]

    def setUp(self) -> None:
        if not Path(DECODING_ENGINE).is_file():
            self.skipTest("built without the decoder")

    def test_allocations(self) -> None:
        faults = []
        box = self.fresh()
        places = box.stacks(self.WORDS)
        for point in Points(len(places), 12, 0.03, among=places):
            settings = {"for_ever": 1} if random.Random(point).random() < 0.3 else {}
            ended = self.fresh().under_shim(self.WORDS, "alloc", point, TIMEOUT_S, **settings)
            if ended.code not in (0, 1) or (ended.code == 1 and not ended.err):
                faults.append(f"point {point} {settings}: {ended.words}")
        self.assertEqual(faults, [])


class Conduct(sandbox.Case):
    def test_the_shim_reaches_the_program(self) -> None:
        """Or all of the above would hold of itself."""
        box = self.fresh()
        ended = box.under_shim(self.commands(box)["list"], "alloc", 1000, for_ever=1)
        self.assertEqual(ended.code, 1)
        self.assertIn("memory", ended.err)
        ended = box.under_shim([ENGINE], "alloc", 200, for_ever=1)
        self.assertEqual(ended.code, 1, ended.words)
        ended = box.under_shim(self.commands(box)["gc"], "io", 5, errno=errno.EIO, for_ever=1)
        self.assertEqual(ended.code, 5, ended.words)


if __name__ == "__main__":
    unittest.main()

"""Surroundings that are not as they should be: a clock that jumps, a full disk, no descriptors left, no
folder for temporary files, a home that is read-only or another user's. Tuning ends with a documented code or
succeeds, dispatch goes on with what it can read, and the cache is sound afterwards.
"""

from __future__ import annotations

import json
import os
import random
import resource
import unittest

import sandbox
from sandbox import ENGINE, EXIT_CODES, HONE, NORM, Box, Ended, Points, report, tune

NOBODY = 65534
YEAR_S = 365 * 86400


def as_nobody() -> None:
    os.setgid(NOBODY)
    os.setuid(NOBODY)


class Adversity(sandbox.Case):
    def setUp(self) -> None:
        self.root.chmod(0o755)

    def check_documented(self, ended: Ended) -> None:
        self.assertIn(ended.code, EXIT_CODES, ended.words)
        if ended.code != 0:
            self.assertIn("error: ", ended.err, ended.words)

    def check_dispatch(self, box: Box, exact: int, **more) -> dict:
        """An engine runs both of its calls; with winners where it can read them."""
        ended = box.run([ENGINE], **more)
        self.assertEqual(ended.code, 0, ended.words)
        told = json.loads(ended.out)
        self.assertEqual((told["exact"], told["exact"] + told["fallback"]), (exact, 2), ended.words)
        return told

    def check_sound(self, box: Box) -> None:
        self.must(box.run([HONE, "cache", "verify"]))

    def check_sound_but_for_dates(self, box: Box) -> None:
        """What a wrong clock has dated is named, since no other cache takes it; nothing else is."""
        told = json.loads(box.run([HONE, "cache", "verify", "--json"]).out)
        for problem in told["data"]["problems"]:
            self.assertIn("created_at", problem)

    def jump(self, box: Box, years: int, at: int) -> None:
        settings = {"clock": years * YEAR_S, "clock_at": at}
        self.must(box.under_shim(tune(4096, "--retune"), "count", **settings))
        self.check_sound_but_for_dates(box)
        self.check_dispatch(box, 2)
        # The clock is right again: tuning goes on, and the next run takes over what there is.
        self.must(box.run(tune(4096, "--retune")))
        self.check_sound_but_for_dates(box)
        again = self.must(box.run([*tune(4096), "--json"]))
        self.assertEqual(json.loads(again.out)["data"]["runs"][0]["measurements"], 0)

    def test_a_clock_that_jumps_while_it_tunes(self) -> None:
        looks = self.fresh().counts(tune(4096, "--retune"))["clock"]
        points = Points(looks, 4, 0.2)
        for at in points:
            self.jump(self.fresh(), random.Random(at).choice((-30, -1, 1, 10)), at)
        report(3, "adversity_test", "jumps of the clock during a tuning run", points.tried, total=looks)

    def test_a_clock_before_1970_and_after_2100(self) -> None:
        for years in (-60, 80):
            self.jump(self.fresh(), years, 1)
        report(3, "adversity_test", "runs with a clock off by 60 years and more", 2)

    def test_a_disk_that_fills_up(self) -> None:
        """From the n-th call on nothing that needs space succeeds; afterwards there is space again."""
        tried = moments = 0
        for name in ("tune", "import", "merge", "export", "quantize"):
            box = self.fresh()
            total = box.counts(self.commands(box)[name])["io"]
            points = Points(total, 4, 0.1)
            for at in points:
                box = self.fresh()
                ended = box.under_shim(self.commands(box)[name], "full", at)
                self.check_documented(ended)
                self.assertNotEqual(ended.code, 2, ended.words)
                if ended.code != 0:
                    self.assertRegex(ended.err, "(?i)space|full", ended.words)
                self.check_dispatch(box, 2)
                self.check_sound(box)
                if ended.code != 0:
                    self.must(box.run(self.commands(box)[name]))
            tried += points.tried
            moments += total
        report(5, "adversity_test", "moments at which the disk is full, of five commands", tried, total=moments)

    def test_a_full_disk_does_not_keep_dispatch_from_working(self) -> None:
        box = self.fresh()
        ended = box.under_shim([ENGINE], "full", 1)
        self.assertEqual(ended.code, 0, ended.words)
        self.assertEqual(json.loads(ended.out)["exact"], 2, ended.words)
        report(5, "adversity_test", "dispatch on a full disk", 1)

    def test_few_descriptors(self) -> None:
        """With 4 to 24 of them: tuning may refuse; a later run with enough finds the cache sound."""
        limits = range(4, 25)
        for limit in limits:
            box = self.fresh()

            def few(limit=limit) -> None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

            self.check_documented(box.run(tune(4096, "--retune"), before=few))
            self.check_sound(box)
            self.check_dispatch(box, 2)
            engine = box.run([ENGINE], before=few)
            self.assertIn(engine.code, (0, 1), engine.words)
        report(5, "adversity_test", "limits of open descriptors", len(limits))

    def test_no_folder_for_temporary_files(self) -> None:
        box = self.fresh()
        box.environment["TMPDIR"] = str(box.folder / "nowhere")
        self.must(box.run(tune(4096, "--retune")))
        self.check_dispatch(box, 2)
        for words in self.commands(box).values():
            self.must(box.run(words))
        report(5, "adversity_test", "commands without a folder for temporary files", len(self.commands(box)))

    def home_of(self, owner: int, mode: int) -> Box:
        """A folder with a cache below, as somebody's home who has no HONE_CACHE."""
        box = self.fresh()
        where = box.folder / ".cache/hone"
        where.parent.mkdir()
        box.caches.rename(where)
        box.environment["HONE_CACHE"] = str(where / "cache.db")
        for path in [*where.iterdir(), where, where.parent, box.folder]:
            os.chown(path, owner, owner)
            path.chmod(mode if path.is_dir() else 0o644)
        del box.environment["HONE_CACHE"]
        return box

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_a_home_that_is_read_only(self) -> None:
        box = self.home_of(NOBODY, 0o555)
        self.check_dispatch(box, 2, before=as_nobody)
        self.must(box.run([HONE, "explain", "rmsnorm", *NORM], before=as_nobody))
        ended = box.run(tune(4096, "--retune"), before=as_nobody)
        self.assertEqual(ended.code, 5, ended.words)
        self.check_documented(ended)
        report(5, "adversity_test", "commands in a home that is read-only", 3)

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_a_home_of_another_user(self) -> None:
        """A cache that a third party may have written is not used, with one warning; dispatch falls back."""
        box = self.home_of(1234, 0o755)
        ended = box.run([ENGINE], before=as_nobody)
        self.assertEqual(ended.code, 0, ended.words)
        self.assertEqual(json.loads(ended.out)["exact"], 0, ended.words)
        refused = box.run(tune(4096, "--retune"), before=as_nobody)
        self.assertEqual(refused.code, 5, refused.words)
        report(5, "adversity_test", "commands with the home of another user", 2)


class Writing(sandbox.Case):
    """A file that gets its name by a rename has its bytes on the disk first: power cuts leave old or new."""

    def unsynced_renames(self, name: str) -> tuple[int, set[str]]:
        """How many renames a command makes, and what of the files that they publish was not synced before."""
        box = self.fresh()
        trace = self.root / f"{name}.trace"
        self.must(box.under_shim(self.commands(box)[name], "count", trace=trace))
        dirty, renamed, unsynced = set(), 0, set()
        for line in trace.read_text().splitlines():
            call, file, _ = line.split("\t")
            if call in ("fsync", "fdatasync"):
                dirty.discard(file)
            elif "write" in call:
                dirty.add(file)
            elif "rename" in call:
                renamed += 1
                unsynced |= {path for path in dirty if path == file or path.startswith(file + "/")}
        return renamed, unsynced

    def test_each_rename_comes_after_a_sync(self) -> None:
        for name in ("quantize", "export"):
            renamed, unsynced = self.unsynced_renames(name)
            self.assertEqual(unsynced, set(), name)
            self.assertGreater(renamed, 0, name)
            report(3, "adversity_test", f"renames of {name}, each after a sync", renamed)


if __name__ == "__main__":
    unittest.main()

"""bench/race_winners.py: which rows are raced anew, and which of a race's rows ship."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import List

from bundles import bundle, contender, row
from fakes import PROGRAM, TREE

RACE = TREE / "bench" / "race_winners.py"
HASH = "1" * 32
DAY = 1_764_374_400_000  # 2025-11-29


class Race(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.winners = self.folder / "winners.json"
        self.capture = self.folder / "rows.json"

    def run_on(self, text: str, *words: str) -> subprocess.CompletedProcess[str]:
        self.winners.write_text(text, encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-B", str(RACE), words[0], "--winners", str(self.winners), *words[1:]], check=False,
            universal_newlines=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def chosen(self, rows: List[str], *options: str) -> List[str]:
        """Problems, in the order in which the tuner takes them."""
        ended = self.run_on(bundle(*rows), "choose", "-o", str(self.capture), *options)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        problems = json.loads(self.capture.read_text(encoding="utf-8"))["problems"]
        spent = {problem["problem"]: -problem["calls"] for problem in problems}
        return [problem["problem"].split()[-1] for problem in sorted(problems, key=lambda problem: spent[problem["problem"]])]

    def take(self, shipped: List[str], *runs: List[str]) -> str:
        """What is left of the file, between its rows' brackets; all else has to stay."""
        files = []
        for i, rows in enumerate(runs):
            file = self.folder / f"run{i}.json"
            file.write_text(bundle(*rows), encoding="utf-8")
            files.append(str(file))
        ended = self.run_on(bundle(*shipped), "take", *files)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.printed = ended.stdout
        return self.winners.read_text(encoding="utf-8")

    def test_rows_are_chosen_by_family_fields_and_day_but_not_those_of_a_step(self) -> None:
        rows = [
            row("a n=1", HASH, tokens=1, created_at=DAY, median_us=9),
            row("a n=1", HASH, tokens=2, created_at=DAY - 1, median_us=3),
            row("a n=1", HASH, tokens=3, created_at=DAY - 1, static="dtype=fp16 in=64", median_us=2),
            row("a n=1", HASH, tokens=4, created_at=DAY - 1, family="norm", median_us=1),
            row("a n=1", HASH, tokens=5, created_at=DAY - 1, chain="m tokens=1 kv=1"),
        ]
        self.assertEqual(self.chosen(rows), ["tokens=4", "tokens=3", "tokens=2", "tokens=1"])
        self.assertEqual(self.chosen(rows, "--until", "2025-11-29"), ["tokens=4", "tokens=3", "tokens=2"])
        self.assertEqual(self.chosen(rows, "--family", "norm", "--family", "other"), ["tokens=4"])
        self.assertEqual(self.chosen(rows, "--where", "dtype=bf16", "--where", "tokens=2"), ["tokens=2"])

    def test_stale_rows_are_those_that_a_build_does_not_run(self) -> None:
        shipped = (TREE / "configs" / "tuned" / "h200-sxm.json").read_text(encoding="utf-8").splitlines()
        fresh = next(line.rstrip(",") for line in shipped if line.startswith('{"family":"embedding"'))
        self.assertEqual(self.chosen([fresh, row("gather n=1", HASH, family="embedding", tokens=7)], "--stale", PROGRAM), ["tokens=7"])

    def test_newer_rows_and_those_of_new_problems_are_taken_into_their_places(self) -> None:
        one, two, three = (row(f"a n={n}", HASH, tokens=n) for n in (1, 2, 3))
        newer = row("a n=9", HASH, contender("a n=2"), tokens=2, created_at=8)
        older = row("a n=9", HASH, tokens=1, created_at=6)
        self.assertEqual(self.take([one, two], [older, newer, three]), bundle(one, newer, three))
        self.assertIn("3 rows; 1 new, 1 replaced", self.printed)
        self.assertEqual(self.take([one, two], [newer], [row("a n=8", HASH, tokens=2, created_at=9)]), bundle(one, row("a n=8", HASH, tokens=2, created_at=9)))

    def test_what_a_step_chose_stays_but_for_the_same_step(self) -> None:
        chosen = row("a n=1", HASH, chain="m tokens=1 kv=1")
        alone = row("a n=2", HASH, created_at=8)
        another = row("a n=2", HASH, created_at=8, chain="o tokens=1 kv=1")
        same = row("a n=2", HASH, created_at=8, chain="m tokens=1 kv=1 kept=no")
        self.assertEqual(self.take([chosen], [alone], [another]), bundle(chosen))
        self.assertIn("2 left, as a step chose them", self.printed)
        self.assertEqual(self.take([chosen], [same]), bundle(same))
        self.assertEqual(self.take([same], [row("a n=3", HASH, created_at=9)]), bundle(row("a n=3", HASH, created_at=9)))

    def test_rows_of_other_gpus_are_left_out(self) -> None:
        one = row("a n=1", HASH)
        self.assertEqual(self.take([one], [row("a n=2", HASH, created_at=8, gpu="Another")]), bundle(one))
        self.assertIn("1 left, of other GPUs", self.printed)

    def test_what_cannot_be_read_is_an_error_and_changes_nothing(self) -> None:
        text = bundle(row("a n=1", HASH))
        run = self.folder / "run.json"
        run.write_text(bundle(row("a n=2", HASH, created_at=8)).replace("1.25", "1.26"), encoding="utf-8")
        for words in (
            ("take", str(run)), ("take", str(self.folder / "none.json")), ("choose", "--family", "norm", "-o", str(self.capture)),
            ("choose", "--until", "yesterday", "-o", str(self.capture)), ("choose", "--where", "tokens", "-o", str(self.capture)),
        ):  # fmt: skip
            ended = self.run_on(text, *words)
            self.assertEqual((ended.returncode, self.winners.read_text(encoding="utf-8")), (2, text), ended.stdout)
            self.assertTrue(ended.stdout.startswith("race_winners: "), ended.stdout)
        self.assertFalse(self.capture.exists())


if __name__ == "__main__":
    unittest.main()

"""docs/reliability.md is written from results: every promise, every count, and what failed stand in it."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

import campaign
import reliability

SOURCE = Path(__file__).parents[2]
RESULTS = {"steps": [{"name": "one", "ok": True, "machine": "2 cores, no GPU", "date": "2026-01-02"},
                     {"name": "two", "ok": False, "machine": "16 cores, 1 GPU", "date": "2026-03-04", "note": "Alone."}],
           "lines": [{"promise": 3, "test": "t", "what": "kills", "count": 1234, "total": 5678,
                      "ready_ms_p99": 12.3, "ready_ms_max": 45.6}]}


class Document(unittest.TestCase):
    def test_all_promises_and_their_tests_are_there(self) -> None:
        text = reliability.document(RESULTS)
        for number, (promise, tests) in reliability.PROMISES.items():
            self.assertIn(f"## {number}. {promise}", text)
            for test in tests:
                self.assertTrue((SOURCE / test).exists(), test)
                self.assertIn(f"(../{test})", text)

    def test_counts_and_failures_are_told(self) -> None:
        text = reliability.document(RESULTS)
        for words in ("1,234 of 5,678", "12 ms at the 99th percentile", "| one | 2026-01-02 | 2 cores, no GPU | |",
                      "| two | 2026-03-04 | 16 cores, 1 GPU | **failed** Alone. |", "1 of 2 parts of the campaign failed: two"):
            self.assertIn(words, text)

    def test_what_ran_under_sanitizers_and_what_lines_ran_are_told(self) -> None:
        text = reliability.document({**RESULTS, "coverage": {"cache": 95.5},
                                     "sanitized": [{"preset": "tsan", "layers": "cache runtime", "tests": 7}]})
        self.assertIn("- `cache/`: 95.5 %\n", text)
        self.assertIn("- `tsan`: 7 tests of cache, runtime\n", text)
        self.assertNotIn("## Sanitizers", reliability.document(RESULTS))

    def test_processes_that_share_points_add_up(self) -> None:
        kills = {"promise": 3, "test": "t", "what": "kills", "total": 10}
        homes = {"promise": 5, "test": "t", "what": "homes", "count": 3}
        lines = campaign.merged([{**kills, "count": 4, "ready_ms_max": 7.0}, homes,
                                 {**kills, "count": 5, "ready_ms_max": 2.0}, homes])
        self.assertEqual(lines, [{**kills, "count": 9, "ready_ms_max": 7.0}, homes])

    def test_a_part_that_runs_again_replaces_what_it_had_reached(self) -> None:
        def run(name: str, count: int, ok: bool) -> dict:
            step = {"name": name, "ok": ok, "machine": "m", "date": "2026-01-02"}
            line = {"promise": 3, "test": f"campaign.{name}", "what": name, "count": count}
            return {"steps": [step], "lines": [line]}

        before = campaign.joined(run("crowd_test", 1, True), run("kill_points_test", 2, False))
        self.assertEqual(len(before["lines"]), 2)
        now = campaign.joined(before, run("kill_points_test", 3, True))
        self.assertEqual({line["what"]: line["count"] for line in now["lines"]},
                         {"crowd_test": 1, "kill_points_test": 3})
        self.assertTrue(all(step["ok"] for step in now["steps"]))

    def test_fuzzed_inputs_are_counted(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            lines = Path(folder) / "lines.jsonl"
            campaign.fuzzed("image  1234567 executions  10/s  5 edges (+1)  0 faults\nother words\n", lines)
            line = json.loads(lines.read_text())
        self.assertEqual((line["what"], line["count"]), ("inputs of the fuzz target image", 1234567))

    def test_what_is_kept_in_the_tree_is_what_would_be_written(self) -> None:
        kept = json.loads(campaign.KEPT.read_text(encoding="utf-8"))
        document = campaign.KEPT.with_suffix(".md").read_text(encoding="utf-8")
        self.assertEqual(document, reliability.document(kept))
        self.assertEqual({step["name"] for step in kept["steps"]} - {name for lane in campaign.LANES for name, _ in lane},
                         set())

    def test_what_ran_is_kept_with_its_document(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            kept = Path(folder) / "reliability.json"
            campaign.keep(RESULTS, kept)
            self.assertEqual(json.loads(kept.read_text()), RESULTS)
            self.assertEqual(kept.with_suffix(".md").read_text(), reliability.document(RESULTS))


if __name__ == "__main__":
    unittest.main()

"""docs/reliability.md is written from results: every promise, every count, and what failed stand in it."""

from __future__ import annotations

import unittest
from pathlib import Path

import reliability

SOURCE = Path(__file__).parents[2]
RESULTS = {"date": "2026-01-02", "machine": "2 cores, no GPU", "seconds": 600,
           "steps": [{"name": "one", "ok": True, "seconds": 1}, {"name": "two", "ok": False, "seconds": 1}],
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
        for words in ("1,234 of 5,678", "12 ms at the 99th percentile", "2026-01-02",
                      "1 of 2 parts of the campaign failed: two"):
            self.assertIn(words, text)

    def test_what_is_kept_in_the_tree_has_this_form(self) -> None:
        kept = (SOURCE / "docs/reliability.md").read_text(encoding="utf-8")
        for number, (promise, _) in reliability.PROMISES.items():
            self.assertIn(f"## {number}. {promise}", kept)


if __name__ == "__main__":
    unittest.main()

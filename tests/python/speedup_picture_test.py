"""docs/images/speedup.svg says what the tables of docs/performance.md say."""

from __future__ import annotations

import subprocess
import sys
import unittest

from fakes import TREE

sys.path.insert(0, str(TREE / "bench"))
import speedup_picture

TABLES = "".join(f"""<!-- compare:{name}:begin -->
NVIDIA Made Up, driver 1.2, PyTorch 3.4, CUDA 5.6.

| operator | Hone us | best other / Hone |
|---|---|---|
| a | 1.00 | 2.000 |
| b | 1.00 | 0.500 |
| c | 1.00 | |
| d | 1.00 | 4.000 |
<!-- compare:{name}:end -->
""" for name in speedup_picture.TABLES)


class Picture(unittest.TestCase):
    def test_the_one_in_the_tree_is_of_the_tables(self) -> None:
        script = TREE / "bench/speedup_picture.py"
        ended = subprocess.run([sys.executable, "-B", str(script), "--check"], capture_output=True, text=True,
                               check=False)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_means_are_geometric_and_empty_cells_are_no_cases(self) -> None:
        groups = speedup_picture.groups_of(TABLES)
        self.assertEqual([group.ratios for group in groups], [[2.0, 0.5, 4.0]] * len(groups))
        self.assertAlmostEqual(groups[0].mean, 4 ** (1 / 3))

    def test_it_says_where_and_how_much(self) -> None:
        drawn = speedup_picture.picture(TABLES)
        self.assertIn("NVIDIA Made Up, PyTorch 3.4, CUDA 5.6.", drawn)
        self.assertIn("1.59x", drawn)
        self.assertIn(f"{3 * len(speedup_picture.TABLES)} cases", drawn)

    def test_a_page_without_a_table_is_an_error(self) -> None:
        with self.assertRaisesRegex(ValueError, "has no table"):
            speedup_picture.picture("nothing")


if __name__ == "__main__":
    unittest.main()

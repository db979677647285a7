"""bench/strategies.py: the search strategies that stand beside Hone's order, on spaces made for the purpose."""

from __future__ import annotations

import itertools
import math
import statistics
import sys
import unittest
from typing import List

from fakes import TREE

sys.path.insert(0, str(TREE / "bench"))
import recorded_space

try:
    import strategies
except ImportError:  # Debian: python3-numpy
    strategies = None


def made_up_space(values: int = 4, tunables: int = 4) -> recorded_space.Space:
    """Every combination; each tunable has a best value of its own, and what the others cost adds up."""
    candidates = {}
    for config in itertools.product(range(values), repeat=tunables):
        us = 2 + sum((i + 1) * abs(value - (i + 1) % values) for i, value in enumerate(config))
        text = "made " + " ".join(f"t{i}={value}" for i, value in enumerate(config))
        candidates[text] = {"status": "ok", "us": [us]}
    return recorded_space.space_of("rmsnorm rows=1", "Made Up", candidates)


@unittest.skipIf(strategies is None, "needs NumPy")
class Strategies(unittest.TestCase):
    def search(self, space: recorded_space.Space, budget: int, seed: int) -> strategies.Search:
        return strategies.Search(strategies.places_of(space), space.us(), budget, (seed,))

    def measured(self, name: str, budget: int, seed: int, space: recorded_space.Space) -> List[int]:
        return strategies.measured_by(strategies.FIELD[name], self.search(space, budget, seed))

    def test_each_makes_as_many_measurements_as_it_may_of_different_candidates(self) -> None:
        for name, budget in itertools.product(strategies.FIELD, (1, 7, 64)):
            for space in (made_up_space(), made_up_space(values=3, tunables=2)):
                with self.subTest(name, budget=budget, candidates=len(space.candidates)):
                    order = self.measured(name, budget, 1, space)
                    self.assertEqual(len(order), min(budget, len(space.candidates)))
                    self.assertEqual(len(set(order)), len(order))

    def test_a_seed_is_a_search(self) -> None:
        space = made_up_space()
        for name in strategies.FIELD:
            with self.subTest(name):
                self.assertEqual(self.measured(name, 64, 1, space), self.measured(name, 64, 1, space))
                self.assertNotEqual(self.measured(name, 64, 1, space), self.measured(name, 64, 2, space))

    def test_those_that_search_find_more_than_chance_does(self) -> None:
        space = made_up_space()
        us = space.us()

        def found(name: str) -> float:
            return statistics.mean(min(us[i] for i in self.measured(name, 64, seed, space)) for seed in range(20))

        for name in set(strategies.FIELD) - {"random"}:
            with self.subTest(name):
                self.assertLess(found(name), found("random"))

    def test_candidates_that_fail_are_measured_and_never_found(self) -> None:
        space = made_up_space()
        broken = {text: record if i % 3 else {"status": "over_limits"}
                  for i, (text, record) in enumerate(zip(space.candidates, space.records))}  # fmt: skip
        space = recorded_space.space_of(space.problem, space.device, broken)
        for name in strategies.FIELD:
            with self.subTest(name):
                order = self.measured(name, 64, 3, space)
                self.assertTrue(any(math.isinf(space.us()[i]) for i in order))
                self.assertTrue(all(math.isfinite(value) for value in strategies.regrets(space.us(), order)))

    def test_the_nearest_is_the_one_itself_or_has_the_fewest_other_values(self) -> None:
        space = made_up_space(values=3, tunables=3)
        search = self.search(space, 10, 5)
        for i, places in enumerate(search.places):
            self.assertEqual(search.nearest(places), i)
        self.assertEqual(search.nearest(search.places[7] + [0, 0, 0, 99]) // 3, 7 // 3)
        self.assertEqual(sorted(search.neighbours(0)), [1, 2, 3, 6, 9, 18])

    def test_regret_is_of_the_best_so_far(self) -> None:
        us = [4.0, math.inf, 3.0, 2.5, 2.0] + [5.0] * 60
        order = [1, 0, 2, 3, 4, *range(5, 64)]
        self.assertEqual(strategies.regrets(us, order), [0.25, 0, 0, 0, 0])
        self.assertEqual(strategies.regrets([math.inf] * 4 + [1.0, 2.0], [0, 1, 2, 3, 4])[:2], [1.0, 0.0])

    def test_means_are_geometric(self) -> None:
        self.assertEqual(str(strategies.spread([0.0, 3.0])), "100.0/285.0/300.0")


if __name__ == "__main__":
    unittest.main()

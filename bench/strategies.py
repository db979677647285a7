"""How many measurements does it take? Hone's order of candidates beside search strategies of the field, on recorded sweeps.

    python3 bench/strategies.py [--build build/release] [--seeds 50] [--update-docs]

Every strategy may measure 4, 8, 16, 32 or 64 candidates of a problem; its regret is the time of the fastest that it has seen
over that of the fastest recorded one, less 1. The others are the three that Kernel Tuner's authors found best, written from
their papers with Kernel Tuner's parameters: differential evolution (Storn and Price, 1997), a genetic algorithm (Holland, 1975),
greedy iterated local search (Lourenco, Martin and Stuetzle, 2003); and random search. docs/performance.md says under which
conditions they are compared. Needs NumPy (Debian: python3-numpy).
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import zlib
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from recorded_space import Space, read_recording
from speedup_picture import STYLE, text_at

TREE = Path(__file__).resolve().parent.parent
PAGE = TREE / "docs/performance.md"
PICTURE = TREE / "docs/images/strategies.svg"
BUDGETS = (4, 8, 16, 32, 64)
WHOLE_SWEEP = 96  # measured candidates: those of problems with fewer were chosen by an earlier search


class Spent(Exception):
    """The last measurement has been made."""


def places_of(space: Space) -> np.ndarray:
    """[candidates, parameters]: which of its parameter's values, in their order, each one is."""
    orders = [sorted(set(column)) for column in zip(*space.configs)]
    return np.array([[order.index(value) for order, value in zip(orders, config)] for config in space.configs])


class Memory:
    """What Search has worked out of a problem's space, for all its seeds: the same configurations come again and again."""

    def __init__(self) -> None:
        self.nearest: Dict[Tuple[int, ...], List[int]] = {}
        self.neighbours: Dict[int, np.ndarray] = {}


class Search:
    """What a strategy sees of a problem: places of values instead of values, and times at a price. What was measured once
    costs nothing again; a configuration that was not recorded is not measured but replaced by the one nearest to it."""

    def __init__(self, places: np.ndarray, us: List[float], budget: int, seed: Sequence[int],
                 memory: Optional[Memory] = None):
        self.places = places  # [candidates, parameters], as places_of() gives them
        self.rows = places.tolist()  # the same as lists, which are faster where few numbers are worked on
        self.most = places.max(axis=0)
        self.us = us
        self.budget = min(budget, len(us))
        self.random = np.random.default_rng(seed)
        self.measured: Dict[int, float] = {}  # in their order
        self.memory = memory or Memory()

    def __len__(self) -> int:
        return len(self.us)

    def measure(self, candidate: int) -> float:
        if candidate not in self.measured:
            self.measured[candidate] = self.us[candidate]
            if len(self.measured) == self.budget:
                raise Spent
        return self.measured[candidate]

    def any(self) -> int:
        return int(self.random.integers(len(self)))

    def sample(self, count: int) -> List[int]:
        return self.random.permutation(len(self))[:count].tolist()

    def nearest(self, places: Sequence[int]) -> int:
        """The fewest other values, then the smallest distance between places, then by chance."""
        key = tuple(places)
        near = self.memory.nearest.get(key)
        if near is None:
            apart = np.abs(self.places - np.array(key))
            score = (apart != 0).sum(axis=1) * 1e6 + apart.sum(axis=1)
            near = self.memory.nearest[key] = np.flatnonzero(score == score.min()).tolist()
        return near[int(self.random.random() * len(near))] if len(near) > 1 else near[0]

    def neighbours(self, candidate: int) -> List[int]:
        """Those with one other value, in the order of chance."""
        if candidate not in self.memory.neighbours:
            differ = (self.places != self.places[candidate]).sum(axis=1)
            self.memory.neighbours[candidate] = np.flatnonzero(differ == 1)
        return self.random.permutation(self.memory.neighbours[candidate]).tolist()


def random_search(search: Search) -> None:
    for candidate in search.sample(len(search)):
        search.measure(candidate)


def differential_evolution(search: Search) -> None:
    """rand-to-best/1/bin over places as real numbers; 20 members, F from 0.5 to 1 anew each generation, CR 0.7; begins anew
    after 100 generations, or when the members' times differ by 1 % in standard deviation."""
    size, crossover, generations = 20, 0.7, 100
    most = search.most.tolist()
    while True:
        members = [search.rows[i] for i in search.sample(size)]
        times = [search.measure(search.nearest(member)) for member in members]
        for _ in range(generations):
            if all(map(math.isfinite, times)) and statistics.pstdev(times) <= 0.01 * statistics.fmean(times):
                break
            scale = search.random.uniform(0.5, 1.0)
            for i in range(len(members)):
                evolve(search, members, times, i, scale, crossover, most)


def evolve(search: Search, members: List[List[float]], times: List[float], i: int, scale: float, crossover: float,
           most: List[int]) -> None:
    """The i-th member's trial takes its place where it is not slower."""
    count, width = len(members), len(most)
    chance = search.random.random(2 * width + 4).tolist()
    a, b, c = int(chance[-1] * count), int(chance[-2] * (count - 1)), int(chance[-3] * (count - 2))
    b += b >= a  # three different members, each as likely as the others
    c += c >= min(a, b)
    c += c >= max(a, b)
    base, left, right, best = members[a], members[b], members[c], members[times.index(min(times))]
    always = int(chance[-4] * width)
    trial = list(members[i])
    for k, end in enumerate(most):
        if chance[k] < crossover or k == always:
            value = base[k] + scale * (best[k] - base[k]) + scale * (left[k] - right[k])
            trial[k] = value if 0 <= value <= end else chance[width + k] * end
    time = search.measure(search.nearest([round(value) for value in trial]))
    if time <= times[i]:
        members[i], times[i] = trial, time


def genetic_algorithm(search: Search) -> None:
    """30 members, parents by rank (beta distribution, 1 and 2.5), uniform crossover, one child in 20 mutates."""
    size, generations = 30, 30
    while True:
        members = search.sample(min(size, len(search) // 2))
        for _ in range(generations):
            ranked = sorted(members, key=search.measure)
            children: Dict[int, None] = {}
            for _ in range(100 * len(members)):  # where all children are alike there are no more
                if len(children) < len(members):
                    children.update(dict.fromkeys(offspring(search, ranked)))
            members = list(children)[: len(members)]
            if len(members) < 2:
                break


def offspring(search: Search, ranked: List[int]) -> List[int]:
    first = second = int(search.random.beta(1, 2.5) * len(ranked))
    while second == first:
        second = int(search.random.beta(1, 2.5) * len(ranked))
    mother, father = search.rows[ranked[first]], search.rows[ranked[second]]
    mask = [chance < 0.5 for chance in search.random.random(len(mother)).tolist()]
    pairs = list(zip(mask, mother, father))
    children = [search.nearest([m if first else f for first, m, f in pairs]),
                search.nearest([f if first else m for first, m, f in pairs])]
    return [mutated(search, child) if search.random.integers(20) == 0 else child for child in children]


def mutated(search: Search, candidate: int) -> int:
    neighbours = search.neighbours(candidate)
    return neighbours[0] if neighbours else search.any()


def greedy_local_search(search: Search) -> None:
    """Moves to the first neighbour that is faster; where there is none, changes three in ten values of the best so far, and
    begins anew after 50 changes that led nowhere."""
    changes, patience = max(1, int(0.3 * len(search.most))), 50
    while True:
        best, failures = climb(search, search.any()), 0
        while failures < patience:
            candidate = best
            for _ in range(changes):
                candidate = mutated(search, candidate)
            candidate = climb(search, candidate)
            failures = 0 if search.measure(candidate) < search.measure(best) else failures + 1
            best = min(best, candidate, key=search.measure)


def climb(search: Search, candidate: int) -> int:
    time = search.measure(candidate)
    while True:
        faster = next((other for other in search.neighbours(candidate) if search.measure(other) < time), None)
        if faster is None:
            return candidate
        candidate, time = faster, search.measure(faster)


FIELD: Dict[str, Callable[[Search], None]] = {
    "random": random_search,
    "differential evolution": differential_evolution,
    "genetic algorithm": genetic_algorithm,
    "greedy local search": greedy_local_search,
}
COLD, SHIPPED = "Hone, nothing known", "Hone, H100's winners known"


def regrets(us: List[float], order: Sequence[int]) -> List[float]:
    """After each budget; the slowest that runs stands for none that runs."""
    valid = [time for time in us if math.isfinite(time)]
    found = [min([us[i] for i in order[:budget] if math.isfinite(us[i])], default=max(valid)) for budget in BUDGETS]
    return [time / min(valid) - 1 for time in found]


def measured_by(strategy: Callable[[Search], None], search: Search) -> List[int]:
    """In order."""
    try:
        strategy(search)
    except Spent:
        pass
    return list(search.measured)


Regrets = Dict[str, List[List[float]]]  # by strategy; of each problem and seed those after each budget


def of_problem(space: Space, orders: Dict[str, List[str]], seeds: int) -> Regrets:
    """`orders` are Hone's, by name."""
    us, places = space.us(), places_of(space)
    found = {name: [regrets(us, [space.candidates.index(candidate) for candidate in order])]
             for name, order in orders.items()}
    start, memory = zlib.crc32(space.problem.encode()), Memory()
    for name, strategy in FIELD.items():
        searches = (Search(places, us, max(BUDGETS), (start, seed), memory) for seed in range(seeds))
        found[name] = [regrets(us, measured_by(strategy, search)) for search in searches]
    return found


def compare(spaces: List[Space], orders: Dict[str, Dict[str, List[str]]], seeds: int) -> Dict[str, Regrets]:
    """By family. `orders` are Hone's, by name and problem."""
    found: Dict[str, Regrets] = defaultdict(lambda: defaultdict(list))
    own = [{name: order[space.problem] for name, order in orders.items()} for space in spaces]
    with ProcessPoolExecutor() as pool:
        for space, regret in zip(spaces, pool.map(of_problem, spaces, own, [seeds] * len(spaces))):
            for name, rows in regret.items():
                found[space.family][name] += rows
    return found


class Spread(NamedTuple):
    """Percent."""

    mean: float  # geometric, of the ratios
    high: float  # 95th percentile
    worst: float

    def __str__(self) -> str:
        return f"{self.mean:.1f}/{self.high:.1f}/{self.worst:.1f}"


def spread(values: Sequence[float]) -> Spread:
    ratios = 1 + np.array(values)
    mean = math.exp(np.log(ratios).mean()) - 1
    return Spread(100 * mean, 100 * (np.quantile(ratios, 0.95) - 1), 100 * (ratios.max() - 1))


def table(found: Dict[str, Regrets], counts: Dict[str, int], gpu: str) -> List[str]:
    """All budgets over all problems, then 16 measurements by family."""
    names = list(next(iter(found.values())))
    everything = {name: [row for family in found.values() for row in family[name]] for name in names}
    lines = [f"| {gpu} | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for i, budget in enumerate(BUDGETS):
        cells = [str(spread([row[i] for row in everything[name]])) for name in names]
        lines.append(f"| {sum(counts.values())} problems, {budget} measurements | " + " | ".join(cells) + " |")
    sixteen = BUDGETS.index(16)
    for family, regret in sorted(found.items()):
        cells = [str(spread([row[sixteen] for row in regret[name]])) for name in names]
        lines.append(f"| {family}, {counts[family]} problems, 16 measurements | " + " | ".join(cells) + " |")
    return [*lines, ""]


# --- the picture -----------------------------------------------------------------------------------------------------

COLOURS = {SHIPPED: "#2f4bb0", COLD: "#7f9cf5", "random": "#8b949e", "differential evolution": "#c2772b",
           "genetic algorithm": "#3d8f5f", "greedy local search": "#a34a7d"}  # fmt: skip
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, LEGEND = 880, 380, 70, 64, 56, 230  # px
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10)  # percent


def x_of(budget: int) -> float:
    return LEFT + (WIDTH - LEFT - LEGEND) * math.log2(budget / BUDGETS[0]) / math.log2(BUDGETS[-1] / BUDGETS[0])


def y_of(percent: float) -> float:
    share = math.log(min(max(percent, TICKS[0]), TICKS[-1]) / TICKS[0]) / math.log(TICKS[-1] / TICKS[0])
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def line_of(name: str, percents: Sequence[float]) -> List[str]:
    points = " ".join(f"{x_of(budget):.1f},{y_of(percent):.1f}" for budget, percent in zip(BUDGETS, percents))
    return [f'<polyline points="{points}" fill="none" stroke="{COLOURS[name]}" stroke-width="2.5"/>']


def legend(means: Dict[str, List[float]]) -> List[str]:
    """From the largest last mean to the smallest, as the lines end, without touching."""
    lines, y = [], TOP + 6.0
    for name in sorted(means, key=lambda name: -means[name][-1]):
        y = max(y, y_of(means[name][-1]) + 4)
        lines.append(f'<rect x="{WIDTH - LEGEND + 14}" y="{y - 9:.1f}" width="14" height="4" fill="{COLOURS[name]}"/>')
        lines.append(text_at(WIDTH - LEGEND + 34, y, name, "small"))
        y += 18
    return lines


def picture(means: Dict[str, List[float]], says: str) -> str:
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{says}">',
             f"<title>{says}</title>", f"<style>{STYLE}</style>",
             f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" class="page"/>',
             text_at(24, 34, "How far the best found is from the best there is, after so many measurements", "title")]
    for tick in TICKS:
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - LEGEND}" y1="{y_of(tick):.1f}" y2="{y_of(tick):.1f}" class="grid"/>')
        lines.append(text_at(LEFT - 8, y_of(tick) + 4, f"{tick:g} %", "small", "end"))
    lines += [text_at(x_of(budget), HEIGHT - BOTTOM + 20, str(budget), "small", "middle") for budget in BUDGETS]
    for name, percents in means.items():
        lines += line_of(name, percents)
    return "\n".join([*lines, *legend(means), text_at(24, HEIGHT - 12, says + ".", "small"), "</svg>", ""])


# --- the run ---------------------------------------------------------------------------------------------------------


def orders_of(program: Path, recording: Path, bundle: Optional[Path]) -> Dict[str, List[str]]:
    command = [str(program), str(recording), *([str(bundle)] if bundle else [])]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return {row["problem"]: row["order"] for row in map(json.loads, lines)}


def run(recording: str, bundle: Optional[str], options: argparse.Namespace) -> Tuple[List[str], str]:
    """Lines of the table, and the picture."""
    file = TREE / "configs/recorded" / recording
    program = options.build / "bench/candidate_orders"
    orders = {COLD: orders_of(program, file, None)}
    if bundle:
        orders[SHIPPED] = orders_of(program, file, TREE / "configs/tuned" / bundle)
    known = set(orders[COLD])
    spaces = [space for space in read_recording(file)
              if space.problem in known and sum(map(math.isfinite, space.us())) >= WHOLE_SWEEP]
    found = compare(spaces, orders, options.seeds)
    counts = {family: sum(space.family == family for space in spaces) for family in found}
    names = list(next(iter(found.values())))
    means = {name: [spread([row[i] for family in found.values() for row in family[name]]).mean
                    for i in range(len(BUDGETS))] for name in names}
    gpu = spaces[0].device
    says = f"Geometric mean of {len(spaces)} problems on the {gpu}, {options.seeds} seeds"
    return table(found, counts, gpu), picture(means, says)


def update_docs(lines: List[str], drawn: str) -> None:
    marks = ("<!-- strategies:begin -->\n", "<!-- strategies:end -->")
    text = PAGE.read_text(encoding="utf-8")
    new, count = re.subn(f"{marks[0]}.*?{marks[1]}", lambda _: marks[0] + "\n".join(lines) + marks[1], text, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{PAGE} has no place between {marks[0].strip()} and {marks[1]}")
    PAGE.write_text(new, encoding="utf-8")
    PICTURE.write_text(drawn, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=TREE / "build/release", help="has bench/candidate_orders")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--update-docs", action="store_true", help="writes docs/performance.md and its picture")
    options = parser.parse_args()
    # The H100's own winners come from its sweep: knowing them would be knowing the answer.
    lines, drawn = run("h200-sxm.jsonl", "h100-sxm.json", options)
    lines += run("h100-sxm.jsonl", None, options)[0]
    print("\n".join(lines))
    if options.update_docs:
        update_docs(lines, drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main())

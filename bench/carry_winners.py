"""Carries winners that ship over a change of their templates that left machine code and launches as they were:

    python3 bench/carry_winners.py --before OLD_BUILD/hone --after build/release/hone [FILE...]

Rows of configs/tuned carry the hash of their template, and after any edit of that or of its plan they are stale: seeds
for a tuner, never dispatched. Of the variants whose rows carry the hash that the program before the change has, and not
that of the one after it, both programs compile the winners (`hone compile`: NVRTC, no GPU, all cores). Compared are the
cubins, byte for byte, and the plans: grids, blocks, shared memory, arguments, tensor maps, workspace. A row gets the
new hash where its winner has the same of both. What was not compared (contenders, and winners that --sample leaves out)
gets it where nothing of its variant differs. Rows that differ are listed and stay stale, as do rows whose hash neither
program has; --drop takes both out of the file. Nothing else of a file changes, not a byte but its SHA-256.

A tunable that the change brings is named with --added, with the value that does what was done without it:

    python3 bench/carry_winners.py ... --added linear.wgmma.stages_together=1

Where device code names the tunable itself, its name is a symbol of every cubin of the variant: all differ then, though
instructions may be the same (nvdisasm shows them).

Of a change that is meant to change kernels, and leaves what each is chosen for, --trust has rows that differ carried over,
too, as long as both programs compile them: they are the best choices that are known, with times of the kernels before, until
bench/race_winners.py has them raced anew.

Exit code: 0 when no row is stale any more, 1 when some are, 2 when a file cannot be read or a program fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from tuned_bundle import Bundle, Failed, Image, Trial, Variant, rendered, sha256

TREE = Path(__file__).resolve().parent.parent
Added = Dict[Variant, Dict[str, str]]  # values of new tunables, by name
OTHER = "other "  # begins what is said of a kernel that both programs compile


class Kernel(NamedTuple):
    """What `hone compile` says of a candidate: digests of its cubin and of its launches for the problem."""

    image: str
    plan: str


class Program:
    """A build of hone, with a cache of its own that begins empty."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path.resolve()
        self._folder = folder
        folder.mkdir()
        self._environment = {**os.environ, "HONE_CACHE": str(folder / "cache.db"), "HONE_PACKAGED": "off"}
        self._environment.pop("HONE_SITE_CACHE", None)
        variants = [
            (family["name"], variant) for family in self._data("spaces")["families"] for variant in family["variants"]
        ]
        self.hashes = {(family, variant["name"]): variant["template_hash"] for family, variant in variants}
        self.tunables = {
            (family, variant["name"]): [tunable["name"] for tunable in variant["tunables"]]
            for family, variant in variants
        }

    def _data(self, *words: str) -> Dict[str, Any]:
        try:
            ended = subprocess.run(
                [str(self.path), *words, "--json"], env=self._environment, stdout=subprocess.PIPE, check=False
            )
            answer = json.loads(ended.stdout)
        except (OSError, ValueError) as error:
            raise Failed(f"{self.path} {words[0]}: {error}") from error
        if "data" not in answer:
            raise Failed(f"{self.path} {words[0]}: {answer['error']['message']}")
        return answer["data"]

    def kernels(self, trials: List[Tuple[Trial, str]]) -> Dict[Tuple[str, str], Kernel]:
        """By problem and candidate: what compiles of these candidates for the problems of their trials."""
        found: Dict[Tuple[str, str], Kernel] = {}
        # A problem has one winner a GPU: each trial gets a GPU of its own.
        named = [
            {**trial.facts, "candidate": candidate, "template_hash": self.hashes[trial.variant], "gpu_name": f"{i}"}
            for i, (trial, candidate) in enumerate(trials)
        ]
        self._data("import", str(self._written("winners.json", _bundle_of(named))))
        for arch in sorted({trial.arch for trial, _ in trials}):
            problems = {trial.problem: None for trial, _ in trials if trial.arch == arch}
            calls = [{"calls": 1, "gpu": arch, "problem": problem} for problem in problems]
            capture = json.dumps({"schema": "hone.capture/1", "problems": calls})
            data = self._data("compile", "--captured", str(self._written("calls.json", capture)), "--arch", arch)
            if "kernels" not in data:
                raise Failed(f"{self.path}: its `hone compile --json` has no list of kernels yet")
            for kernel in data["kernels"]:
                found[kernel["problem"], kernel["candidate"]] = Kernel(kernel["image"], kernel["plan"])
        return found

    def _written(self, name: str, text: str) -> Path:
        file = self._folder / name
        file.write_text(text, encoding="utf-8")
        return file


def _bundle_of(rows: List[Dict[str, Any]]) -> str:
    array = "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]"
    return f'{{"schema": "hone.tuned/3", "sha256": "{sha256(array)}", "winners": {array}}}'


class Change:
    """What lies between two programs, for rows that carry the hashes of the first one."""

    def __init__(self, before: Program, after: Program, added: Added, trust: bool) -> None:
        self.before = before
        self.after = after
        self._added = added
        self._trust = trust
        self.differences: Dict[Tuple[str, str], str] = {}  # by problem and candidate; "" where there is none
        self._parted: Dict[Variant, bool] = {}  # of variants that were compared, whether some row stays behind

    def candidate(self, trial: Trial) -> str:
        """As the program after it writes it."""
        added = self._added.get(trial.variant)
        if added is None:
            return trial.candidate
        values = {**added, **dict(word.split("=") for word in trial.candidate.split()[1:])}
        return " ".join([trial.variant[1], *(f"{name}={values[name]}" for name in self.after.tunables[trial.variant])])

    def concerns(self, trial: Trial) -> bool:
        known = trial.variant in self.after.hashes
        return known and trial.hash == self.before.hashes.get(trial.variant) != self.after.hashes[trial.variant]

    def compare(self, trials: List[Trial]) -> None:
        if not trials:
            return
        here = self.before.kernels([(trial, trial.candidate) for trial in trials])
        there = self.after.kernels([(trial, self.candidate(trial)) for trial in trials])
        for trial in trials:
            one = here.get((trial.problem, trial.candidate))
            other = there.get((trial.problem, self.candidate(trial)))
            difference = _difference(one, other)
            self.differences[trial.problem, trial.candidate] = difference
            self._parted[trial.variant] = self._parted.get(trial.variant, False) or self._parts(difference)

    def hash(self, trial: Trial) -> str:
        """The one that it carries from now on."""
        if not self.concerns(trial):
            return trial.hash
        known = self.differences.get((trial.problem, trial.candidate))
        stays = self._parted[trial.variant] if known is None else self._parts(known)
        return trial.hash if stays else self.after.hashes[trial.variant]

    def is_stale(self, trial: Trial) -> bool:
        return self.hash(trial) != self.after.hashes.get(trial.variant)

    def _parts(self, difference: str) -> bool:
        """Whether the row of such a kernel stays behind."""
        return difference != "" and not (self._trust and difference.startswith(OTHER))


def _difference(one: Optional[Kernel], other: Optional[Kernel]) -> str:
    if one is None or other is None:
        return f"not compiled by the program {'before' if one is None else 'after'} the change"
    same = {"machine code": one.image == other.image, "launches": one.plan == other.plan}
    return "" if all(same.values()) else OTHER + " and ".join(what for what in same if not same[what])


def chosen(trials: List[Trial], sample: Optional[int]) -> List[Trial]:
    """What is compared: of each variant its winners, or contenders where it has none; of each kind so many images."""
    found: List[Trial] = []
    for variant in sorted({trial.variant for trial in trials}):
        its = [trial for trial in trials if trial.variant == variant]
        its = [trial for trial in its if trial.is_winner] or its
        kinds: Dict[str, List[Image]] = {}
        for image in sorted({trial.image for trial in its}):
            kinds.setdefault(image.kind, []).append(image)
        images = {image for kind in kinds.values() for image in evenly(kind, sample or len(kind))}
        found += [trial for trial in its if trial.image in images]
    return found


def evenly(images: List[Image], count: int) -> List[Image]:
    count = min(count, len(images))
    return [images[i * len(images) // count] for i in range(count)]


def counted(trials: List[Trial]) -> str:
    winners = sum(trial.is_winner for trial in trials)
    return f"{winners} winners and {len(trials) - winners} contenders"


def report(trials: List[Trial], change: Change, drop: bool) -> None:
    """What became of rows that were stale, by variant and hash; lines of rows that differ."""
    concerned = [trial for trial in trials if trial.hash != change.after.hashes.get(trial.variant)]
    for variant, hash_ in sorted({(trial.variant, trial.hash) for trial in concerned}):
        its = [trial for trial in concerned if (trial.variant, trial.hash) == (variant, hash_)]
        stale = [trial for trial in its if change.is_stale(trial)]
        carried = [trial for trial in its if not change.is_stale(trial)]
        compared = {trial.image for trial in its if (trial.problem, trial.candidate) in change.differences}
        parts = [f"{len(compared)} images compared"] if change.concerns(its[0]) else [f"{hash_} is of neither program"]
        parts += [f"{counted(carried)} carried over"] if carried else []
        trusted = sum(1 for trial in carried if change.differences.get((trial.problem, trial.candidate)))
        parts += [f"{trusted} of them with another kernel"] if trusted else []
        parts += [f"{counted(stale)} {'dropped' if drop else 'left stale'}"] if stale else []
        print(f"{' '.join(variant)}: {', '.join(parts)}")
        differing = {(trial.problem, trial.candidate): None for trial in stale}
        for row in differing:
            if difference := change.differences.get(row):
                print(f"  {difference}: {': '.join(row)}")


def lines_of(bundle: Bundle, change: Change, drop: bool) -> List[str]:
    lines = []
    for row in bundle.rows:
        kept = [trial for trial in row.trials if not (drop and change.is_stale(trial))]
        if not kept or not kept[0].is_winner:
            continue
        winners_hash = change.hash(kept[0])
        texts = [trial.rewritten(change.candidate(trial), change.hash(trial), winners_hash) for trial in kept]
        lines.append(rendered(texts))
    return lines


def added_tunables(words: List[str]) -> Added:
    added: Added = {}
    for word in words:
        found = re.fullmatch(r"(\w+)\.(\w+)\.(\w+)=(-?\d+)", word)
        if found is None:
            raise Failed(f"--added {word}: allowed: FAMILY.VARIANT.TUNABLE=VALUE")
        added.setdefault((found[1], found[2]), {})[found[3]] = found[4]
    return added


def carry(options: argparse.Namespace, folder: Path) -> int:
    bundles = [Bundle(file) for file in options.files]
    added = added_tunables(options.added)
    before, after = (Program(path, folder / name) for path, name in ((options.before, "before"), (options.after, "after")))
    change = Change(before, after, added, options.trust)
    trials = [trial for bundle in bundles for row in bundle.rows for trial in row.trials]
    change.compare(chosen([trial for trial in trials if change.concerns(trial)], options.sample))
    report(trials, change, options.drop)
    for bundle in bundles:
        bundle.file.write_text(bundle.text(lines_of(bundle, change, options.drop)), encoding="utf-8")
    return 0 if options.drop or not any(map(change.is_stale, trials)) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help="default: those of configs/tuned")
    parser.add_argument("--before", type=Path, required=True, help="hone of a build before the change")
    parser.add_argument("--after", type=Path, required=True, help="hone of a build with it")
    parser.add_argument("--sample", type=int, metavar="N", help="compare N images of problems that differ in sizes")
    parser.add_argument("--added", action="append", default=[], metavar="FAMILY.VARIANT.TUNABLE=VALUE")
    parser.add_argument("--trust", action="store_true", help="carry rows over whose kernels differ, too")
    parser.add_argument("--drop", action="store_true", help="take stale rows and contenders out of the files")
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help="compile on N cores (default: all)")
    options = parser.parse_args()
    if options.sample is not None and options.sample < 1:
        parser.error("--sample: at least 1")
    options.files = options.files or sorted((TREE / "configs" / "tuned").glob("*.json"))
    if options.jobs is not None:  # a program has as many compilers as it may use cores
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: max(1, options.jobs)])
    try:
        with tempfile.TemporaryDirectory(prefix="hone-carry-") as folder:
            return carry(options, Path(folder))
    except (Failed, OSError) as error:
        print(f"carry_winners: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

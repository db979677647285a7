"""bench/carry_winners.py: which rows get the hash of a template that changed, and that nothing else of a file does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List, Optional

from bundles import bundle, contender, row
from fakes import PROGRAM, TREE

CARRY = TREE / "bench" / "carry_winners.py"
OLD, NEW, OTHER, ANCIENT = ("0" * 31 + digit for digit in "1234")

# A build that answers from the file beside it: what it compiles has one digest but where that file says otherwise.
STAND_IN = """#!{python}
import json, os, shutil, sys
spec = json.load(open(sys.argv[0] + ".json"))
data = {{}}
if sys.argv[1] == "spaces":
    families = {{}}
    for name, hash in spec["hashes"].items():
        family, variant = name.split()
        tunables = [{{"name": tunable}} for tunable in spec["tunables"]]
        families.setdefault(family, []).append({{"name": variant, "template_hash": hash, "tunables": tunables}})
    data["families"] = [{{"name": family, "variants": variants}} for family, variants in families.items()]
elif sys.argv[1] == "import":
    shutil.copy(sys.argv[2], os.environ["HONE_CACHE"])
else:
    rows = json.load(open(os.environ["HONE_CACHE"]))["winners"]
    called = [call["problem"] for call in json.load(open(sys.argv[sys.argv.index("--captured") + 1]))["problems"]]
    json.dump([row["candidate"] for row in rows], open(sys.argv[0] + ".compiled", "w"))
    data["kernels"] = []
    for row in rows:
        problem = " ".join(row[name] for name in ("family", "static_fields", "dynamic_fields"))
        digests = {{"image": "i", "plan": "p", **spec["digests"].get(row["candidate"], {{}})}}
        if problem in called and digests["image"]:
            data["kernels"].append({{"problem": problem, "candidate": row["candidate"], **digests}})
    if spec.get("has_no_list"):
        del data["kernels"]
print(json.dumps({{"ok": True, "data": data}}))
"""


class Carry(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.file = self.folder / "winners.json"
        self.before = self.stand_in("before", {"linear a": OLD, "linear b": OTHER})
        self.after = self.stand_in("after", {"linear a": NEW, "linear b": OTHER})

    def script(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def stand_in(
        self, name: str, hashes: Dict[str, str], digests: Optional[Dict[str, Any]] = None, tunables: str = "n", **more: Any
    ) -> Path:
        spec = {"hashes": hashes, "tunables": tunables.split(), "digests": digests or {}, **more}
        (self.folder / f"{name}.json").write_text(json.dumps(spec), encoding="utf-8")
        return self.script(name, STAND_IN.format(python=sys.executable))

    def carry(self, text: str, *options: str) -> subprocess.CompletedProcess[str]:
        self.file.write_text(text, encoding="utf-8")
        words = ["--before", str(self.before), "--after", str(self.after), *options, str(self.file)]
        return subprocess.run(
            [sys.executable, "-B", str(CARRY), *words], check=False, universal_newlines=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def expect(self, code: int, given: List[str], left: List[str], *options: str) -> str:
        """What the program prints."""
        ended = self.carry(bundle(*given), *options)
        self.assertEqual(self.file.read_text(encoding="utf-8"), bundle(*left), ended.stdout)
        self.assertEqual(ended.returncode, code, ended.stdout)
        return ended.stdout

    def test_rows_whose_code_is_the_same_get_the_new_hash_and_their_contenders_too(self) -> None:
        printed = self.expect(
            0,
            [row("a n=1", OLD, contender("a n=2"), contender("b n=1", OTHER)), row("b n=1", OTHER, contender("a n=2", OLD), tokens=2)],
            [row("a n=1", NEW, contender("a n=2"), contender("b n=1", OTHER)), row("b n=1", OTHER, contender("a n=2", NEW), tokens=2)],
        )  # fmt: skip
        self.assertIn("linear a: 1 images compared, 1 winners and 2 contenders carried over", printed)

    def test_files_without_a_stale_row_stay_as_they_are(self) -> None:
        self.expect(0, [row("a n=1", NEW), row("b n=1", OTHER, tokens=2)], [row("a n=1", NEW), row("b n=1", OTHER, tokens=2)])
        by_hand = '{"candidate":"b n=2","template_hash":"%s","median_us":2}' % OTHER
        self.expect(0, [row("a n=1", NEW, by_hand)], [row("a n=1", NEW, by_hand)])
        self.expect(0, [], [])

    def test_rows_that_differ_are_named_and_left_and_contenders_that_nobody_compared_with_them(self) -> None:
        self.stand_in("after", {"linear a": NEW}, {"a n=2": {"image": "j"}, "a n=3": {"plan": "q"}, "a n=4": {"image": ""}})
        rows = [row(f"a n={n}", OLD, contender("a n=9"), tokens=n) for n in (1, 2, 3, 4)]
        mixed = row("a n=1", NEW, contender("a n=9", OLD))
        printed = self.expect(1, rows, [mixed, *rows[1:]])
        self.assertIn("other machine code: linear dtype=bf16 in=64 tokens=2: a n=2\n", printed)
        self.assertIn("other launches: linear dtype=bf16 in=64 tokens=3: a n=3\n", printed)
        self.assertIn("not compiled by the program after the change: linear dtype=bf16 in=64 tokens=4: a n=4\n", printed)
        self.assertIn("1 winners and 0 contenders carried over, 3 winners and 4 contenders left stale", printed)
        self.expect(0, rows, [row("a n=1", NEW)], "--drop")

    def test_rows_that_differ_are_carried_over_where_that_is_trusted_but_not_what_does_not_compile(self) -> None:
        self.stand_in("after", {"linear a": NEW}, {"a n=2": {"image": "j"}, "a n=4": {"image": ""}})
        rows = [row(f"a n={n}", OLD, contender("a n=9"), tokens=n) for n in (1, 2)]
        printed = self.expect(0, rows, [text.replace(OLD, NEW) for text in rows], "--trust")
        self.assertIn("2 winners and 2 contenders carried over, 1 of them with another kernel", printed)
        gone = row("a n=4", OLD, tokens=4)
        self.assertIn("not compiled by the program after the change", self.expect(1, [gone], [gone], "--trust"))

    def test_rows_of_neither_program_are_left_until_they_are_dropped(self) -> None:
        gone = row("c n=1", OTHER, tokens=2)
        rows = [row("a n=1", ANCIENT, contender("b n=1", OTHER)), gone, row("b n=1", OTHER, contender("a n=1", ANCIENT), tokens=3)]
        self.assertIn(f"linear a: {ANCIENT} is of neither program, 1 winners and 1 contenders left stale", self.expect(1, rows, rows))
        self.expect(0, rows, [row("b n=1", OTHER, tokens=3)], "--drop")

    def test_a_sample_has_an_image_of_each_kind_of_problem(self) -> None:
        rows = [row(f"a n={n}", OLD, tokens=n, static=f"dtype={dtype} in={n}") for dtype in ("bf16", "fp16") for n in range(1, 9)]
        self.expect(0, rows, [text.replace(OLD, NEW) for text in rows], "--sample", "2")
        compiled = json.loads((self.folder / "after.compiled").read_text(encoding="utf-8"))
        self.assertEqual(compiled, ["a n=1", "a n=5"] * 2)

    def test_a_new_tunable_is_written_into_rows_that_programs_before_it_read_without(self) -> None:
        self.stand_in("after", {"linear a": NEW, "linear b": OTHER}, {"a m=0 n=1": {"image": ""}}, tunables="m n")
        given = [row("a n=2", OLD, contender("a n=1"), contender("b n=1", OTHER))]
        left = [row("a m=3 n=2", NEW, contender("a m=3 n=1"), contender("b n=1", OTHER))]
        self.expect(0, given, left, "--added", "linear.a.m=3")
        self.assertEqual(self.carry(bundle(), "--added", "linear.m=3").returncode, 2)

    def test_what_cannot_be_compared_is_an_error_and_changes_nothing(self) -> None:
        text = bundle(row("a n=1", OLD))
        for damaged in (text.replace("1.25", "1.26"), text.replace("{", "", 1), bundle('{"family":1 }')):
            ended = self.carry(damaged)
            self.assertEqual((ended.returncode, self.file.read_text(encoding="utf-8")), (2, damaged), ended.stdout)
        self.stand_in("before", {"linear a": OLD}, has_no_list=True)
        ended = self.carry(text)
        self.assertEqual((ended.returncode, self.file.read_text(encoding="utf-8")), (2, text))
        self.assertIn("has no list of kernels yet", ended.stdout)
        self.before.unlink()
        self.assertEqual(self.carry(text).returncode, 2)

    def test_a_real_program_takes_what_was_written(self) -> None:
        """Shipped rows of small templates get another hash, and back the one that they have."""
        shipped = (TREE / "configs" / "tuned" / "h100-sxm.json").read_text(encoding="utf-8").splitlines()
        rows = [line.rstrip(",") for line in shipped if line.startswith('{"family":"embedding"')]
        self.assertGreater(len(rows), 5)
        hash_ = json.loads(rows[0])["template_hash"]
        answers = f"subprocess.run([{PROGRAM!r}, *sys.argv[1:]], stdout=subprocess.PIPE).stdout"
        text = f"#!{sys.executable}\nimport subprocess, sys\nsys.stdout.buffer.write({answers}.replace({hash_.encode()}, {OLD.encode()}))\n"
        self.before = self.script("before", text)
        self.after = Path(PROGRAM)
        printed = self.expect(0, [line.replace(hash_, OLD) for line in rows], rows, "-j", "2")
        self.assertIn(f"{len(rows)} winners", printed)
        (self.folder / "plain.json").write_text(bundle(*rows).replace(',\n"for": {"name": "a"}', ""), encoding="utf-8")
        environment = {**os.environ, "HONE_CACHE": str(self.folder / "own" / "cache.db")}
        subprocess.run([PROGRAM, "import", str(self.folder / "plain.json")], env=environment, stdout=subprocess.PIPE, check=True)


if __name__ == "__main__":
    unittest.main()

"""What mypy sees: of a user's program, and of the package itself. Exit code 77, skipped, where it is not
installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Dict, List, Tuple

import fakes

from hone._operators.prepare import KINDS

HEAD = '''\
from typing import Any

import hone
import hone.ops
from hone.ops import rms_norm


class Array:
    def __dlpack__(self, stream: Any = None) -> Any: ...


x = Array()
norm = hone.prepare(hone.RmsNorm(hidden=4096, residual=True, dtype="fp16"))
'''

GOOD = (
    "y, total = norm(x, x, x, sum=x, epsilon=1e-5)",
    "norm.run_pointers(0, 1, x=1 << 20, weight=1 << 21, out=1 << 22, epsilon=1e-5)",
    "size: int = norm.workspace_bytes(16)",
    "llama: hone.ModelOperators = hone.prepare('llama-3-8b', max_rows=16)",
    "names: str = ' '.join(llama)",
    "lse: bool = hone.prepare(hone.Attention(8, 8, 64)).description.lse",
    "z = rms_norm(None, None, 1e-5)",  # PyTorch's types are not there
    "hone.tune('gpt2', dry_run=True)",
    "made: hone.Completion = hone.Decoder('folder').generate([1, 2], max_tokens=None, stop=['a'])",
    "many: list[hone.Completion] = hone.Decoder('folder').generate_many(['a', [1, 2]])",
    "pieces: list[str] = list(hone.Decoder('folder', format='w8a8').stream('a', seed=1))",
    "hone.freeze()",
    "hone.patch, hone.nn.RMSNorm, hone.quantize_weights, hone.load_quantized",
)

# Each is an error, and what the error says.
WRONG = {
    "norm('x', x)": 'has incompatible type "str"',
    "norm(x, x, epsilon='1e-5')": '"epsilon" to "__call__" of "Norm" has incompatible type "str"',
    "norm(x)": 'Missing positional argument "weight"',
    "norm(x, x, gain=1)": 'Unexpected keyword argument "gain"',
    "norm.run_pointers('0', 1)": 'to "run_pointers" of "Norm" has incompatible type "str"; expected "int"',
    "hone.RmsNorm(hidden='4096')": 'has incompatible type "str"; expected "int"',
    "hone.RmsNorm(4096, residuals=True)": 'Unexpected keyword argument "residuals"',
    "hone.prepare(3)": 'No overload variant of "prepare"',
    "hone.prepare(hone.RmsNorm(4096), max_rows=16)": 'No overload variant of "prepare"',
    "hone.RmsNrm": 'Module has no attribute "RmsNrm"',
    "hone.ops.rms_norm(x, x, '1e-5')": '"rms_norm" has incompatible type "str"; expected "float"',
    "hone.ops.rms_norm(x, x)": 'Missing positional argument "epsilon"',
    "hone.Decoder(3)": '"Decoder" has incompatible type "int"',
    "hone.Decoder('folder').generate('a', temperature='hot')": 'has incompatible type "str"; expected "float"',
    "hone.Decoder('folder').generate('a', tokens=3)": 'Unexpected keyword argument "tokens"',
    "hone.tune(3)": 'to "tune" has incompatible type "int"',
}


class Types(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="hone-types-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def mypy(self, folder: Path, *arguments: str) -> Tuple[int, str]:
        command = ["mypy", "--cache-dir", str(self.folder / "cache"), "--no-error-summary", *arguments]
        ended = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            env={**os.environ, "MYPYPATH": str(fakes.TREE / "python")},
        )  # fmt: skip
        return ended.returncode, ended.stdout

    def said_of(self, lines: List[str]) -> Dict[str, str]:
        """What mypy says of each line behind HEAD; the package is silent, as an installed one is."""
        (self.folder / "use.py").write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
        _, text = self.mypy(self.folder, "--strict", "--follow-imports=silent", "use.py")
        said = dict.fromkeys(lines, "")
        for message in text.splitlines():
            file, number, what = message.split(":", 2)
            if "defined here" in what:  # a note on what an error is about
                continue
            self.assertEqual(file, "use.py", message)
            said[lines[int(number) - HEAD.count("\n") - 1]] += f"{what}\n"
        return said

    def test_a_program_that_is_right_has_no_error(self) -> None:
        self.assertEqual({line: said for line, said in self.said_of(list(GOOD)).items() if said}, {})

    def test_wrong_arguments_and_names_are_errors(self) -> None:
        for line, said in self.said_of(list(WRONG)).items():
            with self.subTest(line):
                self.assertIn(" error: ", said)
                self.assertIn(WRONG[line], said)

    def test_what_each_description_prepares_is_known(self) -> None:
        lines = {
            f"def of_{kind.__name__}(it: hone.{kind.__name__}) -> None: reveal_type(hone.prepare(it))": made
            for kind, made in KINDS.items()
        }
        for line, said in self.said_of(list(lines)).items():
            self.assertIn(f'.{lines[line].__name__}"', said, line)

    def test_the_package_itself(self) -> None:
        status, text = self.mypy(fakes.TREE)  # as pyproject.toml says
        self.assertEqual((status, text), (0, ""))


if __name__ == "__main__":
    if shutil.which("mypy") is None:
        print("skipped: mypy is not installed (Debian's package mypy)")
        sys.exit(77)
    unittest.main()

"""The notebooks of examples/python: their cells run one after the other, with fewer layers than they show.

    python3 tests/python/gpu/notebook_test.py --update NOTEBOOK      # as they are; what they print and draw goes into the file

That needs matplotlib and no Jupyter.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
import unittest
from pathlib import Path
from typing import Any, Dict, List
from unittest import mock

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "python"

try:
    import matplotlib
except ModuleNotFoundError:
    raise unittest.SkipTest("matplotlib is not installed") from None

matplotlib.use("Agg")  # which draws into memory

import matplotlib.pyplot as plt  # noqa: E402


def executed(notebook: Dict[str, Any]) -> Dict[str, Any]:
    """The notebook with the outputs of its cells: what they print, the figures they show, and the value of a last
    expression. Raises what a cell raises, with its number."""
    names: Dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        count += 1
        try:
            cell["outputs"] = _run("".join(cell["source"]), names, count)
        except Exception as error:
            error.add_note(f"in cell {count} of the notebook")
            raise
        cell["execution_count"] = count
    return notebook


def _run(source: str, names: Dict[str, Any], count: int) -> List[Dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value, printed = None, io.StringIO()
    with contextlib.redirect_stdout(printed), mock.patch.object(plt, "show", lambda *_, **__: None):
        exec(compile(tree, f"<cell {count}>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"<cell {count}>", "eval"), names)
    outputs: List[Dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)})
    for number in plt.get_fignums():
        drawn = io.BytesIO()
        plt.figure(number).savefig(drawn, format="png", bbox_inches="tight")
        picture = {"image/png": base64.b64encode(drawn.getvalue()).decode() + "\n", "text/plain": ["<Figure>"]}
        outputs.append({"data": picture, "metadata": {}, "output_type": "display_data"})
    plt.close("all")
    if value is not None:
        said = {"text/plain": repr(value).splitlines(keepends=True)}
        outputs.append({"data": said, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return outputs


def update(path: Path) -> None:
    made = executed(json.loads(path.read_text()))
    path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")


class Notebooks(unittest.TestCase):
    def test_cells_run_in_their_order(self) -> None:
        from accelerate_support import transformers  # skips where there is none, or no GPU

        self.assertTrue(transformers)
        for path in sorted(FOLDER.glob("*.ipynb")):
            with self.subTest(path.name), mock.patch.dict(os.environ, {"LAYERS": "2"}):
                shown = json.loads(path.read_text())
                made = executed(json.loads(path.read_text()))
                for before, after in zip(shown["cells"], made["cells"]):
                    kinds = [[output["output_type"] for output in cell.get("outputs", ())] for cell in (before, after)]
                    self.assertEqual(*kinds)  # what the file shows is what its cells say


if __name__ == "__main__":
    if sys.argv[1:2] == ["--update"]:
        update(Path(sys.argv[2]))
    else:
        unittest.main()

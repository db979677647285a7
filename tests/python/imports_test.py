"""Rooms of the package: imports have no circle, and go one way."""

from __future__ import annotations

import ast
import unittest
from pathlib import Path

import fakes

PACKAGE = fakes.TREE / "python" / "hone"

# Each room may import those before it, and modules at the top that themselves do.
ROOMS = ["_native", "_operators", "_torch", "_weights", "_nn", "_accelerated", "_serving"]


def modules() -> dict:
    """Paths by their dotted names."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ("hone", *path.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(name: str, path: Path, known: dict) -> set:
    """Modules of the package that one imports, wherever in its text."""
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - (node.level - 1)] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                found.add(inner if inner in known else source)
    return {module for module in found if module in known} - {name}


def circle_in(edges: dict) -> list:
    """Modules that import each other in turn, or []."""
    done: set = set()

    def visit(name: str, way: list) -> list:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for other in sorted(edges[name]):
            found = visit(other, [*way, name])
            if found:
                return found
        done.add(name)
        return []

    return next(filter(None, (visit(name, []) for name in sorted(edges))), [])


class Imports(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        known = modules()
        cls.edges = {name: imports_of(name, path, known) for name, path in known.items()}

    def test_there_is_no_circle(self) -> None:
        self.assertGreater(sum(map(len, self.edges.values())), 50)
        self.assertEqual(circle_in(self.edges), [])

    def test_a_circle_would_be_found(self) -> None:
        self.assertEqual(circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}), ["b", "c", "b"])

    def test_rooms_import_one_way(self) -> None:
        for name, others in self.edges.items():
            room = name.split(".")[1] if name.count(".") > 1 else ""
            if room not in ROOMS:
                continue
            for other in others:
                theirs = other.split(".")[1] if other.count(".") > 1 else ""
                if theirs in ROOMS:
                    self.assertLessEqual(ROOMS.index(theirs), ROOMS.index(room), f"{name} imports {other}")

    def test_nothing_at_import_needs_pytorch_but_what_is_for_it(self) -> None:
        for name, path in modules().items():
            text = path.read_text(encoding="utf-8")
            if "import torch\n" in text or "from torch" in text:
                room = name.split(".")[1]
                self.assertIn(
                    room,
                    ("_torch", "_weights", "_nn", "_accelerated", "accelerating", "nn", "ops", "patching", "quantization",
                     "loading", "model_loading", "hub", "sglang", "vllm"),
                    name,
                )


if __name__ == "__main__":
    unittest.main()

"""./hone generate: writes everything that follows from the declarations. `--check` compares instead."""
import argparse
import importlib
import pathlib
import sys
import typing

from generate import emit_enums, emit_family
from generate.declare import DeclarationError, Family

ROOT = pathlib.Path(__file__).resolve().parent.parent


def declared(root: pathlib.Path) -> typing.List[Family]:
    """The families of every kernel_templates/*/operators.py below `root`, in order of their folders."""
    families = []
    for path in sorted(root.glob("kernel_templates/*/operators.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        try:
            names = vars(importlib.import_module(module))
        except DeclarationError as error:
            raise DeclarationError(f"{path.relative_to(root)}:{error}") from error
        own = [value for value in names.values() if isinstance(value, Family) and value.name == path.parent.name]
        if len(own) != 1:
            raise DeclarationError(f"{path.relative_to(root)}:1: declares no family {path.parent.name}, or two")
        families += own
    return families


def outputs(root: pathlib.Path) -> typing.Dict[str, str]:
    """Every generated file: path below the root -> text."""
    texts = {"kernel_templates/enums.h": emit_enums.header()}
    for family in declared(root):
        texts[f"kernel_templates/{family.name}/declaration.h"] = emit_family.header(family)
        texts[f"kernel_templates/{family.name}/declaration.cpp"] = emit_family.source(family)
    return texts


def differing(root: pathlib.Path, texts: typing.Dict[str, str]) -> typing.List[str]:
    return [path for path, text in texts.items()
            if not (root / path).is_file() or (root / path).read_text(encoding="utf-8") != text]


def main() -> int:
    parser = argparse.ArgumentParser(prog="hone generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is not as it should be")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, str(options.root))
    try:
        texts = outputs(options.root)
    except DeclarationError as error:
        print(f"hone generate: {error}", file=sys.stderr)
        return 1
    changed = differing(options.root, texts)
    for path in changed:
        if options.check:
            print(f"hone generate: {path} is not what follows from the declarations; run ./hone generate", file=sys.stderr)
        else:
            (options.root / path).write_text(texts[path], encoding="utf-8")
            print(path)
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())

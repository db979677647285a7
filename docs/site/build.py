"""Builds the documents as a site: python3 docs/site/build.py [--output build/site]. Needs mkdocs (Debian: mkdocs).

The site has the tree's own layout, so that links work there as they do here: every document, and every source
that one links to. Ends with 1 for a link that leads nowhere.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator, List, Set

TREE = Path(__file__).resolve().parents[2]
DOCUMENTS = ("*.md", "docs/**/*.md", "bindings/*.md", "kernel_templates/*/README.md", "decoder/README.md", "tests/*/README.md")
LINK = re.compile(r"\]\(([^)#\s]+)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def documents() -> List[Path]:
    return sorted({file for pattern in DOCUMENTS for file in TREE.glob(pattern)})


def links_of(document: Path) -> Iterator[Path]:
    """What it links to in the tree."""
    for target in LINK.findall(CODE.sub("", document.read_text(encoding="utf-8"))):
        if "://" not in target and not target.startswith("mailto:"):
            yield (document.parent / target).resolve()


def page_for_folder(folder: Path) -> str:
    """A folder that a document links to gets a page with what is in it."""
    names = sorted(path.name for path in folder.iterdir() if path.suffix == ".md")
    lines = [f"# {folder.relative_to(TREE)}", ""]
    return "\n".join([*lines, *(f"- [{name}]({name})" for name in names), ""])


def stage(folder: Path) -> List[str]:
    """Copies everything that the site needs; returns the links that lead nowhere."""
    dead: List[str] = []
    wanted: Set[Path] = set(documents())
    for document in documents():
        for target in links_of(document):
            if not target.exists():
                dead.append(f"{document.relative_to(TREE)}: {target}")
            elif target.is_file():
                wanted.add(target)
            elif not (target / "README.md").exists():
                page = folder / target.relative_to(TREE) / "README.md"
                page.parent.mkdir(parents=True, exist_ok=True)
                page.write_text(page_for_folder(target), encoding="utf-8")
    for file in wanted:
        copy = folder / file.relative_to(TREE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return dead


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the documents as a site.")
    parser.add_argument("--output", type=Path, default=TREE / "build/site", help="folder that is made anew")
    options = parser.parse_args()
    if shutil.which("mkdocs") is None:
        print("mkdocs is not installed: apt-get install mkdocs", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory(prefix="hone-site-") as scratch:
        sources = Path(scratch, "sources")
        dead = stage(sources)
        for link in dead:
            print(f"leads nowhere: {link}", file=sys.stderr)
        config = Path(scratch, "mkdocs.yml")
        config.write_text((TREE / "docs/site/mkdocs.yml").read_text(encoding="utf-8")
                          + f"docs_dir: {sources}\nsite_dir: {options.output.resolve()}\n", encoding="utf-8")
        built = subprocess.run(["mkdocs", "build", "--quiet", "--config-file", str(config)], check=False)
    if built.returncode == 0:
        print(options.output / "index.html")
    return 1 if dead else built.returncode


if __name__ == "__main__":
    sys.exit(main())

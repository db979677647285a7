"""Files of winners as `hone export` writes them and `configs/tuned` keeps them, read and written byte for byte."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

CONTENDERS = ',"contenders":['  # no text of a row can hold it: quotes in texts are escaped
HASH = re.compile(r',"template_hash":"([^"]*)"')
# A bundle as `hone export` writes it; brackets stand in its array alone.
BUNDLE = re.compile(
    r'(\{\n"schema": "hone\.tuned/\d+",\n"sha256": ")([0-9a-f]{64})(",\n"winners": )(\[\n.*\])(.*)', re.DOTALL
)

Variant = Tuple[str, str]  # family and variant


class Failed(Exception):
    """What ends a program with exit code 2."""


class Image(NamedTuple):
    """What a cubin is compiled from, but for the template."""

    family: str
    static_fields: str
    candidate: str

    @property
    def kind(self) -> str:
        """What is left without sizes: images of one kind compile much the same branches of their template."""
        return re.sub(r"=[1-9]\d*", "=", self.static_fields)


class Trial:
    """A winner or a contender, as its object stands in a file."""

    def __init__(self, text: str, winner: Optional[Trial]) -> None:
        self.text = text
        own = json.loads(text)
        named = {name: own[name] for name in ("candidate", "template_hash") if name in own}
        self.facts: Dict[str, Any] = own if winner is None else {**winner.facts, **named}
        self.is_winner = winner is None
        self.hash: str = self.facts["template_hash"]
        self.candidate: str = self.facts["candidate"]
        self.problem = "{family} {static_fields} {dynamic_fields}".format(**self.facts)
        self.variant: Variant = (self.facts["family"], self.candidate.split()[0])

    @property
    def image(self) -> Image:
        return Image(self.facts["family"], self.facts["static_fields"], self.candidate)

    @property
    def arch(self) -> str:
        major, minor = self.facts["compute_major"], self.facts["compute_minor"]
        return f"sm_{major}{minor}{'a' if major >= 9 else ''}"

    def rewritten(self, candidate: str, hash_: str, winners_hash: str) -> str:
        """A contender says its hash where it is not the winner's."""
        text = self.text.replace(json.dumps(self.candidate), json.dumps(candidate), 1)
        member = f',"template_hash":"{hash_}"' if self.is_winner or hash_ != winners_hash else ""
        if HASH.search(text):
            return HASH.sub(member, text, count=1)
        return re.sub(r'("median_us":[^,}]+)', lambda found: found[1] + member, text, count=1)


class Row:
    """A winner, and behind it its contenders."""

    def __init__(self, line: str) -> None:
        head, mark, rest = line.partition(CONTENDERS)
        winner = Trial(head + "}" if mark else head, None)
        self.trials = [winner, *(Trial(text, winner) for text in _objects(rest[:-2]))]
        if line != rendered([trial.text for trial in self.trials]):
            raise ValueError("a row is not written as `hone export` writes it")


def _objects(text: str) -> Iterator[str]:
    begin = 0
    while begin < len(text):
        _, end = json.JSONDecoder().raw_decode(text, begin)
        yield text[begin:end]
        begin = end + 1


def rendered(texts: List[str]) -> str:
    winner, *contenders = texts
    return winner[:-1] + CONTENDERS + ",".join(contenders) + "]}" if contenders else winner


class Bundle:
    """A file of winners. Raises Failed for one that `hone export` has not written."""

    def __init__(self, file: Path) -> None:
        self.file = file
        found = BUNDLE.fullmatch(file.read_text(encoding="utf-8"))
        if found is None or found[2] != sha256(found[4]):
            raise Failed(f"{file}: is no bundle as `hone export` writes it, or was changed since")
        self._parts = found.groups()
        try:
            self.rows = [Row(line) for line in found[4][2:-2].split(",\n") if line]
        except (ValueError, KeyError) as error:
            raise Failed(f"{file}: {error}") from error

    def text(self, lines: List[str]) -> str:
        array = "[\n" + ",\n".join(lines) + "\n]" if lines else "[\n]"
        begin, _, between, _, end = self._parts
        return begin + sha256(array) + between + array + end


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

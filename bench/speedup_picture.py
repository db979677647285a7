"""Draws docs/images/speedup.svg: how much faster Hone is than the best of its peers, from the tables of
docs/performance.md.

    python3 bench/speedup_picture.py [--check]

`--check` writes nothing and fails where the picture is not what the tables say.
"""

from __future__ import annotations

import argparse
import html
import math
import re
import sys
from pathlib import Path
from typing import List, NamedTuple

TREE = Path(__file__).resolve().parent.parent
PAGE = TREE / "docs/performance.md"
PICTURE = TREE / "docs/images/speedup.svg"

# Tables of the page, in the picture's order: what they are of, and the peers whose best is compared with.
TABLES = {
    "quantized": ("Linear layers, weights of 4 and 8 bits", "cuBLAS, Marlin, DeepGEMM, tinygemm"),
    "attention": ("Attention, prompts and decode steps", "cuDNN, FlashAttention 2 and 3"),
    "norms": ("Norms and their gradients", "PyTorch, Inductor"),
    "ffn": ("Feed-forward networks", "cuBLAS, Inductor"),
    "linear": ("Linear layers", "cuBLAS"),
}

LEFT, RIGHT, TOP, ROW, BOTTOM = 330, 60, 64, 46, 44  # px
WIDTH = 880
TICKS = (0.8, 1.0, 1.25, 1.5, 2.0, 3.0)


class Group(NamedTuple):
    name: str
    ratios: List[float]  # time of the best peer over Hone's, a case each

    @property
    def mean(self) -> float:
        return math.exp(sum(map(math.log, self.ratios)) / len(self.ratios))

    def quantile(self, q: float) -> float:
        ordered = sorted(self.ratios)
        return ordered[round(q * (len(ordered) - 1))]


def table(text: str, name: str) -> str:
    found = re.search(rf"<!-- compare:{name}:begin -->\n(.*?)<!-- compare:{name}:end -->", text, re.DOTALL)
    if found is None:
        raise ValueError(f"{PAGE} has no table {name}")
    return found[1]


def groups_of(text: str) -> List[Group]:
    groups = []
    for name in TABLES:
        cells = [line.strip().split("|")[-2].strip() for line in table(text, name).splitlines()
                 if line.startswith("|")]
        groups.append(Group(name, [float(cell) for cell in cells if re.fullmatch(r"\d+\.\d+", cell)]))
    return groups


def machine_of(text: str) -> str:
    """'NVIDIA H100 80GB HBM3, PyTorch 2.11.0, CUDA 13.0' of the first table."""
    words = table(text, next(iter(TABLES))).splitlines()[0].split(", ")
    return ", ".join(word for word in words if word.startswith(("NVIDIA", "PyTorch", "CUDA")))


def x_of(ratio: float) -> float:
    """The axis is logarithmic: half as fast and twice as fast are as far from 1."""
    least, most = math.log(TICKS[0]), math.log(TICKS[-1])
    share = (min(max(math.log(ratio), least), most) - least) / (most - least)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def text_at(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{html.escape(words)}</text>'


def axis(height: float) -> List[str]:
    lines = []
    for tick in TICKS:
        x = x_of(tick)
        kind = "level" if tick == 1 else "grid"
        lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{height - BOTTOM + 6}" class="{kind}"/>')
        lines.append(text_at(x, height - BOTTOM + 24, f"{tick:g}x", "small", "middle"))
    return lines


def bar(group: Group, y: float) -> List[str]:
    name, peers = TABLES[group.name]
    one, mean = x_of(1.0), x_of(group.mean)
    low, high = x_of(group.quantile(0.1)), x_of(group.quantile(0.9))
    return [text_at(LEFT - 16, y - 2, name, "name", "end"),
            text_at(LEFT - 16, y + 14, f"{len(group.ratios)} cases; {peers}", "small", "end"),
            f'<rect x="{min(one, mean):.1f}" y="{y - 11}" width="{abs(mean - one):.1f}" height="22" rx="3" class="bar"/>',
            f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" class="range"/>',
            text_at(max(mean, high) + 8, y + 5, f"{group.mean:.2f}x", "value")]


STYLE = """text{font-family:system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1b1f24;font-size:14px}
.title{font-size:17px;font-weight:600}.small{font-size:11.5px;fill:#5b6470}.value{font-weight:600}
.bar{fill:#4263c8}.range{stroke:#1b1f24;stroke-width:1.5;opacity:.65}.grid{stroke:#dfe3e8}.level{stroke:#5b6470}
.page{fill:#ffffff}
@media(prefers-color-scheme:dark){text{fill:#e8eaed}.small{fill:#a2abb6}.bar{fill:#7f9cf5}.range{stroke:#e8eaed}
.grid{stroke:#30363d}.level{stroke:#8b949e}.page{fill:#0d1117}}"""


def picture(text: str) -> str:
    groups = groups_of(text)
    everything = Group("", [ratio for group in groups for ratio in group.ratios])
    height = TOP + ROW * len(groups) + BOTTOM + 22
    says = (f"Hone is {everything.mean:.2f} times as fast as the best of its peers, in the geometric mean of "
            f"{len(everything.ratios)} cases")
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{says}">',
             f"<title>{says}</title>", f"<style>{STYLE}</style>",
             f'<rect width="{WIDTH}" height="{height}" rx="6" class="page"/>',
             text_at(24, 34, "Time of the fastest other library over Hone's", "title"), *axis(height - 22)]
    for i, group in enumerate(groups):
        lines += bar(group, TOP + ROW * i + 22)
    lines += [text_at(24, height - 12, f"Bars: geometric means; lines: 10th to 90th percentile. {machine_of(text)}.",
                      "small"), "</svg>", ""]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Draws docs/images/speedup.svg from docs/performance.md.")
    parser.add_argument("--check", action="store_true", help="fail where the picture is not what the tables say")
    options = parser.parse_args()
    wanted = picture(PAGE.read_text(encoding="utf-8"))
    if not options.check:
        PICTURE.write_text(wanted, encoding="utf-8")
    elif not PICTURE.is_file() or PICTURE.read_text(encoding="utf-8") != wanted:
        print(f"{PICTURE} is not what {PAGE} says; run bench/speedup_picture.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

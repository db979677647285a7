"""Compares pictures with references, in the browser itself: fonts differ between machines, so both are made small
enough that letters are grey, and what is left is where things stand and which colours they have."""

from __future__ import annotations

import base64
from pathlib import Path

from browser import Browser

# Of 255: the mean difference of all colours of all blocks of 20 x 20 pixels. A theme's other colours make more than
# 100, a chart that is missing 5 or more.
TOLERANCE = 4.0

_DRAW = """
async (source, width, height) => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = Object.assign(document.createElement('canvas'), {width, height});
  const context = canvas.getContext('2d');
  context.imageSmoothingQuality = 'high';
  context.drawImage(image, 0, 0, width, height);
  return canvas;
}
"""


def difference(browser: Browser, picture: Path, reference: Path) -> float:
    browser.call("Page.navigate", url="about:blank")
    return browser.evaluate(
        f"""(async () => {{
        const draw = {_DRAW};
        const [a, b] = await Promise.all([{_source(picture)}, {_source(reference)}].map(async (source) => {{
            const canvas = await draw(source, 64, 45);
            return canvas.getContext('2d').getImageData(0, 0, 64, 45).data;
        }}));
        return a.reduce((sum, value, i) => sum + Math.abs(value - b[i]), 0) / (a.length / 4 * 3);
    }})()"""
    )


def keep(browser: Browser, picture: Path, reference: Path) -> None:
    """At half the size, which is enough to look at."""
    browser.call("Page.navigate", url="about:blank")
    url = browser.evaluate(
        f"({_DRAW})({_source(picture)}, 640, 450).then((canvas) => canvas.toDataURL('image/png'))"
    )
    reference.parent.mkdir(exist_ok=True)
    reference.write_bytes(base64.b64decode(url.partition(",")[2]))


def _source(file: Path) -> str:
    return f"'data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}'"

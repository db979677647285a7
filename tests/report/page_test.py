"""The page of `hone report` in a browser without a window: it shows what it has, is quick, asks nothing of the
network, can be used without a mouse or eyes, and looks as it did.

    HONE_PROGRAM=... HONE_MADE_CACHE=... python3 tests/report/page_test.py [--keep FOLDER] [--update]

`--keep` leaves the pictures in a folder, `--update` makes them the references. Without chromium, skipped (77).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Dict, List

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pictures  # noqa: E402
from browser import Browser, find_chromium  # noqa: E402

HERE = Path(__file__).resolve().parent
AXE = HERE.parent.parent / "third_party" / "axe-core" / "axe.min.js"
REFERENCES = HERE / "screenshots"
CHARTS = ["roofline", "speed", "model", "trials", "failures", "energy", "compare"]

options = argparse.Namespace(keep=None, update=False)


def made_report(folder: Path, made: List[str], *words: str) -> Path:
    """Of a cache with so many problems and trials a problem, "hostile" or not."""
    name = "-".join(made)
    cache = folder / name / "cache.db"
    subprocess.run([os.environ["HONE_MADE_CACHE"], str(cache), *made], check=True)
    page = folder / f"{name}.html"
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "HONE_CACHE": str(cache),
        "HONE_PACKAGED": "off",
        "HONE_CUDA_LIBRARY": "/nonexistent/libcuda.so.1",
    }
    subprocess.run(
        [os.environ["HONE_PROGRAM"], "report", "-o", str(page), *words],
        env=environment,
        check=True,
        stderr=subprocess.DEVNULL,
    )
    return page


def system_font() -> str:
    """The family that the page's `system-ui` is."""
    try:
        found = subprocess.run(
            ["fc-match", "-f", "%{family}", "system-ui"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.split(",")[0]


PEERS = {
    "schema": "hone.compare/1",
    "name": "norms",
    "date": "2026-11-21T10:00:00+00:00",
    "machine": {"device": "NVIDIA H100 80GB HBM3", "torch": "2.11.0"},
    "results": [
        {
            "case": {"op": "rmsnorm", "rows": 2**n, "hidden": 4096},
            "sets": 4,
            "bytes": 1,
            "flops": 1,
            "peers": [
                {"name": "hone", "us": 2.0 + n},
                {"name": "eager", "us": (2.0 + n) * (2.4 - n / 10)},
                {"name": "inductor", "us": (2.0 + n) * (1.5 - n / 20)},
            ],
        }
        for n in range(12)
    ],
}


class Page(unittest.TestCase):
    folder: Path
    browser: Browser

    @classmethod
    def setUpClass(cls) -> None:
        cls._folder = tempfile.TemporaryDirectory(prefix="hone-report-")
        cls.folder = Path(cls._folder.name)
        (cls.folder / "peers.json").write_text(json.dumps(PEERS))
        cls.page = made_report(
            cls.folder, ["100", "80"], "--model", "llama-3-8b", "--peers", str(cls.folder / "peers.json")
        )

    @classmethod
    def tearDownClass(cls) -> None:
        cls._folder.cleanup()

    def setUp(self) -> None:
        program = find_chromium()
        assert program is not None
        self.browser = Browser(program)
        self.addCleanup(self.browser.close)
        self.browser.size(1280, 900)

    def open(self, page: Path, colours: str = "light") -> None:
        self.browser.prefer(colours)
        self.browser.call("Page.navigate", url=page.as_uri())
        self.browser.wait_for("document.documentElement?.dataset.ready === 'trials'")

    def show(self, section: str) -> None:
        """Scrolls there and waits until its charts are drawn and have their final size."""
        self.browser.evaluate(f"document.getElementById('{section}').scrollIntoView()")
        self.browser.wait_for(
            f"""[...document.querySelectorAll('#{section} .plot')].every(
                (plot) => plot.hidden || plot.querySelector('canvas'))"""
        )
        self.browser.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        self.browser.evaluate(f"document.getElementById('{section}').scrollIntoView()")
        time.sleep(0.3)

    def choose(self, label: str, text: str) -> None:
        """The first option of a labelled select whose text has this part."""
        self.assertTrue(
            self.browser.evaluate(
                f"""(() => {{
            const label = [...document.querySelectorAll('label')].find((one) => one.textContent === {json.dumps(label)});
            const select = document.getElementById(label.htmlFor);
            const option = [...select.options].find((one) => one.textContent.includes({json.dumps(text)}));
            select.value = option.value;
            select.dispatchEvent(new Event('change'));
            return true;
        }})()"""
            )
        )

    def check_quiet(self) -> None:
        self.assertEqual(self.browser.errors, [])
        self.assertEqual(self.browser.console, [])
        self.assertTrue(all(url.startswith("file:") for url in self.browser.requests), self.browser.requests)
        self.assertEqual(len(self.browser.requests), 1)

    def test_every_section_is_drawn_without_errors_and_without_the_network(self) -> None:
        self.open(self.page)
        for section in CHARTS:
            self.show(section)
            self.assertGreater(
                self.browser.evaluate(f"document.querySelectorAll('#{section} canvas').length"), 0, section
            )
        self.check_quiet()

    def test_it_can_be_used_before_its_hundred_thousand_trials_are_there(self) -> None:
        page = made_report(self.folder, ["500", "130"])
        self.assertLess(page.stat().st_size, 5_000_000)
        self.open(page)
        usable, trials = self.browser.evaluate(
            "['winners', 'trials'].map((name) => performance.getEntriesByName(name)[0].startTime)"
        )
        print(f"{page.stat().st_size} bytes, usable after {usable:.0f} ms, trials after {trials:.0f} ms", file=sys.stderr)
        self.assertLess(usable, trials)
        self.check_quiet()

    def test_texts_of_a_cache_run_nothing(self) -> None:
        self.open(made_report(self.folder, ["4", "20", "hostile"]))
        self.choose("GPU of the charts", "</script>")
        for section in CHARTS:
            self.show(section)
        self.assertEqual(self.browser.evaluate("document.title"), "Hone report")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('img, b, svg').length"), 0)
        self.assertGreater(
            self.browser.evaluate(
                "document.querySelector('#winners tbody').textContent.split('owned').length"
            ),
            2,
        )
        self.check_quiet()

    def test_a_mark_says_what_it_is_when_the_pointer_is_on_it(self) -> None:
        self.open(self.page)
        self.show("failures")
        box = self.browser.evaluate(
            """(({x, y, height}) => ({x, y, height}))(
                document.querySelector('#failures canvas').getBoundingClientRect())"""
        )
        tooltip = "document.getElementById('tooltip')"
        for x in range(100, 400, 10):
            self.browser.call(
                "Input.dispatchMouseEvent",
                type="mouseMoved",
                x=box["x"] + x,
                y=box["y"] + box["height"] * 0.35,
            )
            if not self.browser.evaluate(f"{tooltip}.hidden"):
                break
        self.assertEqual(self.browser.evaluate(f"{tooltip}.querySelector('dt').textContent"), "Operator")
        self.check_quiet()

    def test_a_script_from_elsewhere_does_not_run(self) -> None:
        self.open(self.page)
        self.browser.evaluate(
            """document.body.append(Object.assign(
                document.createElement('script'), {textContent: 'document.title = "ran"'}))"""
        )
        self.assertEqual(self.browser.evaluate("document.title"), "Hone report")

    def test_axe_finds_nothing(self) -> None:
        for colours in ("light", "dark"):
            self.open(self.page, colours)
            for section in CHARTS:
                self.show(section)
            self.browser.evaluate(
                "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
            )
            self.browser.evaluate(AXE.read_text() + "\n;true")
            violations: List[Dict[str, Any]] = self.browser.evaluate(
                """axe.run().then((found) => found.violations.map((one) => ({
                    id: one.id,
                    nodes: one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + node.failureSummary),
                })))"""
            )
            self.assertEqual(violations, [], colours)

    def test_the_table_sorts_and_filters_with_the_keyboard(self) -> None:
        self.open(self.page)
        self.browser.evaluate(
            """[...document.querySelectorAll('#winners th button')]
                .find((one) => one.textContent.startsWith('Time')).focus()"""
        )
        sorts = """[...document.querySelectorAll('#winners th')]
            .filter((one) => one.getAttribute('aria-sort') !== 'none')
            .map((one) => one.textContent + one.getAttribute('aria-sort'))"""
        times = """[...document.querySelectorAll('#winners tbody tr')]
            .map((row) => Number(row.querySelector('.number').textContent))"""
        self.browser.press("Enter")
        self.assertEqual(self.browser.evaluate(sorts), ["Time, µsascending"])
        shown = self.browser.evaluate(times)
        self.assertEqual(shown, sorted(shown))
        self.browser.press(" ")
        self.assertEqual(self.browser.evaluate(sorts), ["Time, µsdescending"])
        shown = self.browser.evaluate(times)
        self.assertEqual(shown, sorted(shown, reverse=True))
        self.type_words("rmsnorm hidden=4096 h100")
        rows = self.browser.evaluate(
            "[...document.querySelectorAll('#winners tbody tr')].map((row) => row.textContent)"
        )
        self.assertGreater(len(rows), 0)
        for row in rows:
            self.assertIn("rmsnorm", row)
            self.assertIn("hidden=4096", row)

    def type_words(self, words: str) -> None:
        self.browser.evaluate("document.querySelector('#winners input[type=search]').focus()")
        self.browser.call("Input.insertText", text=words)

    def test_the_theme_follows_the_system_until_the_button_says_otherwise(self) -> None:
        theme = "document.documentElement.dataset.theme"
        self.open(self.page, "dark")
        self.assertEqual(self.browser.evaluate(theme), "dark")
        self.browser.prefer("light")
        self.browser.wait_for(f"{theme} === 'light'")
        self.browser.evaluate("document.getElementById('theme').focus()")
        self.browser.press("Enter")
        self.assertEqual(self.browser.evaluate(theme), "dark")
        self.assertEqual(
            self.browser.evaluate("document.getElementById('theme').getAttribute('aria-pressed')"), "true"
        )
        self.check_quiet()

    @unittest.skipUnless(system_font() == "DejaVu Sans", "the references have letters of DejaVu Sans")
    def test_it_looks_as_it_did(self) -> None:
        folder = Path(options.keep) if options.keep else self.folder
        for name in ("overview-light", "overview-dark", "heatmap", "table-filtered", "two-gpus"):
            with self.subTest(name):
                self.open(self.page, "dark" if name.endswith("dark") else "light")
                self.arrange(name)
                self.browser.screenshot(folder / f"{name}.png")
                if options.update:
                    pictures.keep(self.browser, folder / f"{name}.png", REFERENCES / f"{name}.png")
                else:
                    self.assertLess(
                        pictures.difference(self.browser, folder / f"{name}.png", REFERENCES / f"{name}.png"),
                        pictures.TOLERANCE,
                    )

    def arrange(self, name: str) -> None:
        if name.startswith("overview"):
            self.show("roofline")
            self.browser.evaluate("scrollTo(0, 0)")
            time.sleep(0.3)
        elif name == "heatmap":
            self.show("trials")
        elif name == "table-filtered":
            self.show("winners")
            self.type_words("linear in=4096 h100")
        else:
            self.show("compare")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", help="leave the pictures in this folder")
    parser.add_argument("--update", action="store_true", help="make the pictures the references")
    parser.add_argument("rest", nargs="*", help="names of tests, Page.test_...")
    parser.parse_args(namespace=options)
    if find_chromium() is None:
        print("skipped: there is no chromium (apt-get install chromium)", file=sys.stderr)
        return 77
    ended = unittest.main(argv=[sys.argv[0], *options.rest], exit=False)
    return 0 if ended.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())

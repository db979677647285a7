"""Line coverage of folders from what gcc's --coverage left in a build folder: coverage.py BUILD [--out FILE]
FOLDER...

A line that several objects have, as those of headers, counts once, and as run when one of them ran it. Prints
the share of each file, the worst first, and of each folder.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent


def documents(build: Path):
    """What gcov says of every object that was run or could have been."""
    for notes in sorted(build.rglob("*.gcno")):
        ended = subprocess.run(["gcov", "--json-format", "--stdout", str(notes)], cwd=build,
                               capture_output=True, text=True, check=False)
        for line in ended.stdout.splitlines():
            yield json.loads(line)


def lines_run(build: Path, folders: list[str]) -> dict[str, dict[int, bool]]:
    """For each file of the folders, whether each of its lines was run."""
    found: dict[str, dict[int, bool]] = defaultdict(dict)
    for document in documents(build):
        for file in document["files"]:
            path = (build / document["current_working_directory"] / file["file"]).resolve()
            if not path.is_relative_to(SOURCE) or path.is_relative_to(build):
                continue
            name = str(path.relative_to(SOURCE))
            if name.split("/")[0] not in folders:
                continue
            for line in file["lines"]:
                number = line["line_number"]
                found[name][number] = found[name].get(number, False) or line["count"] > 0
    return found


def percent(lines: list[bool]) -> float:
    return 100.0 * sum(lines) / len(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--out", type=Path, help="gets the folders' shares as JSON")
    options = parser.parse_args()
    found = lines_run(options.build.resolve(), options.folders)
    shares = {}
    for name, lines in sorted(found.items(), key=lambda item: percent(list(item[1].values()))):
        missing = sorted(number for number, run in lines.items() if not run)
        print(f"{percent(list(lines.values())):6.1f} %  {name}  {len(missing)} lines not run")
    for folder in options.folders:
        inside = [lines for name, lines in found.items() if name.startswith(folder + "/")]
        of_folder = [run for lines in inside for run in lines.values()]
        if not of_folder:
            print(f"{folder}/: no object with coverage was found", file=sys.stderr)
            return 1
        shares[folder] = round(percent(of_folder), 1)
        print(f"{shares[folder]:6.1f} %  {folder}/, {len(of_folder):,} lines")
    if options.out:
        options.out.write_text(json.dumps(shares) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""python -m hone.hub FOLDER: writes a folder in the layout of the Hugging Face Hub's kernels."""

from __future__ import annotations

import argparse
import sys

from .repository import write_repository


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m hone.hub",
        description="Writes a folder in the layout of the Hugging Face Hub's kernels, for transformers' KernelConfig.",
    )
    parser.add_argument("folder", help="its name is that of the package: hone_kernels")
    try:
        print(write_repository(parser.parse_args().folder))
    except (OSError, ValueError) as error:
        sys.exit(f"hone.hub: {error}")


if __name__ == "__main__":
    main()

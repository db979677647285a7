"""python -m hone.vllm check: Hone beside vLLM's own kernels on this machine."""

from __future__ import annotations

import argparse
import sys

from . import register


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m hone.vllm", description="Hone as a plugin of vLLM.")
    parser.add_argument("command", choices=["check"], help="compare with vLLM's own kernels on random inputs")
    parser.parse_args()
    try:
        import torch
        import vllm

        from .check import check
    except ImportError as error:
        sys.exit(f"hone.vllm: {error}; needed are vLLM and PyTorch")
    if not torch.cuda.is_available():
        sys.exit("hone.vllm: PyTorch finds no GPU; needed is one")
    register()
    print(f"vLLM {vllm.__version__}, PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    rows = check(torch.device("cuda", torch.cuda.current_device()))
    print(*rows, sep="\n")
    sys.exit(0 if all(row.passed for row in rows) else 1)


if __name__ == "__main__":
    main()

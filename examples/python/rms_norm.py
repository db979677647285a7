"""RMSNorm from Python: tune once, prepare once, call often; every result is held against PyTorch's.

    python3 examples/python/rms_norm.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, rms_norm, run


def quick_start() -> None:
    x = random(16, 4096)
    weight = random(4096)

    hone.tune("llama-3-8b")  # once per GPU and model; later processes know the winners

    llama = hone.prepare("llama-3-8b")  # at start-up: loads or compiles
    y = llama["rmsnorm"](x, weight)  # from then on: launches, on the current stream

    check(y, lambda: rms_norm(x, weight), 4e-3)
    print(f"{llama} on {hone.device_name()}")


def one_operator() -> None:
    x = random(300, 4096, dtype=torch.float16)
    residual = random(300, 4096, dtype=torch.float16)
    weight = random(4096, dtype=torch.float16)
    total = x + residual

    norm = hone.prepare(hone.RmsNorm(hidden=4096, max_rows=512, dtype="fp16", residual=True))
    hone.freeze()  # from here on nothing compiles
    y, residual = norm(x, weight, residual, sum=residual, epsilon=1e-5)

    check(y, lambda: rms_norm(total, weight), 1e-3)
    print(norm.report_text(), end="")

if __name__ == "__main__":
    run(quick_start, one_operator)

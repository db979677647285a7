"""Rows of Llama 2's table by ids on the GPU; every element has to be the table's.

    python3 examples/python/embedding.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, run


def embedding() -> None:
    table = random(32000, 4096)
    ids = torch.randint(0, 32000, (512,), dtype=torch.int32, device="cuda")

    embed = hone.prepare(hone.Embedding(hidden=4096, max_tokens=512))
    y = embed(ids, table)  # bf16 [512, 4096]

    check(y, lambda: table[ids.long()], 0)
    print(embed.report_text(), end="")

if __name__ == "__main__":
    run(embedding)

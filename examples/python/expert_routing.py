"""8 of 128 experts for each token, and rows by expert; held against PyTorch's top-k.

    python3 examples/python/expert_routing.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, run


TOKENS, EXPERTS, TOP_K = 64, 128, 8


def expert_routing() -> None:
    logits = random(TOKENS, EXPERTS, deviation=2.0, dtype=torch.float32)

    route = hone.prepare(hone.ExpertRouting(EXPERTS, TOP_K, max_tokens=64, dtype="fp32", renormalize=True))
    weights, starts, rows = route(logits)  # [64, 8], [129], [64, 8]

    check(weights, lambda: logits.double().topk(TOP_K, -1).values.softmax(-1), 1e-5)
    check(rows, lambda: pairs_by_expert(logits), 0)
    print(route.report_text(), end="")


def pairs_by_expert(logits: torch.Tensor) -> torch.Tensor:
    chosen = logits.topk(TOP_K, -1).indices.flatten()
    return chosen.argsort(stable=True).view(TOKENS, TOP_K)

if __name__ == "__main__":
    run(expert_routing)

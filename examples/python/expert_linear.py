"""Gate and up of 8 experts at the sizes of Mixtral 8x7B, 2 experts a token, held against PyTorch in float64.

    python3 examples/python/expert_linear.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, run


TOKENS, EXPERTS, TOP_K, HIDDEN, INTERMEDIATE = 16, 8, 2, 4096, 1024


def expert_linear() -> None:
    x, logits = random(TOKENS, HIDDEN), random(TOKENS, EXPERTS)
    gate, up = (random(EXPERTS, INTERMEDIATE, HIDDEN, deviation=HIDDEN**-0.5) for _ in range(2))

    route = hone.prepare(hone.ExpertRouting(EXPERTS, TOP_K, max_tokens=16, renormalize=True))
    layer = hone.prepare(
        hone.ExpertLinear(
            HIDDEN, INTERMEDIATE, EXPERTS, TOP_K, max_tokens=16, activation="silu", gated=True, gather=True
        )
    )
    _, starts, rows = route(logits)
    y = layer(x, starts, gate, rows, up=up)  # bf16 [16, 2, 1024], by expert

    check(y, lambda: by_expert(x, starts, rows, gate, up), 5e-3)
    print(layer.report_text(), end="")


def by_expert(
    x: torch.Tensor, starts: torch.Tensor, rows: torch.Tensor, gate: torch.Tensor, up: torch.Tensor
) -> torch.Tensor:
    places = x.double()[rows.flatten().long() // TOP_K]
    parts = []
    for expert, (first, end) in enumerate(zip(starts.tolist(), starts.tolist()[1:])):
        mine, with_gate, with_up = places[first:end], gate[expert].double(), up[expert].double()
        parts.append(torch.nn.functional.silu(mine @ with_gate.T) * (mine @ with_up.T))
    return torch.cat(parts).view(TOKENS, TOP_K, INTERMEDIATE)

if __name__ == "__main__":
    run(expert_linear)

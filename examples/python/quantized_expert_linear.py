"""Gate and up of 8 experts with weights of 8 bits, 2 experts a token, held against PyTorch in float64.

    python3 examples/python/quantized_expert_linear.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

from typing import Tuple

import torch

import hone
from checking import check, random, run


TOKENS, EXPERTS, TOP_K, HIDDEN, INTERMEDIATE = 16, 8, 2, 4096, 1024


def quantized_expert_linear() -> None:
    x, logits = random(TOKENS, HIDDEN), random(TOKENS, EXPERTS)
    (gate, gate_scales), (up, up_scales) = (codes_and_scales() for _ in range(2))

    route = hone.prepare(hone.ExpertRouting(EXPERTS, TOP_K, max_tokens=16, renormalize=True))
    layer = hone.prepare(
        hone.QuantizedExpertLinear(
            HIDDEN, INTERMEDIATE, EXPERTS, TOP_K, "w8a8", max_tokens=16, activation="silu", gated=True, gather=True
        )
    )
    _, starts, rows = route(logits)
    y = layer(x, starts, gate, gate_scales, rows, up=up, up_scales=up_scales)  # bf16 [16, 2, 1024], by expert

    wanted = lambda: by_expert(x, starts, rows, (gate, gate_scales), (up, up_scales))  # noqa: E731
    check(y, wanted, 6e-2)  # x is rounded to 255 steps
    print(layer.report_text(), end="")


def codes_and_scales() -> Tuple[torch.Tensor, torch.Tensor]:
    """Codes [experts, out, in], and what those of a row are multiplied with."""
    codes = torch.randint(-127, 128, (EXPERTS, INTERMEDIATE, HIDDEN), dtype=torch.int8, device="cuda")
    return codes, torch.rand(EXPERTS, INTERMEDIATE, dtype=torch.float32, device="cuda")


def by_expert(
    x: torch.Tensor,
    starts: torch.Tensor,
    rows: torch.Tensor,
    gate: Tuple[torch.Tensor, torch.Tensor],
    up: Tuple[torch.Tensor, torch.Tensor],
) -> torch.Tensor:
    places = x.double()[rows.flatten().long() // TOP_K]
    parts = []
    for expert, (first, end) in enumerate(zip(starts.tolist(), starts.tolist()[1:])):
        mine = places[first:end]
        with_gate, with_up = (codes[expert].double() * scales[expert, :, None] for codes, scales in (gate, up))
        parts.append(torch.nn.functional.silu(mine @ with_gate.T) * (mine @ with_up.T))
    return torch.cat(parts).view(TOKENS, TOP_K, INTERMEDIATE)


if __name__ == "__main__":
    run(quantized_expert_linear)

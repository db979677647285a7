"""Tokens of Llama 3's logits, greedy and drawn; held against what PyTorch finds likeliest.

    python3 examples/python/sample.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, run


ROWS, GREEDY, VOCABULARY = 16, 8, 128256


def sample() -> None:
    logits = random(ROWS, VOCABULARY, deviation=4.0, dtype=torch.float32)
    temperature = torch.tensor([0.0] * GREEDY + [0.8] * (ROWS - GREEDY), dtype=torch.float32, device="cuda")
    seed, counter = every(42, torch.int64), every(1, torch.int64)

    draw = hone.prepare(
        hone.Sample(VOCABULARY, max_rows=64, dtype="fp32", filters=True, log_probability=True)
    )
    filters = {"top_k": every(50, torch.int32), "top_p": every(1.0), "min_p": every(0.0)}
    tokens, log_probability = draw(logits, temperature, seed, counter, **filters)  # [16] each

    check(log_probability, lambda: log_probabilities(logits, tokens), 1e-5)
    check(tokens, lambda: nearest_of_allowed(logits, tokens), 0)
    print(draw.report_text(), end="")


def every(value: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full((ROWS,), value, dtype=dtype, device="cuda")


def log_probabilities(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return logits.double().log_softmax(-1).gather(-1, tokens.long()[:, None])[:, 0]


def nearest_of_allowed(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """The tokens themselves where they may be chosen: the likeliest, or one of the 50 likeliest."""
    allowed = logits.topk(50, -1).indices
    allowed[:GREEDY] = allowed[:GREEDY, :1]
    nearest = (allowed - tokens[:, None]).abs().argmin(-1, keepdim=True)
    return allowed.gather(-1, nearest)[:, 0]

if __name__ == "__main__":
    run(sample)

"""New queries and keys turn, keys and values go to the KV cache, in one call; held against PyTorch.

    python3 examples/python/rope_kv_append.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, run


SEQUENCES, CAPACITY, HEAD_DIM = 16, 512, 128


def rope_kv_append() -> None:
    q = random(SEQUENCES, 1, 32, HEAD_DIM)  # one new token of each sequence
    k, v = random(SEQUENCES, 1, 8, HEAD_DIM), random(SEQUENCES, 1, 8, HEAD_DIM)
    lengths = [1 + 31 * sequence for sequence in range(SEQUENCES)]  # the new token's place included
    kv_lengths = torch.tensor(lengths, dtype=torch.int32, device="cuda")
    k_cache, v_cache = (
        torch.zeros(SEQUENCES, CAPACITY, 8, HEAD_DIM, dtype=torch.bfloat16, device="cuda") for _ in range(2)
    )
    cos, sin = hone.nn.rope_table(HEAD_DIM, CAPACITY, 500000.0, device="cuda")

    append = hone.prepare(hone.RopeKvAppend(32, 8, HEAD_DIM, max_tokens=64))
    turned = append(q, k, v, k_cache, v_cache, cos=cos, sin=sin, kv_lengths=kv_lengths)

    check(turned, lambda: turned_by(q, lengths), 4e-3)
    check(k_cache, lambda: in_cache(turned_by(k, lengths), lengths), 4e-3)
    check(v_cache, lambda: in_cache(v, lengths), 0)
    print(append.report_text(), end="")


def turned_by(x: torch.Tensor, lengths: list) -> torch.Tensor:
    """In float64: elements i and i + 64 of a head turn together, by position * 500000^(-i / 64)."""
    half = HEAD_DIM // 2
    frequencies = 500000.0 ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
    positions = torch.tensor(lengths, dtype=torch.float64, device=x.device) - 1
    angles = (positions[:, None] * frequencies)[:, None, None]
    first, second = x.double().split(half, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def in_cache(x: torch.Tensor, lengths: list) -> torch.Tensor:
    cache = torch.zeros(SEQUENCES, CAPACITY, *x.shape[2:], dtype=x.dtype, device=x.device)
    for sequence, length in enumerate(lengths):
        cache[sequence, length - 1] = x[sequence, 0]
    return cache

if __name__ == "__main__":
    run(rope_kv_append)

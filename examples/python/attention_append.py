"""A decoding step's rotation, append and attention in one call; held against PyTorch.

    python3 examples/python/attention_append.py

Needs an sm_90 GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, run


SEQUENCES, CAPACITY, HEADS, KV_HEADS, HEAD_DIM = 16, 512, 32, 8, 128


def attention_append() -> None:
    q = random(SEQUENCES, HEADS, HEAD_DIM)  # one new token of each sequence
    k, v = random(SEQUENCES, KV_HEADS, HEAD_DIM), random(SEQUENCES, KV_HEADS, HEAD_DIM)
    lengths = [1 + 31 * sequence for sequence in range(SEQUENCES)]  # the new token included
    kv_lengths = torch.tensor(lengths, dtype=torch.int32, device="cuda")
    k_cache, v_cache = (random(SEQUENCES, CAPACITY, KV_HEADS, HEAD_DIM) for _ in range(2))
    cos, sin = hone.nn.rope_table(HEAD_DIM, CAPACITY, 500000.0, device="cuda")

    attend = hone.prepare(
        hone.AttentionAppend(HEADS, KV_HEADS, HEAD_DIM, max_batch=SEQUENCES, max_kv_len=CAPACITY)
    )
    out = attend(q, k, v, k_cache, v_cache, kv_lengths, cos=cos, sin=sin)

    # The caches hold the new keys and values by now.
    check(out, lambda: attention_of(q, k_cache, v_cache, lengths), 1e-2)
    print(attend.report_text(), end="")


def attention_of(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: list) -> torch.Tensor:
    """In float64: elements i and i + 64 of a query turn together, by position * 500000^(-i / 64)."""
    half, group = HEAD_DIM // 2, HEADS // KV_HEADS
    frequencies = 500000.0 ** (-torch.arange(half, dtype=torch.float64, device=q.device) / half)
    rows = []
    for sequence, length in enumerate(lengths):
        angles = (length - 1) * frequencies
        first, second = q[sequence].double().split(half, -1)
        cos, sin = angles.cos(), angles.sin()
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), -1)
        k = keys[sequence, :length].double().repeat_interleave(group, 1)
        v = values[sequence, :length].double().repeat_interleave(group, 1)
        weights = (torch.einsum("hd,thd->ht", turned, k) / HEAD_DIM**0.5).softmax(-1)
        rows.append(torch.einsum("ht,thd->hd", weights, v))
    return torch.stack(rows)


if __name__ == "__main__":
    run(attention_append)

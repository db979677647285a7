"""Attention of an 8B Llama: a prompt, then one more token over a KV cache; held against PyTorch.

    python3 examples/python/attention.py

Needs a GPU, PyTorch, and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import torch

import hone
from checking import check, random, run


HEADS, KV_HEADS, HEAD_DIM, CAPACITY = 32, 8, 128, 512


def prompt() -> None:
    q = random(1, CAPACITY, HEADS, HEAD_DIM)
    k, v = random(1, CAPACITY, KV_HEADS, HEAD_DIM), random(1, CAPACITY, KV_HEADS, HEAD_DIM)

    attention = hone.prepare(hone.Attention(HEADS, KV_HEADS, HEAD_DIM, max_batch=4, max_q_len=CAPACITY))
    out = attention(q, k, v)  # [1, 512, 32, 128], causal

    seen = [torch.arange(1, CAPACITY + 1)]
    check(out, lambda: reference(q, k, v, seen), 1e-2)
    print(attention.report_text(), end="")


def step() -> None:
    lengths = [300, 17, CAPACITY, 1]  # keys of each sequence, the new token's included
    q = random(4, 1, HEADS, HEAD_DIM)
    k_cache, v_cache = random(4, CAPACITY, KV_HEADS, HEAD_DIM), random(4, CAPACITY, KV_HEADS, HEAD_DIM)
    kv_lengths = torch.tensor(lengths, dtype=torch.int32, device="cuda")

    attention = hone.prepare(
        hone.Attention(HEADS, KV_HEADS, HEAD_DIM, max_q_len=1, max_kv_len=CAPACITY, lengths=True)
    )
    out = attention(q, k_cache, v_cache, kv_lengths=kv_lengths)  # [4, 1, 32, 128]

    check(out, lambda: reference(q, k_cache, v_cache, [torch.tensor([n]) for n in lengths]), 1e-2)
    print(attention.report_text(), end="")


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: list) -> torch.Tensor:
    """In float64; seen: for each sequence how many keys each of its queries sees."""
    keys, values = (t.double().repeat_interleave(HEADS // KV_HEADS, 2).transpose(1, 2) for t in (k, v))
    scores = q.double().transpose(1, 2) @ keys.transpose(2, 3) * HEAD_DIM**-0.5
    sees = torch.arange(k.shape[1]) < torch.stack(seen)[:, None, :, None]
    scores = scores.masked_fill(~sees.to(q.device), -torch.inf)
    return (scores.softmax(-1) @ values).transpose(1, 2)

if __name__ == "__main__":
    run(prompt, step)

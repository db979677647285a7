"""What tests of plugins of serving engines share: operators that compute by their formulas and have the real ones check
each call, and attention by its formula. Needs PyTorch, on the CPU."""

from __future__ import annotations

from typing import Any, List

import torch
from torch import Tensor

from .arrays import InterfaceArray
from .driver import FakeDriver

import hone
from hone._operators.prepare import prepare_operator

FP8 = torch.float8_e4m3fn
SIZES_OF_A_CALL = hone.Attention.CALL_SIZES
DRIVER = FakeDriver()
TYPES = {torch.float32: "<f4", torch.bfloat16: "<V2", torch.int32: "<i4", torch.uint8: "|u1", FP8: "|u1"}


def on_the_driver(tensor: Tensor, memory: dict) -> InterfaceArray:
    """A tensor of the CPU as one that lies just so in the fake driver's memory, as views of one tensor do."""
    storage = tensor.untyped_storage()
    if storage.data_ptr() not in memory:
        memory[storage.data_ptr()] = DRIVER.allocate(storage.nbytes() + 256)
    size = tensor.element_size()
    pointer = memory[storage.data_ptr()] + tensor.storage_offset() * size
    strides = tuple(size * stride for stride in tensor.stride())
    return InterfaceArray(pointer, tuple(tensor.shape), TYPES[tensor.dtype], strides)


class Operator:
    """Stands for a prepared operator: remembers its calls, has the real one check them, and computes the formula,
    slowly, one query at a time."""

    def __init__(self, description: Any) -> None:
        self.description, self.calls = description, []
        self.real = prepare_operator(description, 0, stacklevel=2)

    def __call__(self, *tensors: Tensor, **given: Any) -> Tensor:
        names = ("q", "k", "v", "k_cache", "v_cache")
        given.update(zip(names, tensors))
        self.calls.append(given)
        rope = isinstance(self.description, hone.RopeKvAppend)
        self.launch(rope, **given)
        return self.append(**given) if rope else self.attend(**given)

    def launch(self, rope: bool, **given: Any) -> None:
        """The real operator takes these arguments."""
        memory: dict = {}
        given["out"] = torch.empty_like(given["q"]) if given.get("out") is None else given["out"]
        arrays = {
            name: on_the_driver(value, memory) if isinstance(value, Tensor) else value for name, value in given.items()
        }
        if not rope:
            size = self.real.workspace_bytes(*(getattr(self.description, f"max_{one}") for one in SIZES_OF_A_CALL))
            arrays["workspace"] = InterfaceArray(DRIVER.allocate(size + 256), (size,), "|u1") if size else None
        before = DRIVER.launch_count()
        self.real(**arrays)
        assert DRIVER.launch_count() > before

    def check(self, q: Tensor, cache: Tensor, ints: List[Tensor], scales: List[Any]) -> None:
        fp8 = self.description.kv_dtype == "fp8"
        assert str(q.dtype) == {"bf16": "torch.bfloat16", "fp32": "torch.float32"}[self.description.dtype]
        assert cache.dtype == (FP8 if fp8 else q.dtype) and cache.shape[1] == self.description.page_size
        assert all(one.dtype == torch.int32 for one in ints), [one.dtype for one in ints]
        for scale in scales:
            assert (scale is not None) == fp8
            assert scale is None or (scale.dtype == torch.float32 and scale.shape == cache.shape[2:3])
            assert scale is None or scale.is_contiguous()

    def attend(
        self, q, k, v, kv_lengths, page_table, kv_len, scale, softcap, q_starts=None, q_len=None, out=None,
        k_scale=None, v_scale=None, sinks=None,
    ):
        described = self.description
        assert (sinks is not None) == described.sinks
        assert sinks is None or (sinks.dtype == torch.float32 and sinks.shape == (described.heads,))
        self.check(q, k, [kv_lengths, page_table, *([] if q_starts is None else [q_starts])], [k_scale, v_scale])
        assert k.stride() == v.stride() and (softcap is not None) == described.softcap
        assert kv_len <= min(described.max_kv_len, page_table.shape[1] * described.page_size)
        assert int(kv_lengths.max()) <= kv_len, "a length is beyond what the call says"
        rows = kv_lengths.shape[0]
        assert rows <= described.max_batch and page_table.shape[0] == rows
        if described.packed:
            assert q_starts.shape == (rows + 1,) and q_starts[0] == 0 and int(q_starts[-1]) <= q.shape[0]
            spans = [(int(a), int(b)) for a, b in zip(q_starts, q_starts[1:])]
            assert max(b - a for a, b in spans) <= q_len <= described.max_q_len
            flat = q
        else:
            assert q.shape[0] == rows and q.shape[1] <= described.max_q_len
            spans = [(row * q.shape[1], (row + 1) * q.shape[1]) for row in range(rows)]
            flat = q.reshape(-1, *q.shape[2:])
        found = torch.full_like(flat, float("nan"))
        for row, (begin, end) in enumerate(spans):
            length = int(kv_lengths[row])
            pages = page_table[row, : -(-length // described.page_size)].long()
            keys, values = (
                cache[pages].flatten(0, 1)[:length].float() * (1 if one is None else one[:, None])
                for cache, one in ((k, k_scale), (v, v_scale))
            )
            found[begin:end] = attended(
                flat[begin:end], keys, values, scale, described.window, softcap, length - (end - begin), sinks
            ).to(q.dtype)
        found = found.view(q.shape)
        return found if out is None else out.copy_(found)

    def append(
        self, q, k, v, k_cache, v_cache, slots, cos=None, sin=None, positions=None, out=None, k_scale=None, v_scale=None
    ):
        described = self.description
        self.check(q, k_cache, [slots, *([] if positions is None else [positions])], [k_scale, v_scale])
        assert q.shape[:2] == (slots.shape[0], described.heads) and k.shape == v.shape
        assert k.shape[1:] == (described.kv_heads, described.head_dim) and q.shape[0] <= described.max_tokens
        assert (cos is not None) == (described.rotary_dim > 0) and k_cache.stride() == v_cache.stride()
        if cos is not None:
            assert cos.dtype == sin.dtype == torch.float32 and 2 * cos.shape[1] == described.rotary_dim
            q, k = (rotated(one, cos[positions.long()], sin[positions.long()], described.style) for one in (q, k))
        for cache, new, scale in ((k_cache, k, k_scale), (v_cache, v, v_scale)):
            for token, slot in enumerate(slots.tolist()):
                if slot >= 0:
                    value = new[token].float() / (1 if scale is None else scale[:, None])
                    cache[slot // described.page_size, slot % described.page_size] = value.to(cache.dtype)
        return q.clone() if out is None else out.copy_(q)


def attended(
    q: Tensor, k: Tensor, v: Tensor, scale: float, window: int, softcap: Any, behind: int, sinks: Any = None
) -> Tensor:
    """q [tokens, heads, size] over k and v [length, kv_heads, size]: query i sees key j up to i + behind. One that
    sees none gets zeros. A head's sink is one more score, whose value is zero."""
    out = torch.zeros(q.shape)
    for i in range(q.shape[0]):
        last = i + behind + 1
        first = max(0, last - window) if window else 0
        if last <= first:
            continue
        for head in range(q.shape[1]):
            mine = head // (q.shape[1] // k.shape[1])
            scores = k[first:last, mine] @ q[i, head].float() * scale
            scores = softcap * torch.tanh(scores / softcap) if softcap else scores
            if sinks is not None:
                scores = torch.cat((scores, sinks[head].view(1)))
            out[i, head] = scores.softmax(0)[: last - first] @ v[first:last, mine]
    return out


def rotated(x: Tensor, cos: Tensor, sin: Tensor, style: str) -> Tensor:
    size = 2 * cos.shape[-1]
    turning, rest = x[..., :size].float(), x[..., size:]
    a, b = turning.chunk(2, -1) if style == "half" else (turning[..., ::2], turning[..., 1::2])
    c, s = cos[:, None], sin[:, None]
    pair = (a * c - b * s, b * c + a * s)
    turned = torch.cat(pair, -1) if style == "half" else torch.stack(pair, -1).flatten(-2)
    return torch.cat((turned.to(x.dtype), rest), -1)

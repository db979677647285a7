"""Hone's attention and norm beside vLLM's own kernels on random inputs: largest errors against float32, and times.
What `python -m hone.vllm check` runs; it needs vLLM and a GPU, and no model."""

from __future__ import annotations

import statistics
import time
import types
from typing import Any, Callable, List, NamedTuple, Sequence, Tuple

import torch
from torch import Tensor

from .._serving.operators import Limits
from .batch import HoneMetadata, metadata_of

HEADS, KV_HEADS, HEAD_SIZE, BLOCK = 32, 8, 128, 16
HIDDEN, EPSILON = 4096, 1e-5
TOLERANCE = 2e-2  # of bf16 against float32, relative to the largest value; an fp8 cache is read as it is
REPEATS = 20

# Queries and all tokens of each sequence.
BATCHES = {
    "decode, 64 sequences": [(1, 1024)] * 64,
    "decode, 4 queries each": [(4, 900 + i) for i in range(16)],
    "prompts": [(1024, 1024), (700, 700)],
    "mixed": [*((1, 500 + 7 * i) for i in range(16)), (512, 512), (300, 1300)],
}


class Problem(NamedTuple):
    """A step with its tensors."""

    query: Tensor
    key: Tensor
    value: Tensor
    cache: Tensor
    common: Any
    limits: Limits


class Row(NamedTuple):
    """What is printed of a case."""

    name: str
    error: float
    their_error: float
    us: float
    their_us: float

    @property
    def passed(self) -> bool:
        return self.error <= max(TOLERANCE, 1.5 * self.their_error)

    def __str__(self) -> str:
        ours = f"{self.error:9.2e} {self.us:9.1f} us"
        theirs = f"{self.their_error:9.2e} {self.their_us:9.1f} us"
        return f"{self.name:30} Hone {ours}   vLLM {theirs}   {'ok' if self.passed else 'WRONG'}"


def make_problem(batch: Sequence[Tuple[int, int]], fp8: bool, device: torch.device, dtype: torch.dtype) -> Problem:
    """Random queries, new keys and values, and a cache that has the tokens before them."""
    generator = torch.Generator(device="cpu").manual_seed(len(batch))
    starts = torch.tensor([0, *(query for query, _ in batch)]).cumsum(0).int()
    lengths = torch.tensor([length for _, length in batch], dtype=torch.int32)
    most = -(-int(lengths.max()) // BLOCK)
    blocks = torch.randperm(len(batch) * most, generator=generator).view(len(batch), most).int()
    tokens = int(starts[-1])
    slots = [
        int(blocks[row, place // BLOCK]) * BLOCK + place % BLOCK
        for row, (query, length) in enumerate(batch)
        for place in range(length - query, length)
    ]
    cache = torch.randn(blocks.numel(), 2, BLOCK, KV_HEADS, HEAD_SIZE, generator=generator).to(dtype)
    if fp8:
        cache = cache.to(torch.float8_e4m3fn).view(torch.uint8)
    common = types.SimpleNamespace(
        query_start_loc=starts.to(device), query_start_loc_cpu=starts, seq_lens=lengths.to(device),
        num_reqs=len(batch), num_actual_tokens=tokens, max_query_len=max(query for query, _ in batch),
        max_seq_len=int(lengths.max()), block_table_tensor=blocks.to(device),
        slot_mapping=torch.tensor(slots).to(device), causal=True,
    )  # fmt: skip
    rows = [
        torch.randn(tokens, heads, HEAD_SIZE, generator=generator).to(device, dtype)
        for heads in (HEADS, KV_HEADS, KV_HEADS)
    ]
    limits = Limits(len(batch), tokens, most * BLOCK, 4, BLOCK)
    return Problem(rows[0], rows[1], rows[2], cache.to(device), common, limits)


def by_formula(problem: Problem, k_cache: Tensor, v_cache: Tensor) -> Tensor:
    """In float32, of caches that have the new tokens."""
    common, out = problem.common, torch.empty_like(problem.query, dtype=torch.float32)
    starts = common.query_start_loc_cpu.tolist()
    for row in range(common.num_reqs):
        length, begin, end = int(common.seq_lens[row]), starts[row], starts[row + 1]
        pages = common.block_table_tensor[row].long()
        k, v = (cache[pages].flatten(0, 1)[:length].float() for cache in (k_cache, v_cache))
        k, v = (one.repeat_interleave(HEADS // KV_HEADS, 1).transpose(0, 1) for one in (k, v))
        q = problem.query[begin:end].float().transpose(0, 1)
        scores = q @ k.transpose(1, 2) * HEAD_SIZE**-0.5
        places = torch.arange(length, device=q.device)
        scores.masked_fill_(places > places[length - (end - begin) :, None], float("-inf"))
        out[begin:end] = (scores.softmax(-1) @ v).transpose(0, 1)
    return out


def measured_us(run: Callable[[], Any], device: torch.device) -> float:
    """Median of a call, launches included."""
    times = []
    for _ in range(REPEATS):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        begin = time.perf_counter()
        run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(times)


def largest_error(found: Tensor, wanted: Tensor) -> float:
    """Relative to the largest value; not a number is infinite."""
    error = float((found.float() - wanted).abs().max() / wanted.abs().max())
    return error if error == error else float("inf")


def check_attention(name: str, problem: Problem, fp8: bool) -> Row:
    from vllm.v1.attention.backends.fa_utils import flash_attn_varlen_func

    from .attention import HoneAttentionImpl

    device, common = problem.query.device, problem.common
    word = "fp8" if fp8 else "auto"
    impl = HoneAttentionImpl(HEADS, HEAD_SIZE, HEAD_SIZE**-0.5, KV_HEADS, kv_cache_dtype=word)
    impl.prepare(problem.limits, problem.query.dtype, device)
    one = torch.ones(1, device=device)
    layer = types.SimpleNamespace(layer_name=name, _k_scale=one, _v_scale=one)
    slots = torch.zeros(problem.limits.tokens, dtype=torch.int32, device=device)
    step: HoneMetadata = metadata_of(common, problem.limits, slots, captured=False)
    impl.do_kv_cache_update(layer, problem.key, problem.value, problem.cache, common.slot_mapping)
    k_cache, v_cache = impl.caches(problem.cache)
    if fp8:  # vLLM's may take no codes beside queries of 16 bits: it gets their values
        k_cache, v_cache = (cache.to(problem.query.dtype) for cache in (k_cache, v_cache))
    out, their_out = torch.zeros_like(problem.query), torch.zeros_like(problem.query)

    def ours() -> None:
        impl.forward(layer, problem.query, problem.key, problem.value, problem.cache, step, out)

    def theirs() -> None:
        flash_attn_varlen_func(
            q=problem.query, k=k_cache, v=v_cache, out=their_out, cu_seqlens_q=common.query_start_loc,
            max_seqlen_q=common.max_query_len, seqused_k=common.seq_lens, max_seqlen_k=common.max_seq_len,
            softmax_scale=impl.scale, causal=True, block_table=common.block_table_tensor,
        )  # fmt: skip

    times = [measured_us(run, device) for run in (ours, theirs)]
    wanted = by_formula(problem, k_cache, v_cache)
    return Row(name, largest_error(out, wanted), largest_error(their_out, wanted), *times)


def check_norm(device: torch.device, dtype: torch.dtype) -> Row:
    from vllm import _custom_ops

    from .._torch.registered import calls

    x, weight = torch.randn(64, HIDDEN, device=device).to(dtype), torch.rand(HIDDEN, device=device).to(dtype)
    their_out = torch.empty_like(x)
    wanted = torch.nn.functional.rms_norm(x.float(), (HIDDEN,), weight.float(), EPSILON)
    times = [
        measured_us(lambda: calls.rms_norm(x, weight, EPSILON), device),
        measured_us(lambda: _custom_ops.rms_norm(their_out, x, weight, EPSILON), device),
    ]
    errors = [largest_error(one, wanted) for one in (calls.rms_norm(x, weight, EPSILON), their_out)]
    return Row("RMSNorm, 64 tokens", errors[0], errors[1], *times)


def check(device: torch.device, dtype: torch.dtype = torch.bfloat16) -> List[Row]:
    """All cases. Raises ImportError where vLLM is missing or has another interface."""
    rows = []
    for fp8 in (False, True):
        for name, batch in BATCHES.items():
            problem = make_problem(batch, fp8, device, dtype)
            rows.append(check_attention(f"{name}, fp8 cache" if fp8 else name, problem, fp8))
    return [*rows, check_norm(device, dtype)]

"""What SGLang says of a step, as Hone's operators take it: functions of tensors alone, without SGLang or a GPU.

SGLang keeps, for each request, the place of each of its tokens in one pool of keys and values. Pages are pieces of that
pool: with a page size of n a request's tokens n * i to n * i + n - 1 lie side by side from a multiple of n on.
"""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional

import torch
from torch import Tensor

from .._serving.operators import Limits


class Step(NamedTuple):
    """Lengths, and pages, of the sequences; of prompts also where their queries start."""

    kv_len: int
    kv_lengths: Tensor
    page_table: Tensor
    q_starts: Optional[Tensor] = None
    q_len: int = 1


def limits_of(server_args: Any, requests: int, context_len: int, page_size: int) -> Limits:
    """What a server allows. A prompt comes in chunks, or, where that is switched off, as a whole."""
    chunk = server_args.chunked_prefill_size or -1
    tokens = chunk if chunk > 0 else max(server_args.max_prefill_tokens or 0, context_len)
    return Limits(server_args.max_running_requests or requests, tokens, context_len, 1, page_size)


def pages_of(places: Tensor, page_size: int) -> Tensor:
    """int32 [requests, pages] of the places of tokens [requests, tokens]."""
    first = places[:, ::page_size]
    return (first if page_size == 1 else first // page_size).to(torch.int32)


def decode_step(places: Tensor, requests: Tensor, lengths: Tensor, longest: int, page_size: int) -> Step:
    """One query each of `requests`, rows of places."""
    table = pages_of(places[requests, : max(1, longest)], page_size)
    return Step(max(1, longest), lengths.to(torch.int32), table.contiguous())


def prompt_step(
    places: Tensor, requests: Tensor, lengths: Tensor, longest: int, page_size: int, queries: List[int]
) -> Step:
    """So many queries of each, the last of its tokens."""
    decode = decode_step(places, requests, lengths, longest, page_size)
    starts = torch.tensor([0, *queries], dtype=torch.int32).cumsum(0).to(torch.int32)
    return decode._replace(q_starts=starts.to(lengths.device), q_len=max(queries))


def paged(pool: Tensor, page_size: int) -> Tensor:
    """[places, kv_heads, head_dim] as pages [pages, page_size, kv_heads, head_dim]; places beyond the last whole page
    are none of a request's."""
    pages = pool.shape[0] // page_size
    return pool[: pages * page_size].unflatten(0, (pages, page_size))

"""What vLLM says of a step, as Hone's operators take it: which sequences go through which operator, with which
tensors. Functions of shapes and metadata alone; nothing here imports vLLM or needs a GPU.

A step's tokens lie one sequence after another, q [tokens, heads, head_dim]. The first sequences that have one number
of queries each, at most `Limits.decoded`, are the `decode` part, [sequences, q_len, heads, head_dim] over pages: vLLM
puts decoding sequences first. The others are `packed`: queries of any lengths over pages. A cache of fp8 has no
packed operator: there each such sequence is cut into `pieces` of 16 queries, and each piece is a sequence that ends
with its last query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor

from .._operators.description import MOST_DECODED
from .._serving.operators import Limits as Limits


class Decode(NamedTuple):
    """The first sequences of a step, q_len queries each."""

    sequences: int
    q_len: int
    kv_lengths: Tensor
    page_table: Tensor


class Packed(NamedTuple):
    """The sequences behind them."""

    first: int  # their first token
    q_len: int  # the most of any
    q_starts: Tensor
    kv_lengths: Tensor
    page_table: Tensor


class Pieces(NamedTuple):
    """The same as pieces of MOST_DECODED queries, the first of a sequence with unused ones before it."""

    tokens: Tensor  # [pieces * MOST_DECODED]: the token of each query; an unused one has any
    used: Tensor  # places of the queries that are used
    kv_lengths: Tensor
    page_table: Tensor


@dataclass
class HoneMetadata:
    """One step, for all layers of a group."""

    tokens: int
    kv_len: int  # the most tokens that any sequence has, or may have when a graph is replayed
    slot_mapping: Tensor  # vLLM's
    slots: Tensor  # the same, int32
    decode: Optional[Decode] = None
    packed: Optional[Packed] = None
    pieces: Optional[Pieces] = None


def limits_of(config: Any, page_size: int) -> Limits:
    """What a VllmConfig allows."""
    speculative = config.speculative_config
    more = 0 if speculative is None else speculative.num_speculative_tokens or 0
    captured = max(config.compilation_config.cudagraph_capture_sizes or [0])
    return Limits(
        max(config.scheduler_config.max_num_seqs, captured),
        max(config.scheduler_config.max_num_batched_tokens, captured),
        config.model_config.max_model_len,
        min(1 + more, MOST_DECODED),
        page_size,
    )


def leading_run(lengths: Sequence[int], most: int) -> Tuple[int, int]:
    """How many sequences from the first on have as many queries as it, and how many that are; (0, 0): it has none, or
    more than `most`."""
    if not lengths or not 0 < lengths[0] <= most:
        return 0, 0
    count = next((i for i, length in enumerate(lengths) if length != lengths[0]), len(lengths))
    return count, lengths[0]


def slots_for(slot_mapping: Tensor, metadata: Optional[HoneMetadata]) -> Tensor:
    """Slots as int32: those of the step, where they were made of this very tensor."""
    if (
        metadata is not None
        and metadata.slot_mapping.data_ptr() == slot_mapping.data_ptr()
        and metadata.slots.shape[0] >= slot_mapping.shape[0]
    ):
        return metadata.slots[: slot_mapping.shape[0]]
    return slot_mapping.to(torch.int32)


def metadata_of(common: Any, limits: Limits, slots: Tensor, fp8: bool, captured: bool) -> HoneMetadata:
    """Of vLLM's CommonAttentionMetadata. `slots`: memory for int32 slots that stays where it is. `captured`: a graph
    that is made now will be replayed with other lengths. Raises NotImplementedError and ValueError."""
    if not getattr(common, "causal", True):
        raise NotImplementedError("causal: False; Hone's attention in vLLM is causal: choose another backend")
    slot_mapping = common.slot_mapping
    if slot_mapping.shape[0] > slots.shape[0]:
        raise ValueError(f"slot_mapping: it has {slot_mapping.shape[0]} tokens; prepared are {slots.shape[0]}")
    slots = slots[: slot_mapping.shape[0]]
    slots.copy_(slot_mapping)
    room = common.block_table_tensor.shape[1] * limits.page_size
    kv_len = limits.kv_len if captured else common.max_seq_len
    step = HoneMetadata(common.num_actual_tokens, max(1, min(kv_len, room)), slot_mapping, slots)
    starts = common.query_start_loc_cpu[: common.num_reqs + 1].tolist()
    _fill(step, common, limits, starts, fp8)
    return step


def _fill(step: HoneMetadata, common: Any, limits: Limits, starts: List[int], fp8: bool) -> None:
    """The parts of a step."""
    lengths = [end - start for start, end in zip(starts, starts[1:])]
    kv_lengths = common.seq_lens[: common.num_reqs].to(torch.int32)
    table = common.block_table_tensor[: common.num_reqs].to(torch.int32)
    count, q_len = leading_run(lengths, limits.decoded)
    if count:
        step.decode = Decode(count, q_len, kv_lengths[:count], table[:count])
    if not sum(lengths[count:]):  # nothing behind them, or sequences without queries that fill a graph's batch
        return
    if fp8:
        step.pieces = _pieces(starts, count, kv_lengths, table)
        return
    q_starts = common.query_start_loc[count : common.num_reqs + 1].to(torch.int32)
    if starts[count]:
        q_starts = q_starts - starts[count]
    step.packed = Packed(starts[count], max(lengths[count:]), q_starts, kv_lengths[count:], table[count:])


def cut(starts: Sequence[int], first: int) -> Tuple[List[int], List[int], List[int], List[int]]:
    """Pieces of the sequences from `first` on: of each its sequence and the queries of the sequence behind it; then
    of each query of a piece its token, and the places of those that are used. A piece ends where the next begins,
    counted from the sequence's end, so that its last query is the last token of what it sees."""
    sequences: List[int] = []
    behind: List[int] = []
    tokens: List[int] = []
    used: List[int] = []
    for sequence in range(first, len(starts) - 1):
        begin, end = starts[sequence], starts[sequence + 1]
        for last in range(end, begin, -MOST_DECODED):
            place = len(tokens)
            sequences.append(sequence)
            behind.append(end - last)
            tokens += [max(token, begin) for token in range(last - MOST_DECODED, last)]
            unused = max(0, begin - (last - MOST_DECODED))
            used += range(place + unused, place + MOST_DECODED)
    return sequences, behind, tokens, used


def _pieces(starts: List[int], first: int, kv_lengths: Tensor, table: Tensor) -> Pieces:
    lists = cut(starts, first)
    sequences, behind, tokens, used = (torch.tensor(one).to(kv_lengths.device) for one in lists)
    lengths = kv_lengths[sequences] - behind.to(torch.int32)
    return Pieces(tokens, used, lengths, table[sequences])

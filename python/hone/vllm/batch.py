"""What vLLM says of a step, as Hone's operators take it: which sequences go through which operator, with which
tensors. Functions of shapes and metadata alone; nothing here imports vLLM or needs a GPU.

A step's tokens lie one sequence after another, q [tokens, heads, head_dim]. The first sequences that have one number
of queries each, at most `Limits.decoded`, are the `decode` part, [sequences, q_len, heads, head_dim] over pages: vLLM
puts decoding sequences first. The others are `packed`: queries of any lengths over pages.
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


@dataclass
class HoneMetadata:
    """One step, for all layers of a group."""

    tokens: int
    kv_len: int  # the most tokens that any sequence has, or may have when a graph is replayed
    slot_mapping: Tensor  # vLLM's
    slots: Tensor  # the same, int32
    decode: Optional[Decode] = None
    packed: Optional[Packed] = None


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


def metadata_of(common: Any, limits: Limits, slots: Tensor, captured: bool) -> HoneMetadata:
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
    _fill(step, common, limits, starts)
    return step


def _fill(step: HoneMetadata, common: Any, limits: Limits, starts: List[int]) -> None:
    """The parts of a step."""
    lengths = [end - start for start, end in zip(starts, starts[1:])]
    kv_lengths = common.seq_lens[: common.num_reqs].to(torch.int32)
    table = common.block_table_tensor[: common.num_reqs].to(torch.int32)
    count, q_len = leading_run(lengths, limits.decoded)
    if count:
        step.decode = Decode(count, q_len, kv_lengths[:count], table[:count])
    if not sum(lengths[count:]):  # nothing behind them, or sequences without queries that fill a graph's batch
        return
    q_starts = common.query_start_loc[count : common.num_reqs + 1].to(torch.int32)
    if starts[count]:
        q_starts = q_starts - starts[count]
    step.packed = Packed(starts[count], max(lengths[count:]), q_starts, kv_lengths[count:], table[count:])


"""The layers of a model as Hone's operators, for any number of new tokens over a cache.

A sequence's tokens stand in its row of the cache from 0 on, without gaps: a token's place is its position. Where the new
tokens are the last of `lengths`, those before a sequence's beginning, padding on the left, have negative positions: they
are written nowhere and see nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from .._operators.description import MOST_DECODED
from .._torch.registered import calls
from .anatomy import Anatomy, Layer, Rotary

PAGE = 16  # tokens: kernels of decoding are tuned for pages of so many


class Room(NamedTuple):
    """Keys and values of one layer for some sequences, as tokens and as pages, and where these are."""

    keys: Tensor  # [sequences, tokens, kv_heads, head_dim]
    values: Tensor
    key_pages: Tensor  # [pages, PAGE, kv_heads, head_dim]
    value_pages: Tensor
    table: Tensor  # [sequences, pages of one]


class Step(NamedTuple):
    """What a call adds to a cache."""

    lengths: Tensor  # [sequences] of int32: tokens of each, the new ones included
    kv_len: int  # the most that any has, or may have while a graph is used
    even: bool  # whether all sequences have as many, and nothing but the new tokens
    cos: Optional[Tensor]
    sin: Optional[Tensor]
    only_last: bool = False  # whether nobody wants hidden states of other tokens than each sequence's last column


def pages_of(tensor: Tensor) -> Tensor:
    """[sequences, tokens, ...] without gaps -> [pages, PAGE, ...]."""
    return tensor.view(-1, PAGE, *tensor.shape[2:])


def angles(rotary: Optional[Rotary], rows: int, device: torch.device) -> Tuple[Optional[Tensor], Optional[Tensor]]:
    """Cosines and sines of positions 0 to `rows` - 1, as the model computes them."""
    if rotary is None:
        return None, None
    positions = torch.arange(rows, dtype=torch.float32, device=device)
    turned = positions[:, None] * rotary.frequencies.to(device, torch.float32)[None, :]
    return turned.cos() * rotary.factor, turned.sin() * rotary.factor


def embedded(anatomy: Anatomy, ids: Tensor, lengths: Tensor) -> Tensor:
    """ids [sequences, tokens] -> [sequences, tokens, hidden]."""
    if anatomy.positions is None:
        return calls.embedding(ids, anatomy.embedding, anatomy.embedding_scale, None, None)
    places = _positions(ids, lengths)
    return calls.embedding(ids, anatomy.embedding, anatomy.embedding_scale, places.to(ids.dtype), anatomy.positions)


def with_positions(anatomy: Anatomy, x: Tensor, lengths: Tensor) -> Tensor:
    """The same for tokens that have been embedded by the caller."""
    if anatomy.positions is None:
        return x
    places = _positions(x[..., 0], lengths)
    return x + calls.embedding(places, anatomy.positions, None, None, None)


def _positions(tokens: Tensor, lengths: Tensor) -> Tensor:
    """[sequences, tokens]; that of padding is 0."""
    count = tokens.shape[1]
    places = torch.arange(-count, 0, device=tokens.device, dtype=lengths.dtype)
    return (lengths[:, None] + places).clamp(min=0)


def run(anatomy: Anatomy, x: Tensor, rooms: "list[Room]", step: Step) -> Tensor:
    """Embedded tokens [sequences, tokens, hidden] -> the same behind the last norm, or [sequences, 1, hidden]; writes their
    keys and values."""
    delta: Optional[Tensor] = None
    whole = anatomy.whole
    last = anatomy.layers[-1] if step.only_last else None
    for layer, room in zip(anatomy.layers, rooms):
        if whole:
            attended = _attended(anatomy, layer, layer.qkv(x, None, layer.norm.arguments), room, step)
            if layer is last:
                attended, x = _last(attended), _last(x)
            x = layer.out(attended, x)
            network: Any = layer.network
            x = network(x, x, layer.network_norm.arguments)
            continue
        normed, x = _normed(layer.norm, x, delta)
        attended = _attended(anatomy, layer, layer.qkv(normed), room, step)
        if layer is last:
            attended, x = _last(attended), _last(x)
        delta = layer.out(attended)
        if layer.behind_attention is not None:
            delta = layer.behind_attention.of(delta)
        normed, x = layer.network_norm.of_sum(delta, x)
        delta = layer.network(normed)
        if layer.behind_network is not None:
            delta = layer.behind_network.of(delta)
    return _normed(anatomy.norm, x, delta)[0]


def _last(x: Tensor) -> Tensor:
    """[sequences, tokens, columns] -> [sequences, 1, columns]: behind attention the others are nobody's input."""
    return x[:, -1:].contiguous()


def _normed(norm, x: Tensor, delta: Optional[Tensor]) -> Tuple[Tensor, Tensor]:  # type: ignore[no-untyped-def]
    """Of the sum, and the sum."""
    return (norm.of(x), x) if delta is None else norm.of_sum(delta, x)


def _attended(anatomy: Anatomy, layer: Layer, qkv: Tensor, room: Room, step: Step) -> Tensor:
    """What a layer's projection gives, [sequences, tokens, heads and twice kv_heads * head_dim] -> [sequences, tokens,
    heads * head_dim]."""
    heads, kv_heads, head_dim = anatomy.heads, anatomy.kv_heads, anatomy.head_dim
    tokens = qkv.shape[1]
    q, k, v = qkv.unflatten(-1, (heads + 2 * kv_heads, head_dim)).split((heads, kv_heads, kv_heads), 2)
    q_weight, k_weight, epsilon = layer.head_norms or (None, None, None)
    few = tokens <= MOST_DECODED
    k_cache, v_cache, table = (room.key_pages, room.value_pages, room.table) if few else (room.keys, room.values, None)
    q = calls.rope_kv_append(
        q, k, v, k_cache, v_cache, step.cos, step.sin, "half", step.lengths, table, None, None, None, None, q_weight,
        k_weight, epsilon,
    )  # fmt: skip
    options = (layer.window, anatomy.softcap, layer.scale)
    if few:
        causal = tokens > 1 or layer.window > 0  # a single query sees all keys
        out = calls.attention_with_cache(q, k_cache, v_cache, step.lengths, table, causal, *options, step.kv_len)
    elif step.even:
        out = calls.attention_with_cache(
            q, room.keys[:, :tokens], room.values[:, :tokens], None, None, True, *options, None
        )
    else:
        out = calls.attention_with_cache(q, room.keys, room.values, step.lengths, None, True, *options, step.kv_len)
    return out.flatten(-2)

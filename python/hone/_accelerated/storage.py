"""Memory for keys and values of all layers, which generations take one after another, so that graphs stay good."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import torch

from .anatomy import Anatomy
from .graphs import new_pool
from .layers import PAGE, Room, angles, pages_of


class Storage:
    """Keys and values of `sequences` with room for `tokens` each, in every layer, and their lengths."""

    def __init__(self, anatomy: Anatomy, sequences: int, tokens: int) -> None:
        self.sequences, self.tokens = sequences, -(-tokens // PAGE) * PAGE
        shape = (sequences, self.tokens, anatomy.kv_heads, anatomy.head_dim)
        made = {"dtype": anatomy.dtype, "device": anatomy.device}
        with torch.inference_mode(False):  # whose tensors nobody else could write to
            pairs = [(torch.empty(shape, **made), torch.empty(shape, **made)) for _ in anatomy.layers]
            pages = sequences * self.tokens // PAGE
            table = torch.arange(pages, dtype=torch.int32, device=anatomy.device).view(sequences, -1)
            self.lengths = torch.zeros(sequences, dtype=torch.int32, device=anatomy.device)
            self.cos, self.sin = angles(anatomy.rotary, self.tokens, anatomy.device)
        self._whole = [Room(k, v, pages_of(k), pages_of(v), table) for k, v in pairs]
        self._rooms: Dict[int, List[Room]] = {}
        self.graphs: Dict[Tuple[int, int], Any] = {}  # captured decode steps by sequences and most tokens
        self.pool = new_pool(anatomy.device)  # which lives no longer than its graphs

    def rooms(self, sequences: int) -> List[Room]:
        """Of the first sequences, a layer each."""
        found = self._rooms.get(sequences)
        if found is None:
            found = [
                Room(r.keys[:sequences], r.values[:sequences], r.key_pages, r.value_pages, r.table[:sequences])
                for r in self._whole
            ]
            self._rooms[sequences] = found
        return found


class Scratch:
    """The same for a call that keeps nothing: one layer's memory serves all."""

    def __init__(self, anatomy: Anatomy, sequences: int, tokens: int) -> None:
        one = Storage(anatomy._replace(layers=anatomy.layers[:1]), sequences, tokens)
        self.lengths, self.cos, self.sin = one.lengths, one.cos, one.sin
        self._rooms = one.rooms(sequences) * len(anatomy.layers)

    def rooms(self, _sequences: int) -> List[Room]:
        return self._rooms

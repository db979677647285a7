"""A cache that transformers takes, with keys and values where Hone's kernels read and write them.

A sequence's tokens stand from 0 on, without the padding before or between them; transformers counts that, and calls a
place with it a column. Where its own layers run on this cache, it stands in columns from then on.
"""

from __future__ import annotations

import weakref
from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from .storage import Storage


class Contents:
    """What the layers of a cache share. `lend(sequences, tokens)` gives a Storage with so much room, and `take_back` gets it
    when nothing uses it any more."""

    def __init__(self, owner: Any, sequences: int, tokens: int, kept: bool) -> None:
        """`kept`: memory in which graphs are captured, of the owner's usual size at least."""
        self.owner = owner
        self.sequences = sequences
        self.columns = 0  # that transformers has seen
        self.unfinished: List[int] = []  # of each layer, while transformers' own run
        self.missing: Optional[Tensor] = None  # [sequences]: columns that are padding; None: there are none
        self.padded_from = 0  # padding stands behind a sequence's tokens, before this column; 0: on its left
        self.looked = False  # whether the model was looked at for the call that comes next
        self.trusted_mask: Any = None  # a mask that is known to say nothing new, and the positions beside it
        self.trusted_positions: Any = None
        self.source_positions: Any = None  # those that are next to be proven, and of which they are a part
        self.step_positions: Any = None
        self._ones: Optional[Tensor] = None  # [sequences, columns and more]
        self._columns: Optional[Tensor] = None  # the same, of their numbers
        self._hold(owner.lend(sequences, tokens, kept))
        self.storage.lengths.zero_()

    def ones(self, dtype: torch.dtype) -> Tensor:
        """A mask of no padding, for one column more than there are, or several."""
        if not self._serves(self._ones, dtype):
            self._ones = self.lengths.new_ones((self.sequences, self._width()), dtype=dtype)
        assert self._ones is not None
        return self._ones

    def places(self, dtype: torch.dtype) -> Tensor:
        """The positions beside it."""
        if not self._serves(self._columns, dtype):
            one = torch.arange(self._width(), dtype=dtype, device=self.lengths.device)
            self._columns = one.expand(self.sequences, -1)
        assert self._columns is not None
        return self._columns

    def _width(self) -> int:
        return max(self.storage.tokens, 2 * self.columns) + 1

    def _serves(self, tensor: Optional[Tensor], dtype: torch.dtype) -> bool:
        return (
            tensor is not None and tensor.dtype == dtype and tensor.shape[0] == self.sequences
            and tensor.shape[1] > self.columns and tensor.device == self.lengths.device
        )  # fmt: skip

    def _hold(self, storage: Storage) -> None:
        self.storage = storage
        self._finalizer = weakref.finalize(self, self.owner.take_back, storage)
        self._finalizer.atexit = False

    @property
    def lengths(self) -> Tensor:
        return self.storage.lengths[: self.sequences]

    @property
    def kept(self) -> bool:
        return self.owner.keeps(self.storage)

    def make_room(self, sequences: int, tokens: int, kept: bool = False) -> None:
        """Moves to a larger storage where this one has too little room."""
        enough = sequences <= self.storage.sequences and tokens <= self.storage.tokens
        if enough and (self.kept or not kept):
            return
        old, count = self.storage, min(self.sequences, sequences)
        finalizer = self._finalizer
        room = tokens if tokens <= old.tokens else max(tokens, 2 * old.tokens)
        self._hold(self.owner.lend(max(sequences, self.sequences), room, kept))
        for (k, v, *_), (new_k, new_v, *_) in zip(old.rooms(old.sequences), self.storage.rooms(self.storage.sequences)):
            new_k[:count, : self.columns].copy_(k[:count, : self.columns])
            new_v[:count, : self.columns].copy_(v[:count, : self.columns])
        self.storage.lengths.zero_()
        self.storage.lengths[:count].copy_(old.lengths[:count])
        finalizer()

    def select(self, index: Tensor) -> None:
        """The sequences of these indices take the places of those that there are."""
        index = index.to(self.lengths.device)
        lengths = self.lengths.index_select(0, index)
        self.missing = None if self.missing is None else self.missing.index_select(0, index)
        before = self.sequences
        self.make_room(len(index), self.columns)
        for k, v, *_ in self.storage.rooms(self.storage.sequences):
            for tensor in (k, v):
                part = tensor[:before, : self.columns]
                tensor[: len(index), : self.columns].copy_(part.index_select(0, index))
        self.sequences = len(index)
        self.lengths.copy_(lengths)

    def crop(self, columns: int) -> None:
        """To so many columns; a negative number: so many fewer."""
        columns = columns if columns >= 0 else max(self.columns + columns, 0)
        if columns >= self.columns:
            return
        if self.padded_from and columns < self.padded_from:
            self.to_columns()
        self.lengths.sub_(self.columns - columns).clamp_(min=0)
        self.columns = columns
        self.unfinished = []
        self.forget_trust()

    def clear(self) -> None:
        self.lengths.zero_()
        self.columns, self.unfinished, self.missing, self.padded_from = 0, [], None, 0
        self.forget_trust()

    def forget_trust(self) -> None:
        self.trusted_mask = self.trusted_positions = self.source_positions = self.step_positions = None

    # transformers' own layers.

    def to_columns(self) -> None:
        """Puts every token into its column; what stands in those of padding, masks hide."""
        if self.missing is not None and self.columns:
            places = self._places()
            for k, v, *_ in self.storage.rooms(self.sequences):
                for tensor in (k, v):
                    index = places[:, :, None, None].expand(-1, -1, *tensor.shape[2:])
                    tensor[:, : self.columns].copy_(tensor[:, : self.columns].gather(1, index))
            self.lengths.fill_(self.columns)
        self.missing, self.padded_from = None, 0
        self.forget_trust()

    def _places(self) -> Tensor:
        """[sequences, columns]: where the token of a column stands."""
        assert self.missing is not None
        column = torch.arange(self.columns, device=self.missing.device)[None, :]
        places = (column - self.missing[:, None].long()).clamp(min=0)
        return torch.where(column < self.padded_from, column, places) if self.padded_from else places

    def layer_columns(self, layer: int) -> int:
        return self.unfinished[layer] if layer < len(self.unfinished) else self.columns

    def update(self, layer: int, keys: Tensor, values: Tensor) -> Tuple[Tensor, Tensor]:
        """Appends [sequences, kv_heads, tokens, head_dim], and returns all that there are, likewise."""
        count, begin = keys.shape[2], self.layer_columns(layer)
        if not self.unfinished:
            self.to_columns()
            self.unfinished = [self.columns] * len(self.storage.rooms(self.sequences))
        self.make_room(keys.shape[0], begin + count)
        room = self.storage.rooms(self.sequences)[layer]
        found = []
        for cache, new in ((room.keys, keys), (room.values, values)):
            cache[:, begin : begin + count].copy_(new.transpose(1, 2))
            found.append(cache[:, : begin + count].transpose(1, 2))
        self.unfinished[layer] = begin + count
        if len(set(self.unfinished)) == 1:  # of all layers
            self.columns, self.unfinished = begin + count, []
            self.lengths.fill_(self.columns)
        return found[0], found[1]

    def seen(self, layer: int) -> Tuple[Tensor, Tensor]:
        """Keys and values in columns [sequences, kv_heads, columns, head_dim]."""
        room, columns = self.storage.rooms(self.sequences)[layer], self.layer_columns(layer)
        pair = [tensor[:, :columns] for tensor in (room.keys, room.values)]
        if self.missing is not None:
            index = self._places()[:, :, None, None].expand(-1, -1, *pair[0].shape[2:])
            pair = [tensor.gather(1, index) for tensor in pair]
        return pair[0].transpose(1, 2), pair[1].transpose(1, 2)


class HoneCacheLayer(CacheLayerMixin):
    """One layer of a HoneCache, as transformers asks for it."""

    is_compileable = False
    is_sliding = False
    is_initialized = True
    is_croppable = True

    def __init__(self, contents: Contents, index: int) -> None:
        self._contents, self._index = contents, index

    @property
    def keys(self) -> Tensor:
        return self._contents.seen(self._index)[0]

    @property
    def values(self) -> Tensor:
        return self._contents.seen(self._index)[1]

    def lazy_initialization(self, *_: Any) -> None:
        """There is nothing to do."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> Tuple[Tensor, Tensor]:
        return self._contents.update(self._index, key_states, value_states)

    def get_mask_sizes(self, query_length: Any) -> Tuple[int, int]:
        """Older versions of transformers give positions in place of their number."""
        count = query_length.shape[0] if isinstance(query_length, Tensor) else query_length
        return self.get_seq_length() + count, 0

    def get_seq_length(self) -> int:
        return self._contents.layer_columns(self._index)

    def get_max_length(self) -> int:
        """It grows."""
        return -1

    get_max_cache_shape = get_max_length  # as it was called before transformers 5.16

    @property
    def batch_size(self) -> int:
        return self._contents.sequences

    max_batch_size = batch_size


class HoneCache(Cache):
    """past_key_values of an accelerated model: generate() makes one by itself. It grows where it has to."""

    def __init__(self, contents: Contents, layers: int) -> None:
        super().__init__(layers=[HoneCacheLayer(contents, index) for index in range(layers)])
        self.contents = contents

    def reorder_cache(self, beam_idx: Tensor) -> None:
        self.contents.select(beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        count = self.contents.sequences
        self.contents.select(torch.arange(count, device=self.contents.lengths.device).repeat_interleave(repeats))

    def batch_select_indices(self, indices: Tensor) -> None:
        self.contents.select(indices)

    def crop(self, tokens_to_remove: Optional[int] = None, *, max_length: int = 0) -> None:
        """To a length, or, by a negative number, by so many tokens; 0 is nothing to do, as transformers has it since 5.16."""
        wanted = max_length if tokens_to_remove is None else tokens_to_remove
        if wanted:
            self.contents.crop(wanted)

    def reset(self) -> None:
        self.contents.clear()

"""Runs an accelerated model: decides whether a call has kernels, prompts and single tokens through the layers, and the decode
step from a graph. What it does not take, transformers' own code runs."""

from __future__ import annotations

import warnings
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import torch
from torch import Tensor, nn

from ..errors import HoneWarning
from . import layers
from .anatomy import Anatomy, Family, check_tensors, head_of
from .cache import Contents, HoneCache
from .graphs import Captured
from .layers import Step
from .padding import Padding, is_as_before, of_prompt
from .storage import Scratch, Storage
from .watching import Watch
from .weights import Product, Unsupported, product_of

DEVICES: Tuple[str, ...] = ("cuda",)
_FEWEST_KEYS = 1024  # of the graphs of a batch: one for up to so many, and one for each doubling
# Arguments of a forward pass that mean nothing to the layers, by the values that do.
_IDLE: Dict[str, Tuple[Any, ...]] = {
    "return_dict": (None, True, False),
    "output_attentions": (None, False),
    "output_hidden_states": (None, False),
    "is_causal": (None, True),
    "output_router_logits": (None, False),
}
_IGNORED = ("cache_position", "num_items_in_batch", "logits_to_keep")


class Call(NamedTuple):
    """A forward pass that has kernels."""

    tokens: Optional[Tensor]  # ids [sequences, tokens], or None
    embedded: Optional[Tensor]  # [sequences, tokens, hidden]
    contents: Optional[Contents]  # the cache that it continues, or None
    uses_cache: bool
    padding: Padding  # of a prompt

    @property
    def shape(self) -> Tuple[int, int]:
        found = self.tokens if self.embedded is None else self.embedded
        assert found is not None
        return found.shape[0], found.shape[1]


class Runner:
    """Of one model. Not for several threads at once, as the model itself."""

    def __init__(self, base: nn.Module, model: nn.Module, family: Family, max_batch: int, max_tokens: int) -> None:
        """Raises Unsupported."""
        self.family, self.max_batch, self.max_tokens = family, max_batch, max_tokens
        self.generation_parameters: Optional[Tuple[Any, List[Any], Dict[str, Any]]] = None  # what a config said, classes.py
        self._said: Set[str] = set()
        self._why_not = ""  # the model cannot be run, as it is now
        self._idle: List[Storage] = []
        self._kept: Set[Storage] = set()  # what graphs may be captured in
        self.read(base, model)

    def read(self, base: nn.Module, model: nn.Module) -> None:
        """Learns what the model is made of now, and forgets all graphs."""
        check_tensors(base, DEVICES)
        self._idle.clear()
        self._kept.clear()
        head = head_of(model, self.family)
        with torch.no_grad(), torch.inference_mode(False):
            self.anatomy: Anatomy = self.family.read(base)
            self._head: Optional[Product] = None if head is None else product_of(head)
        self._cap = float(getattr(base.config, "final_logit_softcapping", None) or 0.0) if head is not None else 0.0
        self._watch = Watch(base, head)
        self._why_not = ""

    def say(self, what: str, happens: str = "transformers' own code runs in place of Hone's") -> None:
        """Once for each reason."""
        if what not in self._said:
            self._said.add(what)
            warnings.warn(f"hone.accelerate: {what}: {happens}", HoneWarning, stacklevel=6)

    @property
    def has_head(self) -> bool:
        return self._head is not None

    # Memory.

    def lend(self, sequences: int, tokens: int, kept: bool) -> Storage:
        """Room for so many; `kept`: of at least the usual size, and taken back for the next generation."""
        if not kept:
            return Storage(self.anatomy, sequences, tokens)
        tokens = max(tokens, self.max_tokens)
        for storage in self._idle:
            if storage.sequences >= sequences and storage.tokens >= tokens:
                self._idle.remove(storage)
                return storage
        for storage in self._idle:  # too small: their memory is better used
            self._kept.remove(storage)
        self._idle.clear()
        made = Storage(self.anatomy, sequences, tokens)
        self._kept.add(made)
        return made

    def take_back(self, storage: Storage) -> None:
        if storage in self._kept:
            self._idle.append(storage)

    def keeps(self, storage: Storage) -> bool:
        return storage in self._kept

    def cache_for(self, sequences: int, tokens: int) -> Optional[HoneCache]:
        """A cache for a generation of so many sequences and tokens; None: transformers' own has to do."""
        if self.why_not():
            return None
        kept = sequences <= self.max_batch and tokens <= self.max_tokens
        if not kept:
            self.say(
                f"a generation of {sequences} sequences of up to {tokens} tokens is larger than max_batch="
                f"{self.max_batch} and max_tokens={self.max_tokens}",
                "it runs without graphs, which is slower; accelerate the model with more",
            )
        return self._cache(sequences, tokens, kept)

    def _cache(self, sequences: int, tokens: int, kept: bool) -> HoneCache:
        return HoneCache(Contents(self, sequences, tokens, kept), len(self.anatomy.layers))

    # Deciding.

    def why_not(self) -> str:
        """Why no call has kernels at present; "": some have."""
        return self._why_not

    def look_again(self, base: nn.Module, model: nn.Module) -> None:
        """After a look at the model, which may have been moved, quantized or changed."""
        if not self._watch.moved():
            return
        try:
            self.read(base, model)
        except Unsupported as error:
            self._why_not = str(error)
            self._watch = Watch(base, None)

    def accepts(
        self, base: nn.Module, model: nn.Module, given: Dict[str, Any], looks: bool = True
    ) -> Optional[Call]:
        """A forward pass of the model without its head; None: transformers runs it. `looks`: whether to look at the model
        first, which a decode step leaves until it is launched."""
        past = given.get("past_key_values")
        known = False
        if isinstance(past, HoneCache):  # generate() may have looked, just before it made the cache
            known, past.contents.looked = past.contents.looked, False
        if looks and not known:
            self.look_again(base, model)
        reason = self._refusal(base, given, looks)
        if reason:
            self.say(reason)
        if reason is None or reason:
            return None
        return self._call(base, given)

    def _refusal(self, base: nn.Module, given: Dict[str, Any], looks: bool) -> Optional[str]:
        """Why transformers runs a call; None: because it was asked for what only that has; "": it does not."""
        if self._why_not:
            return self._why_not
        if looks and self._watch.hooked():
            return "modules have hooks, which would see nothing"
        if looks and self._watch.overridden():
            return "modules have a forward of their own, which would not be called"
        if torch.is_autocast_enabled():
            return "torch.autocast is on, in which kernels of one dtype have no place"
        if torch.is_grad_enabled() and self._wants_gradient(base, given):
            return "a gradient is wanted, which the layers' kernels do not have (call it under torch.no_grad())"
        if base.training and self.anatomy.dropout > 0:
            return "the model is being trained with dropout"
        for name, value in given.items():
            if name in _IDLE and value not in _IDLE[name]:
                return None
            if name not in _IDLE and name not in _IGNORED and name not in _KNOWN and value is not None:
                return None
        config: Any = base.config
        asked = given.get("output_attentions") is None and config.output_attentions
        asked = asked or (given.get("output_hidden_states") is None and config.output_hidden_states)
        asked = asked or (given.get("output_router_logits") is None and getattr(config, "output_router_logits", False))
        return None if asked else ""

    @staticmethod
    def _wants_gradient(base: nn.Module, given: Dict[str, Any]) -> bool:
        embedded = given.get("inputs_embeds")
        if embedded is not None and embedded.requires_grad:
            return True
        return any(parameter.requires_grad for parameter in base.parameters())

    def _call(self, base: nn.Module, given: Dict[str, Any]) -> Optional[Call]:
        ids, embedded = given.get("input_ids"), given.get("inputs_embeds")
        past, mask, positions = (given.get(name) for name in ("past_key_values", "attention_mask", "position_ids"))
        if (ids is None) == (embedded is None) or not self._fits(ids, embedded):
            return None
        if past is not None and not isinstance(past, HoneCache):
            return None
        first: Any = ids if embedded is None else embedded
        batch, tokens = first.shape[:2]
        contents = None if past is None else past.contents
        uses_cache = given.get("use_cache")
        uses_cache = bool(getattr(base.config, "use_cache", True) if uses_cache is None else uses_cache)
        if contents is not None and not self._continues(contents, batch):
            return None
        columns = tokens + (contents.columns if contents is not None else 0)
        if not self._knows_positions(columns):
            return None
        padding: Optional[Padding] = Padding()
        if contents is not None and contents.columns:
            if contents.unfinished or not is_as_before(mask, positions, tokens, contents):
                self._refuse_mask(mask)
                return None
        else:
            padding = of_prompt(mask, positions, tokens)
            windows = any(layer.window for layer in self.anatomy.layers)
            if padding is None or (padding.before and windows and (uses_cache or contents is not None)):
                self._refuse_mask(mask)
                return None
        if contents is not None:
            contents.trusted_mask = mask
            if positions is contents.step_positions:
                contents.trusted_positions = contents.source_positions
        assert padding is not None
        return Call(ids, embedded, contents, uses_cache, padding)

    def _continues(self, contents: Contents, batch: int) -> bool:
        """Whether a cache is one of this model as it is now, and of so many sequences."""
        keys = contents.storage.rooms(batch)[0].keys if contents.sequences == batch else None
        return (
            keys is not None and contents.owner is self and keys.dtype == self.anatomy.dtype
            and keys.device == self.anatomy.device and len(contents.storage.rooms(batch)) == len(self.anatomy.layers)
        )  # fmt: skip

    def _refuse_mask(self, mask: Any) -> None:
        if mask is not None:
            self.say("a mask, or positions beside it, are no padding on one side, which is all that kernels take")

    def _fits(self, ids: Optional[Tensor], embedded: Optional[Tensor]) -> bool:
        device = self.anatomy.device
        if embedded is None:
            assert ids is not None
            return ids.dim() == 2 and ids.numel() > 0 and ids.device == device and ids.dtype in (torch.int32, torch.int64)
        return (
            embedded.dim() == 3 and embedded.numel() > 0 and embedded.device == device
            and embedded.dtype == self.anatomy.dtype
        )  # fmt: skip

    def _knows_positions(self, columns: int) -> bool:
        """Whether tables of positions reach so far."""
        if self.anatomy.positions is not None and columns > len(self.anatomy.positions):
            return False
        return self.anatomy.rotary is None or not self.anatomy.rotary.most or columns <= self.anatomy.rotary.most

    # Running.

    def hidden(self, call: Call) -> Tuple[Tensor, Optional[HoneCache]]:
        """The last hidden states [sequences, tokens, hidden], and the cache where one had to be made."""
        with torch.no_grad():
            return self._hidden(call)

    def last_logits(self, call: Call) -> Tuple[Tensor, Optional[HoneCache]]:
        """Logits [sequences, 1, vocabulary] of each sequence's last column, and the cache where one had to be made."""
        with torch.no_grad():
            x, cache = self._hidden(call, only_last=True)
            return self._logits(x), cache

    def _hidden(self, call: Call, only_last: bool = False) -> Tuple[Tensor, Optional[HoneCache]]:
        batch, tokens = call.shape
        cache, contents = None, call.contents
        if contents is None and call.uses_cache:
            cache = self._cache(batch, tokens, False)
            contents = cache.contents
        if contents is None:
            memory: Any = Scratch(self.anatomy, batch, tokens)
            lengths = memory.lengths
            lengths.fill_(tokens)
            begin = 0
        else:
            begin = contents.columns
            contents.make_room(batch, begin + tokens)
            memory, lengths = contents.storage, contents.lengths
            if begin:
                lengths.add_(tokens)
            else:
                lengths.fill_(tokens)
        missing, before = call.padding
        left = missing is not None and not before
        if missing is not None and left:
            lengths.sub_(missing)
        step = Step(lengths, begin + tokens, begin == 0 and not left, memory.cos, memory.sin, only_last)
        x = self._embed(call, lengths)
        x = layers.run(self.anatomy, x, memory.rooms(batch), step)
        if contents is not None:
            contents.columns = begin + tokens
            if missing is not None:
                contents.missing, contents.padded_from = missing, before
                if before:
                    lengths.sub_(missing)
        return x, cache

    def _embed(self, call: Call, lengths: Tensor) -> Tensor:
        if call.embedded is None:
            assert call.tokens is not None
            return layers.embedded(self.anatomy, call.tokens, lengths)
        return layers.with_positions(self.anatomy, call.embedded, lengths)

    def decodes(self, call: Optional[Call]) -> bool:
        """Whether a call is a decode step that a graph may run, with the head."""
        if call is None or call.contents is None or self._head is None or call.embedded is not None:
            return False
        contents = call.contents
        batch, tokens = call.shape
        return (
            tokens == 1 and contents.columns > 0 and batch <= self.max_batch and contents.columns < self.max_tokens
        )

    def decode(self, call: Call) -> Tensor:
        """Logits [sequences, 1, vocabulary] of a step of one token a sequence."""
        with torch.no_grad():
            return self._decode(call)

    def _decode(self, call: Call) -> Tensor:
        contents, ids = call.contents, call.tokens
        assert contents is not None and ids is not None
        contents.make_room(contents.sequences, contents.columns + 1, kept=True)
        storage, batch = contents.storage, contents.sequences
        most = _FEWEST_KEYS
        while most <= contents.columns:
            most *= 2
        key = (batch, min(most, storage.tokens))
        graph = storage.graphs.get(key)
        if graph is None:
            graph = storage.graphs[key] = self._captured(storage, ids, key[1])
        graph.ids.copy_(ids)
        logits = graph.replay()
        contents.columns += 1
        return logits.clone()

    def take_back_step(self, contents: Contents) -> None:
        """Forgets the last decode step."""
        contents.columns -= 1
        contents.lengths.sub_(1)

    def _captured(self, storage: Storage, ids: Tensor, kv_len: int) -> Any:
        batch = ids.shape[0]
        rooms, lengths = storage.rooms(batch), storage.lengths[:batch]
        with torch.inference_mode(False):
            static = ids.clone()

            def step() -> Tensor:
                lengths.add_(1)
                of_step = Step(lengths, kv_len, False, storage.cos, storage.sin)
                x = layers.run(self.anatomy, layers.embedded(self.anatomy, static, lengths), rooms, of_step)
                return self._logits(x)

            with torch.no_grad():
                before = lengths.clone()
                step()  # prepares what a capture could not
                lengths.copy_(before)
                graph: Any = Captured(step, storage.pool)
                graph.ids = static
        return graph

    def _logits(self, x: Tensor) -> Tensor:
        assert self._head is not None
        logits = self._head(x)
        return torch.tanh(logits / self._cap) * self._cap if self._cap else logits

    def changed(self) -> bool:
        """Whether the model is not what a step that was just launched took it for."""
        return self._watch.moved() or self._watch.hooked() or self._watch.overridden()


_KNOWN = ("input_ids", "inputs_embeds", "past_key_values", "attention_mask", "position_ids", "use_cache")

"""The classes that accelerated models have: subclasses of their own, by the same name, whose forward asks the runner first.

A model's class is changed, not the model: its parameters, buffers, hooks and names stay. Copies and pickles of it are of the
class that it had before.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Dict, Optional, Tuple

import torch
from torch import nn
from transformers.modeling_outputs import (
    BaseModelOutputWithPast,
    BaseModelOutputWithPastAndCrossAttentions,
    CausalLMOutputWithCrossAttentions,
    CausalLMOutputWithPast,
    MoeCausalLMOutputWithPast,
    MoeModelOutputWithPast,
)

from .cache import HoneCache
from .generating import defer_stops, members_of, standing_for
from .runner import Runner

# What they return, where it is not what most do.
_BASE_OUTPUTS = {
    "GPT2Model": BaseModelOutputWithPastAndCrossAttentions,
    "MixtralModel": MoeModelOutputWithPast,
    "Qwen3MoeModel": MoeModelOutputWithPast,
}
_MODEL_OUTPUTS = {
    "GPT2LMHeadModel": CausalLMOutputWithCrossAttentions,
    "MixtralForCausalLM": MoeCausalLMOutputWithPast,
    "Qwen3MoeForCausalLM": MoeCausalLMOutputWithPast,
}
# Runner, and the model that the module belongs to, by the modules whose class was changed.
_RUNNERS: "weakref.WeakKeyDictionary[nn.Module, Tuple[Runner, Any]]" = weakref.WeakKeyDictionary()


def runner_of(module: nn.Module) -> Optional[Runner]:
    found = _RUNNERS.get(module)
    return None if found is None else found[0]


def attach(runner: Runner, base: nn.Module, model: nn.Module) -> None:
    """From now on base, and model, which may be the same or have base within, run what the runner takes."""
    _RUNNERS[base] = (runner, weakref.ref(model))
    old: Any = type(base)
    base.__class__ = _base_class(old)
    if model is not base:
        _RUNNERS[model] = (runner, weakref.ref(base))
        old = type(model)
        model.__class__ = _model_class(old)
        defer_stops()


def detach(module: nn.Module) -> None:
    """Gives it the class back that it had."""
    _RUNNERS.pop(module, None)
    accelerated: Any = type(module)
    module.__class__ = accelerated.hone_original


def partner_of(module: nn.Module) -> nn.Module:
    """Of a base the model that it was accelerated in, of that the base."""
    found = _RUNNERS[module][1]()
    return module if found is None else found


class _Same:
    """What both kinds of classes have."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        reduced: Any = super().__reduce_ex__(protocol)
        _, _, *state = reduced
        return (_new_original, (type(self).hone_original,), *state)  # type: ignore[attr-defined]


def _new_original(cls: Any) -> Any:
    return cls.__new__(cls)


def _made(old: Any, members: Dict[str, Any]) -> Any:
    names = {name: getattr(old, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(old.__name__, (_Same, old), {**names, "hone_original": old, **members})


@functools.lru_cache(maxsize=None)
def _base_class(old: Any) -> Any:
    original = old.forward
    output_class: Any = _BASE_OUTPUTS.get(old.__name__, BaseModelOutputWithPast)

    @standing_for(original)
    def forward(self: Any, input_ids: Any = None, *arguments: Any, **named: Any) -> Any:
        if arguments or torch.compiler.is_compiling():
            return original(self, input_ids, *arguments, **named)
        runner = runner_of(self)
        if runner is None:
            return original(self, input_ids, **named)
        call = runner.accepts(self, partner_of(self), {"input_ids": input_ids, **named})
        if call is None:
            return original(self, input_ids=input_ids, **named)
        hidden, cache = runner.hidden(call)
        past = named.get("past_key_values") if cache is None else cache
        return _returned(self, output_class(last_hidden_state=hidden, past_key_values=past), named)

    return _made(old, {"forward": forward})


@functools.lru_cache(maxsize=None)
def _model_class(old: Any) -> Any:
    original = old.forward
    output_class: Any = _MODEL_OUTPUTS.get(old.__name__, CausalLMOutputWithPast)

    @standing_for(original)
    def forward(self: Any, input_ids: Any = None, *arguments: Any, **named: Any) -> Any:
        if torch.compiler.is_compiling():
            return original(self, input_ids, *arguments, **named)
        found = None if arguments else _last_logits(self, input_ids, named)
        if found is None:
            return original(self, input_ids, *arguments, **named)
        return _returned(self, output_class(logits=found[0], past_key_values=found[1]), named)

    members: Dict[str, Any] = {"forward": forward}
    if hasattr(old, "generate"):
        members.update(members_of(old, runner_of, partner_of))
    return _made(old, members)


def _last_logits(model: Any, input_ids: Any, named: Dict[str, Any]) -> Optional[Tuple[Any, Any]]:
    """Logits of the last tokens, where no others are wanted, and the cache; None: others are, or there are no kernels."""
    runner = runner_of(model)
    if runner is None or not runner.has_head or named.get("labels") is not None:
        return None
    given = {"input_ids": input_ids, **named}
    given.pop("labels", None)
    past, base, keep = named.get("past_key_values"), partner_of(model), named.get("logits_to_keep")
    if isinstance(past, HoneCache) and input_ids is not None and input_ids.shape[-1] == 1 and _keeps_last(keep):
        call = runner.accepts(base, model, given, looks=False)
        if call is None or not runner.decodes(call):
            return None
        logits = runner.decode(call)
        if not runner.changed():  # which is seen while the GPU works
            return logits, past
        runner.take_back_step(past.contents)
        return None
    if not _is_one(keep):
        return None
    call = runner.accepts(base, model, given)
    if call is None:
        return None
    logits, cache = runner.last_logits(call)
    return logits, past if cache is None else cache


def _returned(module: Any, output: Any, named: Dict[str, Any]) -> Any:
    """As the caller, or the config, wants it."""
    wanted = named.get("return_dict")
    wanted = getattr(module.config, "return_dict", True) if wanted is None else wanted
    return output if wanted else output.to_tuple()


def _keeps_last(wanted: Any) -> bool:
    """Of a single token: all are as good as the last."""
    return wanted is None or _is_one(wanted) or (isinstance(wanted, int) and wanted == 0)


def _is_one(wanted: Any) -> bool:
    return isinstance(wanted, int) and wanted == 1

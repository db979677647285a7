"""The classes that accelerated models have: subclasses of their own, by the same name, whose forward asks the runner first.

A model's class is changed, not the model: its parameters, buffers, hooks and names stay. Copies and pickles of it are of the
class that it had before.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from typing import Any, Dict, Iterator, Optional, Tuple

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


def defer_stops() -> None:
    """Lets generate() ask one step late whether it has to stop, where the cache is ours: the next step is launched meanwhile,
    and the cache forgets it if it was one too many. transformers does so from 5.17 on, but not on CUDA devices."""
    from transformers.generation import utils

    check: Any = getattr(utils, "DeferredStopCheck", None)
    if check is None or hasattr(check, "hone_original"):
        return
    supported = check.hone_original = check.is_supported

    def is_supported(device: Any, cache: Any, *others: Any, **named: Any) -> bool:
        ours = isinstance(cache, HoneCache) and device.type == "cuda" and not named.get("is_assistant")
        return ours or supported(device, cache, *others, **named)

    check.is_supported = staticmethod(is_supported)


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

    @functools.wraps(original)
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

    @functools.wraps(original)
    def forward(self: Any, input_ids: Any = None, *arguments: Any, **named: Any) -> Any:
        if torch.compiler.is_compiling():
            return original(self, input_ids, *arguments, **named)
        logits = None if arguments else _decoded(self, input_ids, named)
        if logits is None:
            return original(self, input_ids, *arguments, **named)
        return _returned(self, output_class(logits=logits, past_key_values=named["past_key_values"]), named)

    members: Dict[str, Any] = {"forward": forward}
    if hasattr(old, "generate"):
        members.update(_generating(old))
    return _made(old, members)


def _decoded(model: Any, input_ids: Any, named: Dict[str, Any]) -> Any:
    """Logits of a decode step; None: it is none, or none that a graph may run."""
    past = named.get("past_key_values")
    if not isinstance(past, HoneCache) or input_ids is None or input_ids.shape[-1] != 1:
        return None
    if named.get("labels") is not None or not _keeps_last(named.get("logits_to_keep")):
        return None
    runner = runner_of(model)
    if runner is None:
        return None
    base = partner_of(model)
    given = {"input_ids": input_ids, **named}
    given.pop("labels", None)
    call = runner.accepts(base, model, given, looks=False)
    if call is None or not runner.decodes(call):
        return None
    logits = runner.decode(call)
    if runner.changed():  # which is seen while the GPU works
        runner.take_back_step(past.contents)
        return None
    return logits


def _returned(module: Any, output: Any, named: Dict[str, Any]) -> Any:
    """As the caller, or the config, wants it."""
    wanted = named.get("return_dict")
    wanted = getattr(module.config, "return_dict", True) if wanted is None else wanted
    return output if wanted else output.to_tuple()


def _keeps_last(wanted: Any) -> bool:
    return wanted is None or (isinstance(wanted, int) and wanted in (0, 1))


@contextlib.contextmanager
def _remembered_parameters(runner: Runner, config: Any) -> Iterator[None]:
    """generate() asks the config whether it says how to generate, which makes a whole config of its class for the answer: a
    millisecond or more before the first launch. While the config says what it said before, the answer is the same."""
    name = "_get_generation_parameters"
    known = runner.generation_parameters
    try:
        said = [getattr(config, key, None) for key in _generation_keys()]
        if known is None or known[0] is not config or known[1] != said:
            known = runner.generation_parameters = (config, said, getattr(config, name)())
    except AttributeError:  # of a version that asks something else
        yield
        return
    answer = known[2]
    vars(config)[name] = lambda: dict(answer)
    try:
        yield
    finally:
        del vars(config)[name]


@functools.lru_cache(maxsize=None)
def _generation_keys() -> Tuple[str, ...]:
    from transformers import GenerationConfig

    return tuple(GenerationConfig._get_default_generation_params())


# What steps of one token are given, where nothing is special.
_OF_STEPS = frozenset(
    ("next_sequence_length", "past_key_values", "attention_mask", "position_ids", "use_cache", "is_first_iteration", "logits_to_keep")
)  # fmt: skip


def _is_usual(old: Any) -> bool:
    """Whether steps are prepared as by all models, which the two functions below do with fewer launches."""
    from transformers import GenerationMixin

    names = ("prepare_inputs_for_generation", "_update_model_kwargs_for_generation")
    return all(getattr(old, name) is getattr(GenerationMixin, name) for name in names)


def _step_inputs(arguments: Tuple[Any, ...], named: Dict[str, Any], past: HoneCache) -> Optional[Dict[str, Any]]:
    """What prepare_inputs_for_generation() gives for a step of one token: parts of tensors, without copies. None: it is another
    call."""
    fits = len(arguments) == 1 and named.get("next_sequence_length") == 1 and past.contents.columns
    if not fits or named.get("is_first_iteration") or not _OF_STEPS.issuperset(named):
        return None
    made = {"input_ids": arguments[0][:, -1:], "past_key_values": past}
    positions = named.get("position_ids")
    if positions is not None:
        made["position_ids"] = positions[..., -1:]
    for name in ("attention_mask", "use_cache", "logits_to_keep"):
        if named.get(name) is not None:
            made[name] = named[name]
    return made


def _one_more(
    outputs: Any, model_kwargs: Dict[str, Any], others: Tuple[Any, ...], named: Dict[str, Any]
) -> Optional[Dict[str, Any]]:
    """What _update_model_kwargs_for_generation() does after a token of sequences without padding, whose masks and positions are
    known: longer parts of tensors that are there. None: it is another case."""
    past, positions = model_kwargs.get("past_key_values"), model_kwargs.get("position_ids")
    mask: Any = model_kwargs.get("attention_mask")
    if not isinstance(past, HoneCache) or outputs.get("past_key_values") is not past or others:
        return None
    contents = past.contents
    known = contents.missing is None and mask is not None and mask is contents.trusted_mask
    known = known and (positions is None or positions is contents.trusted_positions)
    if not known or named.get("num_new_tokens", 1) != 1 or named.get("is_encoder_decoder"):
        return None
    if any(name in model_kwargs for name in ("token_type_ids", "mm_token_type_ids")):
        return None
    for name, tensor in (("attention_mask", mask), ("position_ids", positions)):
        if tensor is not None and tuple(tensor.shape) != (contents.sequences, contents.columns):
            return None
    more = contents.columns + 1
    model_kwargs["attention_mask"] = contents.ones(mask.dtype)[:, :more]
    if positions is not None:
        model_kwargs["position_ids"] = contents.places(positions.dtype)[:, :more]
    return model_kwargs


def _generating(old: Any) -> Dict[str, Any]:
    """What generate() asks of a model: a cache, and what it hands on from step to step. These are not public; where a
    version of transformers has other ones, they are passed on as they are."""
    prepare_cache = old._prepare_cache_for_generation
    prepare_inputs = old.prepare_inputs_for_generation
    update = old._update_model_kwargs_for_generation

    @functools.wraps(prepare_cache)
    def _prepare_cache_for_generation(
        self: Any, generation_config: Any, model_kwargs: Any, generation_mode: Any, batch_size: Any,
        max_cache_length: Any, *others: Any, **named: Any,
    ) -> Any:  # fmt: skip
        runner = runner_of(self)
        wanted = (
            runner is not None
            and model_kwargs.get("past_key_values") is None
            and generation_config.use_cache is not False
            and generation_config.cache_implementation in (None, "dynamic", "dynamic_full")
        )
        if wanted:
            assert runner is not None
            sequences = batch_size * max(generation_config.num_beams or 1, generation_config.num_return_sequences or 1)
            runner.look_again(partner_of(self), self)
            cache = runner.cache_for(sequences, int(max_cache_length) + 1)
            if cache is not None:
                cache.contents.looked = True
                model_kwargs["past_key_values"] = cache
                return None
        return prepare_cache(
            self, generation_config, model_kwargs, generation_mode, batch_size, max_cache_length, *others, **named
        )

    usual = _is_usual(old)
    prepare_config: Any = getattr(old, "_prepare_generation_config", None)

    def _prepare_generation_config(self: Any, *arguments: Any, **named: Any) -> Any:
        runner = runner_of(self)
        if runner is None:
            return prepare_config(self, *arguments, **named)
        with _remembered_parameters(runner, self.config):
            return prepare_config(self, *arguments, **named)

    @functools.wraps(prepare_inputs)
    def prepare_inputs_for_generation(self: Any, *arguments: Any, **named: Any) -> Any:
        past = named.get("past_key_values")
        made = _step_inputs(arguments, named, past) if usual and isinstance(past, HoneCache) else None
        if made is None:
            made = prepare_inputs(self, *arguments, **named)
        if isinstance(past, HoneCache):
            past.contents.source_positions = named.get("position_ids")
            past.contents.step_positions = made.get("position_ids")
        return made

    @functools.wraps(update)
    def _update_model_kwargs_for_generation(
        self: Any, outputs: Any, model_kwargs: Any, *others: Any, **named: Any
    ) -> Any:
        mask, positions = model_kwargs.get("attention_mask"), model_kwargs.get("position_ids")
        made = _one_more(outputs, model_kwargs, others, named) if usual else None
        if made is None:
            made = update(self, outputs, model_kwargs, *others, **named)
        past = made.get("past_key_values")
        if isinstance(past, HoneCache):  # ones and the next positions were added
            contents = past.contents
            if mask is contents.trusted_mask:
                contents.trusted_mask = made.get("attention_mask")
            if positions is contents.trusted_positions:
                contents.trusted_positions = made.get("position_ids")
        return made

    made: Dict[str, Any] = {}
    if prepare_config is not None:
        made["_prepare_generation_config"] = functools.wraps(prepare_config)(_prepare_generation_config)
    return {
        **made,
        "_prepare_cache_for_generation": _prepare_cache_for_generation,
        "prepare_inputs_for_generation": prepare_inputs_for_generation,
        "_update_model_kwargs_for_generation": _update_model_kwargs_for_generation,
    }

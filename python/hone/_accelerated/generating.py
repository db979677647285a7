"""What generate() asks of an accelerated model: a cache, what it hands on from step to step, and how its config says to
generate. These functions of transformers are not public; where a version has other ones, they are passed on as they are."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from .cache import HoneCache
from .runner import Runner


def standing_for(original: Any) -> Callable[[Any], Any]:
    """As functools.wraps(), and its signature is known: generate() asks for several, and finding one costs more than a call
    of the function."""

    def decorate(function: Any) -> Any:
        functools.update_wrapper(function, original)
        function.__signature__ = inspect.signature(original)
        return function

    return decorate


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
_OF_STEPS = frozenset((
    "next_sequence_length", "past_key_values", "attention_mask", "position_ids", "use_cache", "is_first_iteration",
    "logits_to_keep",
))  # fmt: skip


def _is_usual(old: Any) -> bool:
    """Whether steps are prepared as by all models, which the two functions below do with fewer launches."""
    from transformers import GenerationMixin

    names = ("prepare_inputs_for_generation", "_update_model_kwargs_for_generation")
    return all(getattr(old, name) is getattr(GenerationMixin, name) for name in names)


def _step_inputs(arguments: Tuple[Any, ...], named: Dict[str, Any], past: HoneCache) -> Optional[Dict[str, Any]]:
    """What prepare_inputs_for_generation() gives for a step of one token: parts of tensors, without copies. None: it is
    another call."""
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
    """What _update_model_kwargs_for_generation() does after a token of sequences without padding, whose masks and positions
    are known: longer parts of tensors that are there. None: it is another case."""
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


def members_of(
    old: Any, runner_of: Callable[[Any], Optional[Runner]], partner_of: Callable[[Any], Any]
) -> Dict[str, Any]:
    """Functions of a class of models with a language head, in the place of those that `old` has. `runner_of` a model gives
    its runner, `partner_of` its base."""
    prepare_cache = old._prepare_cache_for_generation
    prepare_inputs = old.prepare_inputs_for_generation
    update = old._update_model_kwargs_for_generation

    @standing_for(prepare_cache)
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

    @standing_for(prepare_inputs)
    def prepare_inputs_for_generation(self: Any, *arguments: Any, **named: Any) -> Any:
        past = named.get("past_key_values")
        made = _step_inputs(arguments, named, past) if usual and isinstance(past, HoneCache) else None
        if made is None:
            made = prepare_inputs(self, *arguments, **named)
        if isinstance(past, HoneCache):
            past.contents.source_positions = named.get("position_ids")
            past.contents.step_positions = made.get("position_ids")
        return made

    @standing_for(update)
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
        made["_prepare_generation_config"] = standing_for(prepare_config)(_prepare_generation_config)
    return {
        **made,
        "_prepare_cache_for_generation": _prepare_cache_for_generation,
        "prepare_inputs_for_generation": prepare_inputs_for_generation,
        "_update_model_kwargs_for_generation": _update_model_kwargs_for_generation,
    }

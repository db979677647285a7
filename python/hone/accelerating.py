"""hone.accelerate(model): gives a model of transformers Hone's kernels, a cache for them, and a graph of its decode step.

    model = AutoModelForCausalLM.from_pretrained(name, dtype="bfloat16").to("cuda")
    print(hone.accelerate(model))
    model.generate(**inputs)                           # as before, faster

    hone.restore(model)                                # as it was
"""

from __future__ import annotations

import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import nn

from ._accelerated.weights import Experts, is_conv, separated
from ._nn.quantized import format_of, group_of
from ._operators.stored import BLOCK
from .quantization import replace_linear_with_quantized

_FORMATS = ("w4a16", "w8a16", "fp8")


class Report(NamedTuple):
    """What accelerate() did; print() shows it."""

    model: str  # class of the model
    replaced: Tuple[Tuple[str, str], ...]  # what, and what takes its place
    left: Tuple[Tuple[str, str], ...]  # what stays as it is, and why

    def __str__(self) -> str:
        lines = [f"hone.accelerate: {self.model}"]
        lines += [f"  {what} -> {by}" for what, by in self.replaced]
        lines += [f"  left: {what}: {why}" for what, why in self.left]
        return "\n".join(lines)


class _Before(NamedTuple):
    """What restore() needs."""

    attention: Optional[str]  # implementation
    swapped: Tuple[Tuple[nn.Module, Any], ...]  # norms and their classes, of models to be trained
    quantized: str  # format, or where codes come from; "": there are none of ours


_BEFORE: "weakref.WeakKeyDictionary[nn.Module, _Before]" = weakref.WeakKeyDictionary()


def accelerate(
    model: nn.Module, format: Optional[str] = None, *, max_batch: int = 8, max_tokens: int = 4096,
    group: Optional[int] = None, training: bool = False,
) -> Report:  # fmt: skip
    """Gives a model of transformers (Llama, Mistral, Mixtral, Qwen2, Qwen3, Qwen3-MoE, Gemma 2, Phi-3, GPT-2), on one CUDA
    device and of one dtype, Hone's kernels, and says what it replaced.

    Layers run as few launches: the norms with the products behind them, queries, keys and values as one product, rotation
    with the append to the cache, attention, both halves of the feed-forward network, with the residual. generate() gets a
    cache of ours, and its steps of one token a sequence come from a CUDA graph for up to max_batch sequences of max_tokens
    tokens; memory for so many tokens is taken for as many sequences as a generation has. Longer or more run without graphs.

    Layers that transformers' quantizers made of GPTQ (4 bits, 8 symmetric ones), AWQ and FP8 checkpoints become
    hone.nn.QuantizedLinear, one by one, which restore() cannot undo; their packages' backend has to be "torch", without
    desc_act.

    format: None keeps the weights as they are; "w4a16", "w8a16" and "fp8" quantize those of the layers, not of the head nor of
    experts, in groups of `group` columns (None: as hone.nn.QuantizedLinear), which restore() cannot undo.
    training=True: instead, norms and rotary embeddings get Hone's kernels, with gradients, and nothing else changes.

    Calls that have no kernels run as before, on transformers' own code, with attention by Hone where there is no mask:
    gradients, hooks within the model, autocast, masks that are no padding on one side, a cache of another class, hidden states
    or attentions wanted; a warning says why, once. A model that was moved, cast or changed is read again.

    The weights of one product are put one behind another in memory, as views of which they stay the parameters that they were.
    Copies of the model are not accelerated. Raises ValueError, before anything is changed, for models that are not known, are
    not on one CUDA device or of several dtypes, and for formats that do not fit; ImportError without transformers.
    """
    from ._accelerated import classes
    from ._accelerated.anatomy import check_tensors, family_of
    from ._accelerated import runner as running
    from .hub.interface import register_attention

    _check_sizes(max_batch, max_tokens)
    base = _base_of(model)
    if classes.runner_of(base) is not None or model in _BEFORE:
        raise ValueError("model: it is accelerated already; hone.restore(model) undoes that")
    if training:
        return _for_training(model, format)
    family = family_of(base)
    _check_modules(base)
    swaps = _adopted(base, family, format)
    check_tensors(base, running.DEVICES)
    _check_format(base, format)
    dry = running.Runner(base, model, family, max_batch, max_tokens)
    packed = format or ("codes of its quantizer" if swaps else "")
    if format is not None:
        swaps = _quantized(base, format, _group_for(base, dry.anatomy, format, group))
        dry.read(base, model)
    before = _Before(getattr(base.config, "_attn_implementation", None), (), packed)
    register_attention()
    if before.attention != "eager":  # which alone gives the weights of attention
        model.set_attn_implementation("hone")
    classes.attach(dry, base, model)
    _BEFORE[model] = before
    return _report(model, dry, swaps, format)


def restore(model: nn.Module) -> None:
    """Undoes accelerate(): classes, attention, and weights in memory of their own. Raises ValueError for a model that is not
    accelerated, and for one whose weights were quantized: load that anew."""
    from ._accelerated import classes

    before = _BEFORE.get(model)
    if before is None:
        raise ValueError("model: it is not accelerated; allowed is what hone.accelerate() was called with")
    if before.quantized:
        raise ValueError(
            f"model: its weights were quantized to {before.quantized}, and the others are gone; load it again"
            if before.quantized in _FORMATS
            else "model: its layers are Hone's in place of its quantizer's, which are gone; load it again"
        )
    del _BEFORE[model]
    for module, old in before.swapped:
        module.__class__ = old
    base = _base_of(model)
    if classes.runner_of(base) is None:
        return
    for module in [base] if model is base else [base, model]:
        classes.detach(module)
    if before.attention not in (None, "eager"):
        model.set_attn_implementation(before.attention)
    for module in base.modules():
        for parameter in module._parameters.values():
            if parameter is not None:
                separated(parameter)


def _check_sizes(max_batch: int, max_tokens: int) -> None:
    for name, value in (("max_batch", max_batch), ("max_tokens", max_tokens)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name}: {value!r}; allowed are whole numbers from 1")


def _base_of(model: nn.Module) -> Any:
    """The model without its head."""
    found = getattr(model, getattr(model, "base_model_prefix", "") or "", None)
    if isinstance(found, nn.Module):
        return found
    return model


def _check_modules(base: nn.Module) -> None:
    """Raises ValueError for what moves weights while the model runs, or stands in the place of its code."""
    for name, module in base.named_modules():
        if hasattr(module, "_hf_hook"):
            raise ValueError(
                f"model: {name or 'it'} is moved between devices by the package accelerate; allowed is a model that is on one "
                f"device as a whole"
            )
        if "forward" in vars(module):
            raise ValueError(f"model: {name or 'it'} has a forward of its own; allowed are modules with that of their class")


def _adopted(base: nn.Module, family: Any, format: Optional[str]) -> List[Any]:
    """Takes over the layers of a quantizer of transformers; the model is as before where that, or the rest of it, has no
    kernels."""
    from ._accelerated import runner as running
    from ._accelerated.anatomy import check_tensors
    from ._accelerated.packed import adopt, packed_classes

    found = packed_classes(base)
    if found and format is not None:
        kinds = ", ".join(found)
        raise ValueError(f"format: {format!r} of a model whose layers are {kinds}; allowed is None: they have codes")

    def check() -> None:
        check_tensors(base, running.DEVICES)
        with torch.no_grad(), torch.inference_mode(False):
            family.read(base)

    return adopt(base, check)


def _check_format(base: nn.Module, format: Optional[str]) -> None:
    if format is None:
        return
    if format not in _FORMATS:
        raise ValueError(f"format: {format!r}; allowed are {', '.join(map(repr, _FORMATS))} and None")
    dtype = next(p.dtype for p in base.parameters() if p.is_floating_point())
    if dtype == torch.float32:
        raise ValueError(f"format: {format!r} of a model of {dtype}; allowed are models of bfloat16 and float16")


def _group_for(base: nn.Module, anatomy: Any, format: str, group: Optional[int]) -> int:
    """One for all layers. Raises ValueError where weights cannot stand one behind another, or the group does not fit."""
    unit = BLOCK if format in ("w4a16", "w8a16") else (group or 1)
    parts = [m for m in base.modules() if hasattr(m, "k_proj") or isinstance(getattr(m, "gate_up_proj", None), nn.Module)]
    for module in parts:
        halves = getattr(module, "gate_up_proj", None)
        layers = [getattr(module, name) for name in ("q_proj", "k_proj", "v_proj")] if halves is None else [halves]
        for layer in layers:
            rows = layer.out_features // (1 if halves is None else 2)
            if rows % unit:
                raise ValueError(
                    f"format: {format!r}: {rows} rows of a weight stand beside others; allowed are multiples of {unit}"
                )
    layers = [layer for layer in base.modules() if is_conv(layer) or type(layer) is nn.Linear]
    columns = {layer.nx if is_conv(layer) else layer.in_features for layer in layers}
    if group is None:
        return min((group_of(format, count, None) for count in columns), default=0)
    wrong = [count for count in columns if group and count % group]
    if wrong:
        raise ValueError(f"group: {group}; allowed are divisors of the columns of all weights, {wrong[0]} among them, and 0")
    return group


def _quantized(base: nn.Module, format: str, group: int) -> List[Any]:
    """Quantizes the layers' weights, not the head's."""
    for module in list(base.modules()):  # GPT-2's layers as linear ones first
        for name, child in list(module._modules.items()):
            if child is not None and is_conv(child):
                setattr(module, name, _linear_of(child))
    return replace_linear_with_quantized(base, format_of(format), group)


def _linear_of(conv: Any) -> nn.Linear:
    made = nn.Linear(conv.nx, conv.nf, device="meta")
    made.weight = nn.Parameter(conv.weight.detach().t().contiguous(), requires_grad=False)
    made.bias = nn.Parameter(conv.bias.detach(), requires_grad=False)
    return made.train(conv.training)


def _for_training(model: nn.Module, format: Optional[str]) -> Report:
    from ._accelerated.rotation import swap_rotations
    from .patching import patch

    if format is not None:
        raise ValueError(f"format: {format!r} with training=True; allowed is None: codes cannot be trained")
    classes = {module: type(module) for module in model.modules()}
    swaps = patch(model)
    modules = dict(model.named_modules())
    norms = [(modules[name], classes[modules[name]]) for name, _, _ in swaps]
    rotations = swap_rotations(model)
    _BEFORE[model] = _Before(None, (*norms, *rotations), "")
    counts: Dict[Tuple[str, str], int] = {}
    for module, old in (*norms, *rotations):
        key = (old.__name__, type(module).__name__)
        counts[key] = counts.get(key, 0) + 1
    replaced = tuple(
        (f"{count} {old}", f"{new}, {'its rotary embedding' if 'Attention' in old else 'trainable'}")
        for (old, new), count in counts.items()
    )
    left = (("linear layers and attention", "Hone has no gradients of them: PyTorch's functions run"),)
    return Report(type(model).__name__, replaced, left)


def _report(model: nn.Module, runner: Any, swaps: List[Any], format: Optional[str]) -> Report:
    anatomy = runner.anatomy
    count = len(anatomy.layers)
    layer = anatomy.layers[0]
    replaced = [
        (f"{count} layers' queries, keys and values", "one product each" + (" behind its norm" if anatomy.whole else "")),
        (
            f"{count} {'rotary embeddings and ' if anatomy.rotary else ''}appends to the cache",
            "hone.ops.rope_kv_append" + (", with the norms of heads" if layer.head_norms else ""),
        ),
        (f"{count} attentions", "hone.ops.attention_with_cache" + _options_of(anatomy)),
    ]
    mixtures = sum(isinstance(one.network, Experts) for one in anatomy.layers)
    if mixtures < count:
        how = "one operator each" + (", with norm and residual" if anatomy.whole else "")
        replaced.append((f"{count - mixtures} feed-forward networks", how))
    if mixtures:
        replaced.append((f"{mixtures} mixtures of experts", "a routing and two products of all experts each"))
    if not anatomy.whole:
        behind = sum(one is not None for layer in anatomy.layers for one in (layer.behind_attention, layer.behind_network))
        replaced.append((f"{2 * count + 1 + behind} norms", "norms, with the sum before them where there is one"))
    if swaps:
        kinds = sorted({old.__name__ for _, old, _ in swaps})
        replaced.append((f"{len(swaps)} layers of {', '.join(kinds)}", f"weights of {format or 'hone.nn.QuantizedLinear'}"))
    left: List[Tuple[str, str]] = []
    if runner.has_head:
        replaced.append(
            ("the cache of generate()", f"one of ours, up to {runner.max_batch} sequences of {runner.max_tokens} tokens")
        )
        replaced.append(("steps of one token", "a CUDA graph for each number of sequences, with the head"))
    else:
        left.append(("the head and generate()", f"{type(model).__name__} is not known as a language model"))
    if swaps and runner.has_head:
        left.append(("the language head", "it keeps its weights: codes would cost it the most"))
    if swaps and mixtures:
        left.append(("the experts", f"they keep their weights: there are no kernels of {format} for them"))
    return Report(type(model).__name__, tuple(replaced), tuple(left))


def _options_of(anatomy: Any) -> str:
    windows = sorted({layer.window for layer in anatomy.layers if layer.window})
    said = f", windows of {', '.join(map(str, windows))}" if windows else ""
    return said + (f", softcap {anatomy.softcap:g}" if anatomy.softcap else "")

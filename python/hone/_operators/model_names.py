"""The names of a model's operators, for models.py: what they do, and their sizes where a model has
several."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Iterator, List

from ..descriptions import Attention, FusedFfn, Linear, QuantizedFfn, QuantizedLinear, RopeKvAppend
from .description import MOST_DECODED

_SAME_IN_A_MODEL = ("group",)


def operator_names(descriptions: List[Any]) -> List[str]:
    short = [_short_name(description) for description in descriptions]
    return [
        name if short.count(name) == 1 else f"{name}_{_size(description)}"
        for name, description in zip(short, descriptions)
    ]


def _size(description: Any) -> str:
    """Its sizes but for those of a call, of all its kind, and what it does not have."""
    fields = (field for field in description.SIZES if field[:4] not in ("max_", "min_"))
    sizes = (getattr(description, field) for field in fields if field not in _SAME_IN_A_MODEL)
    return "_".join(str(size) for size in sizes if size)


def _short_name(description: Any) -> str:
    if isinstance(description, Attention):
        return _attention_name(description)
    if isinstance(description, RopeKvAppend):
        return _joined("rope_kv_append", description, "norm", "slots")
    if isinstance(description, (FusedFfn, QuantizedFfn)):
        return description.C_NAME
    if isinstance(description, (Linear, QuantizedLinear)):
        words = [description.C_NAME, description.activation if description.activation != "none" else ""]
        words += [option for option in ("norm", "bias", "residual") if getattr(description, option)]
        return "_".join(filter(None, words))
    return "_".join([description.FAMILY, *_options(description)])


def _options(description: Any) -> Iterator[str]:
    """What is not as it is where nothing is said; all operators of a model have one dtype."""
    for field in fields(description):
        value = getattr(description, field.name)
        if value == field.default or field.name in ("dtype", *description.SIZES):
            continue
        yield value if isinstance(value, str) else field.name if value else f"without_{field.name}"


def _attention_name(description: Attention) -> str:
    words = "attention" if description.max_q_len > MOST_DECODED else "attention_decode"
    words += f"_window_{description.window}" if description.window else ""
    return _joined(words, description, "softcap", "sinks", "lse", "lengths", "packed")


def _joined(name: str, description: Any, *options: str) -> str:
    """With what else it has, a cache in pages or codes at the end."""
    words = [name, *(option for option in options if getattr(description, option))]
    words += ["paged"] if description.page_size else []
    return "_".join(words + (["fp8"] if description.kv_dtype == "fp8" else []))

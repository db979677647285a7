"""Prepares operators, of which every description is known here."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Sequence, Type

from .. import descriptions
from ..runtime import runtime_of
from .attention import AttentionOperator
from .attention_append import AttentionAppendOperator
from .base import Operator
from .calls import KINDS as GENERATED
from .description import Description
from .rope_kv_append import RopeKvAppendOperator

# Prepared operators by their description.
KINDS: Dict[Type[Description], Type[Operator]] = {
    **GENERATED,
    descriptions.Attention: AttentionOperator,
    descriptions.AttentionAppend: AttentionAppendOperator,
    descriptions.RopeKvAppend: RopeKvAppendOperator,
}


def prepare_operator(description: Description, device: int, stacklevel: int) -> Operator:
    """One operator; `stacklevel` is for warnings, counted as in warnings.warn()."""
    runtime = runtime_of(device)
    try:
        return KINDS[type(description)](description, runtime)
    finally:
        runtime.give_warnings(stacklevel)


def prepare_operators(wanted: Sequence[Description], device: int, stacklevel: int) -> List[Operator]:
    """The same for several, each on a thread of its own: their images are compiled side by side. Raises what
    the first of them in this order raises."""
    runtime = runtime_of(device)

    def prepare(description: Description) -> Operator:
        return KINDS[type(description)](description, runtime)

    try:
        with ThreadPoolExecutor(max_workers=max(1, len(wanted))) as threads:
            return list(threads.map(prepare, wanted))
    finally:
        runtime.give_warnings(stacklevel)


def check_description(description: Any) -> None:
    """Raises TypeError for what describes no operator."""
    if type(description) not in KINDS:
        allowed = ", ".join(kind.__name__ for kind in KINDS)
        raise TypeError(
            f"description: a {type(description).__name__} describes no operator; allowed are {allowed}, and "
            f"for prepare() a model's name"
        )

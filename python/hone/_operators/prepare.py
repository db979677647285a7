"""Prepares one operator, of which every description is known here."""

from __future__ import annotations

from typing import Any, Dict, Type

from .. import descriptions
from ..runtime import runtime_of
from .attention import AttentionOperator
from .base import Operator
from .calls import KINDS as GENERATED
from .description import Description
from .rope_kv_append import RopeKvAppendOperator

# Prepared operators by their description.
KINDS: Dict[Type[Description], Type[Operator]] = {
    **GENERATED,
    descriptions.Attention: AttentionOperator,
    descriptions.RopeKvAppend: RopeKvAppendOperator,
}


def prepare_operator(description: Description, device: int, stacklevel: int) -> Operator:
    """One operator; `stacklevel` is for warnings, counted as in warnings.warn()."""
    runtime = runtime_of(device)
    try:
        return KINDS[type(description)](description, runtime)
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

"""Integers that callers give: an int, or what counts as one, as NumPy's do."""

from __future__ import annotations

import operator
from typing import Any, Optional


def integer(value: Any) -> Optional[int]:
    """None for what is no integer; a bool is none, either."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None

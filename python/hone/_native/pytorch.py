"""Which PyTorch the parts of the package need that are made for it."""

from __future__ import annotations

import importlib
import re
from typing import Any

OLDEST = (2, 4)  # has torch.library.register_fake and torch.nn.RMSNorm


def require(what: str) -> Any:
    """The module. Raises ImportError where there is none, or one that is too old for `what`."""
    oldest = ".".join(map(str, OLDEST))
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"{what} needs PyTorch, which is not installed here: version {oldest} or newer"
        ) from None
    found = re.match(r"(\d+)\.(\d+)", str(torch.__version__))
    if found and tuple(map(int, found.groups())) < OLDEST:
        raise ImportError(
            f"{what} needs PyTorch {oldest} or newer; version {torch.__version__} is installed here"
        )
    return torch

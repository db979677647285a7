"""Hone's attention as a plugin of SGLang: --attention-backend hone. docs/sglang.md says what it serves.

SGLang finds register() through the entry point that the wheel has. Importing this needs neither SGLang nor PyTorch.
"""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["register"]

NAME = "hone"
_log = logging.getLogger(__name__)


def register() -> None:
    """Makes --attention-backend hone known. Where this SGLang has another interface it says so in the log, and SGLang
    runs without it."""
    try:
        from sglang.srt import server_args
        from sglang.srt.layers.attention.attention_registry import register_attention_backend

        if NAME not in server_args.ATTENTION_BACKEND_CHOICES:
            server_args.add_attention_backend_choices([NAME])
        register_attention_backend(NAME)(_make)
    except (ImportError, AttributeError) as error:
        _log.warning("Hone leaves out attention: this SGLang has another interface, %s", error)


def _make(runner: Any) -> Any:
    from .backend import HoneAttnBackend

    return HoneAttnBackend(runner)

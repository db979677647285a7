"""Hone as a plugin of vLLM: attention, linear layers and norms. docs/vllm.md says what it serves and what it refuses.

    vllm serve MODEL --attention-backend CUSTOM        # Hone's attention over vLLM's paged KV cache
    vllm serve MODEL --quantization hone_w4a16         # a 16-bit checkpoint, quantized while it is loaded
    python -m hone.vllm check                          # beside vLLM's own kernels: errors and times

vLLM finds register() through the entry point that the wheel has and calls it in each of its processes. HONE_VLLM
chooses what is registered (settings.py). Importing this needs neither vLLM nor PyTorch.
"""

from __future__ import annotations

import importlib
import logging
from typing import Set

from .settings import attention_name, parts

__all__ = ["register"]

_log = logging.getLogger(__name__)
_MODULES = {
    "attention": "hone.vllm.backend_name",
    "linear": "hone.vllm.linear_kernels",
    "quantization": "hone.vllm.quantization",
    "norm": "hone.vllm.norm",
}
_done: Set[str] = set()


def register() -> None:
    """Registers what HONE_VLLM says, each part once. A part whose interface this vLLM does not have is left out with
    a warning, and vLLM runs without it. Raises ValueError for an environment variable that means nothing."""
    attention_name()
    for part in parts():
        if part in _done:
            continue
        try:
            importlib.import_module(_MODULES[part]).register()
        except (ImportError, AttributeError) as error:
            _log.warning("Hone leaves out %s: this vLLM has another interface, %s", part, error)
        else:
            _done.add(part)

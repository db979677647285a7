"""What the environment says about the plugin. The one place that reads it."""

from __future__ import annotations

import os
from typing import Tuple

PARTS = ("attention", "linear", "quantization", "norm")
# Those that change nothing before an option of vLLM chooses them.
_DEFAULT = ("attention", "linear", "quantization")


def parts() -> Tuple[str, ...]:
    """HONE_VLLM: "all", "off", or names of PARTS with commas between. Raises ValueError."""
    text = os.environ.get("HONE_VLLM", ",".join(_DEFAULT))
    if text in ("all", "off"):
        return PARTS if text == "all" else ()
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    for name in names:
        if name not in PARTS:
            raise ValueError(f"HONE_VLLM: {name!r}; allowed are 'all', 'off', and of {', '.join(PARTS)} any")
    return names


def attention_name() -> str:
    """HONE_VLLM_ATTENTION: the member of vLLM's AttentionBackendEnum that is Hone's; CUSTOM, else one whose place it
    takes, so that vLLM chooses Hone by itself and another where Hone refuses. Raises ValueError."""
    name = os.environ.get("HONE_VLLM_ATTENTION", "CUSTOM")
    if not name.isidentifier():
        raise ValueError(f"HONE_VLLM_ATTENTION: {name!r}; allowed are CUSTOM and names as FLASH_ATTN")
    return name

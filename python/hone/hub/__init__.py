"""Hone in transformers through the `kernels` package: layers that kernelize() puts into a model, and attention.

    python -m hone.hub hone_kernels                    # writes a folder in the layout of the Hugging Face Hub

    from transformers import AutoModelForCausalLM, KernelConfig
    mapping = {"RMSNorm": "/absolute/path/hone_kernels:RMSNorm"}
    model = AutoModelForCausalLM.from_pretrained(
        name, use_kernels=True, kernel_config=KernelConfig(mapping, use_local_kernel=True))

    hone.hub.register_attention()                      # then: attn_implementation="hone"

`layers` has the classes, `flash` the functions of flash-attn's interface, which `attn_implementation="org/name"`
takes from a folder of the Hub. The folder is Python alone and stands on the installed package hone. Importing this
needs PyTorch; transformers is needed for register_attention() alone, and `kernels` for none of it.
"""

from __future__ import annotations

from .._native import pytorch

pytorch.require("hone.hub")

from . import layers as layers  # noqa: E402
from .flash import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache  # noqa: E402
from .interface import register_attention  # noqa: E402
from .repository import write_repository  # noqa: E402

__all__ = [
    "flash_attn_func",
    "flash_attn_varlen_func",
    "flash_attn_with_kvcache",
    "layers",
    "register_attention",
    "write_repository",
]

"""Hone: tuned CUDA kernels for norms, linear layers and attention, from PyTorch, CuPy, Numba, JAX, or plain
pointers.

    import hone

    hone.tune("llama-3-8b")                            # once per GPU and model
    norm = hone.prepare(hone.RmsNorm(hidden=4096))     # at start-up: loads or compiles
    y = norm(x, weight)                                # from then on: launches, on the current stream

    decoder = hone.Decoder("models/llama-3-8b")        # a whole model: hone.Decoder
    print(decoder.generate("Once upon a time"))

Importing needs neither a GPU nor the library; the first call that does says what is missing. ``hone.ops``
(operators with autograd), ``hone.nn`` (modules), ``hone.patch`` (swaps the norms of a model),
``hone.quantize_weights``, ``hone.replace_linear_with_quantized`` and ``hone.load_quantized`` (packed
checkpoints) need PyTorch, and are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

from . import decoder, descriptions, errors
from ._native import pytorch
from ._native.library import VERSION as __version__
from ._operators import calls
from ._operators.attention import AttentionOperator
from ._operators.attention_append import AttentionAppendOperator
from ._operators.calls import *
from ._operators.rope_kv_append import RopeKvAppendOperator
from .decoder import *
from .descriptions import *
from .errors import *
from .models import ModelOperators
from .preparing import explain, explain_text, prepare
from .program import tune
from .runtime import counters, device_name, freeze

__all__ = [
    *calls.__all__,
    *decoder.__all__,
    *descriptions.__all__,
    *errors.__all__,
    "AttentionAppendOperator",
    "AttentionOperator",
    "ModelOperators",
    "RopeKvAppendOperator",
    "counters",
    "device_name",
    "explain",
    "explain_text",
    "freeze",
    "prepare",
    "tune",
]

# Need PyTorch: imported when they are asked for. Module, and a name in it or None for the module itself.
_LAZY = {
    "accelerate": ("hone.accelerating", "accelerate"),
    "load": ("hone.model_loading", "load"),
    "load_quantized": ("hone.loading", "load_quantized"),
    "nn": ("hone.nn", None),
    "ops": ("hone.ops", None),
    "patch": ("hone.patching", "patch"),
    "quantize_weights": ("hone.quantization", "quantize_weights"),
    "restore": ("hone.accelerating", "restore"),
    "replace_linear_with_quantized": ("hone.quantization", "replace_linear_with_quantized"),
}


if TYPE_CHECKING:
    from . import nn as nn, ops as ops
    from .accelerating import accelerate as accelerate, restore as restore
    from .loading import load_quantized as load_quantized
    from .model_loading import load as load
    from .patching import patch as patch
    from .quantization import (
        quantize_weights as quantize_weights,
        replace_linear_with_quantized as replace_linear_with_quantized,
    )
else:

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module 'hone' has no attribute '{name}'")
        pytorch.require(f"hone.{name}")
        module_name, member = _LAZY[name]
        module = importlib.import_module(module_name)
        globals()[name] = found = module if member is None else getattr(module, member)
        return found


def __dir__() -> List[str]:
    """What there is to use."""
    return sorted([*__all__, *_LAZY, "__version__"])

"""hone.load(folder): a model of transformers from a folder, on the GPU and accelerated.

    model = hone.load("models/llama-3-8b", format="w4a16")
    model.generate(**inputs)

Each tensor is read once, and goes to the GPU before the next one is read: the host never holds the model.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Union

import torch
from torch import nn

from ._weights.packed_folder import read_tensor
from ._weights.experts import Stacked, stacked_experts
from ._weights.safetensors import StoredTensor, open_folder, read_json
from .accelerating import accelerate
from .loading import fill_model, load_quantized

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
Tensors = Dict[str, StoredTensor]


def load(
    folder: Union[str, os.PathLike[str]], dtype: Union[None, str, torch.dtype] = None,
    format: Optional[str] = None, *, device: Any = "cuda", **options: Any,
) -> Any:  # fmt: skip
    """A causal language model from a folder as Hugging Face's (config.json and safetensors), or as `hone quantize` writes
    it, after hone.accelerate(model, format, **options).

    dtype: None is that of the folder's config, or of its tensors; "bf16", "fp16", "fp32" and torch's are others. format and
    options are those of hone.accelerate(). Nothing of the folder is executed, nothing is fetched.

    Raises ValueError for folders and models that do not fit, with what is allowed; OSError for files that cannot be read;
    ImportError without transformers.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

    place = Path(folder)
    stored = read_json(place / "config.json")
    method = _quantization_of(stored)
    if method and (format is not None or dtype is not None):
        raise ValueError("folder: its weights are packed already; allowed are format=None and dtype=None")
    config = AutoConfig.from_pretrained(place, local_files_only=True)
    config.quantization_config = None
    tensors = open_folder(place)
    wanted = _dtype_of(dtype, stored, tensors)
    with _parameters_on_meta():
        model = AutoModelForCausalLM.from_config(config, dtype=wanted).eval()
    if method:
        load_quantized(model, place, device=device)
    else:
        named = _named_for(model, stacked_experts(tensors) if _has_experts(model) else tensors)
        fill_model(model, named, lambda tensor: _read(tensor, device, wanted))
    for module in model.modules():
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = buffer.to(device)
    if (place / "generation_config.json").is_file():
        model.generation_config = GenerationConfig.from_pretrained(place, local_files_only=True)
    accelerate(model, format, **options)
    return model


def _has_experts(model: Any) -> bool:
    return any(".experts.gate_up_proj" in name for name, _ in model.named_parameters())


def _read(tensor: Any, device: Any, dtype: torch.dtype) -> torch.Tensor:
    if not isinstance(tensor, Stacked):
        return read_tensor(tensor).to(device, dtype)
    made = torch.empty(tensor.shape, dtype=dtype, device=device)
    for expert, parts in enumerate(tensor.parts):
        for half, part in zip(made[expert].chunk(len(parts)), parts):
            half.copy_(read_tensor(part))
    return made


def _quantization_of(config: Dict[str, Any]) -> str:
    """"hone", or "" for a folder of numbers. Raises ValueError for other packed ones."""
    found = config.get("quantization_config")
    method = found.get("quant_method", "?") if isinstance(found, dict) else ""
    if method not in ("", "hone"):
        raise ValueError(
            f"folder: its weights are packed by {method!r}; allowed are those of `hone quantize`, which reads GPTQ, AWQ and "
            f"FP8 folders and writes them as ours"
        )
    return method


def _dtype_of(dtype: Any, config: Dict[str, Any], tensors: Tensors) -> torch.dtype:
    if isinstance(dtype, str):
        dtype = _DTYPES.get(dtype, getattr(torch, dtype, None))
    if dtype is None:
        name = config.get("dtype", config.get("torch_dtype"))
        if isinstance(name, str):
            return _dtype_of(name, config, tensors)
        floats = {tensor.dtype for tensor in tensors.values()} & {"BF16", "F16", "F32"}
        return _DTYPES[{"BF16": "bf16", "F16": "fp16"}.get(next(iter(floats), ""), "fp32")]
    if dtype not in _DTYPES.values():
        raise ValueError(f"dtype: {dtype}; allowed are {', '.join(map(repr, _DTYPES))}, the same of torch, and None")
    return dtype


def _named_for(model: Any, tensors: Tensors) -> Tensors:
    """Tensors by the model's names: with the prefix that checkpoints without a head lack, and without what the model makes
    itself."""
    known = set(model.state_dict())
    prefix = f"{model.base_model_prefix}."
    ignored = [*(getattr(model, "_keys_to_ignore_on_load_unexpected", None) or ()), r"rotary_emb\.inv_freq$"]
    found = {}
    for name, tensor in tensors.items():
        name = name if name in known or prefix + name not in known else prefix + name
        if name in known or not any(re.search(pattern, name) for pattern in ignored):
            found[name] = tensor
    return found


@contextlib.contextmanager
def _parameters_on_meta() -> Iterator[None]:
    """Parameters of modules that this thread makes have no memory; their buffers do."""
    register, thread = nn.Module.register_parameter, threading.get_ident()

    def on_meta(self: nn.Module, name: str, parameter: Optional[nn.Parameter]) -> None:
        if parameter is not None and not parameter.is_meta and threading.get_ident() == thread:
            parameter = nn.Parameter(parameter.detach().to("meta"), parameter.requires_grad)
        register(self, name, parameter)

    setattr(nn.Module, "register_parameter", on_meta)
    try:
        yield
    finally:
        setattr(nn.Module, "register_parameter", register)

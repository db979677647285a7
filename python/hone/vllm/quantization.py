"""Checkpoints of 16 bits that are quantized while vLLM loads them: --quantization hone_w4a16 and its like."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import torch
from torch import Tensor
from vllm.model_executor.layers.linear import LinearBase, LinearMethodBase
from vllm.model_executor.layers.quantization import register_quantization_config
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig
from vllm.model_executor.parameter import ModelWeightParameter

from .._nn.quantized import group_of
from .._operators.stored import MAX_IN, MAX_OUT, StoredWeight
from .._torch.registered import calls
from .._weights import packing

_OLDEST_GPU = 75


class HoneConfig(QuantizationConfig):
    """One format for all linear layers but the language head. A quantization_config of a checkpoint may have a
    "group" and "ignored_layers", parts of whose names leave layers as they are."""

    FORMAT = "w4a16"

    def __init__(self, group: Optional[int] = None, ignored_layers: Optional[List[str]] = None) -> None:
        super().__init__()
        self.group, self.ignored_layers = group, ignored_layers or []

    @classmethod
    def get_name(cls) -> str:
        return f"hone_{cls.FORMAT}"

    @classmethod
    def get_supported_act_dtypes(cls) -> List[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    @classmethod
    def get_min_capability(cls) -> int:
        return _OLDEST_GPU

    @staticmethod
    def get_config_filenames() -> List[str]:
        return []

    @classmethod
    def from_config(cls, config: Dict[str, Any]) -> HoneConfig:
        return cls(config.get("group"), config.get("ignored_layers"))

    def get_quant_method(self, layer: torch.nn.Module, prefix: str) -> Optional[Any]:
        """None for what stays: vLLM has a method of its own then."""
        if not isinstance(layer, LinearBase):
            return None
        if any(name in prefix for name in self.ignored_layers):
            from vllm.model_executor.layers.linear import UnquantizedLinearMethod

            return UnquantizedLinearMethod()
        return HoneLinearMethod(self.FORMAT, self.group)


class HoneLinearMethod(LinearMethodBase):
    """Loads a weight as it is, then makes codes and scales of it, which take its place."""

    def __init__(self, format: str, group: Optional[int]) -> None:
        self.format, self.group = format, group

    def create_weights(
        self, layer: Any, input_size_per_partition: int, output_partition_sizes: List[int], input_size: int,
        output_size: int, params_dtype: torch.dtype, **extra_weight_attrs: Any,
    ) -> None:  # fmt: skip
        rows, columns = sum(output_partition_sizes), input_size_per_partition
        if rows > MAX_OUT or columns > MAX_IN:
            raise ValueError(f"weight: it is {rows} x {columns}; allowed are up to {MAX_OUT} x {MAX_IN}")
        group = group_of(self.format, columns, self.group)
        if group and columns % group:
            raise ValueError(f"group: {group}; allowed are those that divide {columns}")
        layer.hone_stored = StoredWeight(rows, columns, self.format, group)
        loader = extra_weight_attrs.get("weight_loader")
        data = torch.empty(rows, columns, dtype=params_dtype)
        weight = ModelWeightParameter(data=data, input_dim=1, output_dim=0, weight_loader=loader)
        layer.register_parameter("weight", weight)

    def process_weights_after_loading(self, layer: Any) -> None:
        dtype = layer.weight.dtype
        packed = packing.quantize(layer.weight.data, layer.hone_stored, dtype)
        delattr(layer, "weight")
        for name, value in (("weight", packed.codes), ("weight_scale", packed.scales)):
            layer.register_parameter(name, torch.nn.Parameter(value, requires_grad=False))

    def apply(self, layer: Any, x: Tensor, bias: Optional[Tensor] = None) -> Tensor:
        """x [..., in] -> [..., out]."""
        stored = layer.hone_stored
        return calls.quantized_linear(
            x, layer.weight, layer.weight_scale, stored.format, stored.group, stored.rows, "none", None, bias
        )


def _named(format: str) -> Any:
    return type(f"Hone{format.upper()}Config", (HoneConfig,), {"FORMAT": format, "__module__": __name__})


CONFIGS = {f"hone_{format}": _named(format) for format in ("w4a16", "w8a16", "w8a8", "fp8")}


def register() -> None:
    for name, config in CONFIGS.items():
        register_quantization_config(name)(config)

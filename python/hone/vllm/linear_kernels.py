"""Hone among vLLM's kernels of quantized linear layers, behind vLLM's own: those of GPTQ and compressed-tensors
checkpoints with 4 or 8 bits ("mp"), and FP8 ones. vLLM takes the first that it has not been told to leave out."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor
from vllm.model_executor.kernels.linear import (
    FP8ScaledMMLinearKernel,
    MPLinearKernel,
    register_linear_kernel,
)
from vllm.platforms import PlatformEnum
from vllm.scalar_type import scalar_types

from .._operators.stored import MAX_IN, MAX_OUT, StoredWeight
from .._torch.prepared import DTYPES
from .._torch.registered import calls
from .._weights import repack

_DTYPES = (torch.bfloat16, torch.float16)
_OLDEST_GPU = 75  # as vLLM writes compute capability 7.5
Answer = Tuple[bool, Optional[str]]


class HoneMPLinearKernel(MPLinearKernel):
    """W4A16, with groups and zero points, and W8A16 with a scale a row."""

    @classmethod
    def get_min_capability(cls) -> int:
        return _OLDEST_GPU

    @classmethod
    def can_implement(cls, c: Any) -> Answer:
        reason = _refusal(c)
        return reason is None, reason

    def process_weights_after_loading(self, layer: Any) -> None:
        """The parameters' values become Hone's; their names stay."""
        bits, stored = _stored(self.config)
        w_q, w_s, w_zp, _ = self._get_weight_params(layer)
        codes, scales = repack.codes_of(w_q, bits), repack.by_rows(w_s)
        if bits == 4:
            zeros = repack.codes_of(w_zp, 4) if self.config.zero_points else None
            packed = repack.packed_4(codes, scales.to(self.config.act_type), zeros, stored)
        else:
            packed = repack.packed_8(codes, scales)
        names = (self.w_q_name, self.w_s_name, self.w_zp_name)
        for name, value in zip(names, packed):
            if value is not None:
                _put(layer, name, value)

    def apply_weights(self, layer: Any, x: Tensor, bias: Optional[Tensor] = None) -> Tensor:
        """x [..., in] -> [..., out]."""
        _, stored = _stored(self.config)
        codes, scales, zeros, _ = self._get_weight_params(layer)
        zeros = zeros if self.config.zero_points else None
        return calls.quantized_linear(
            x, codes, scales, stored.format, stored.group, stored.rows, "none", zeros, bias
        )


class HoneFP8LinearKernel(FP8ScaledMMLinearKernel):
    """FP8 weights with one scale or one a row, and codes of x with one scale or one a token, which vLLM makes."""

    @classmethod
    def is_supported(cls, compute_capability: Optional[int] = None) -> Answer:
        if compute_capability is not None and compute_capability < _OLDEST_GPU:
            return False, f"compute capability {compute_capability}; allowed is {_OLDEST_GPU} or more"
        return True, None

    @classmethod
    def can_implement(cls, c: Any) -> Answer:
        weight, x = (tuple(key.scale.group_shape) for key in (c.weight_quant_key, c.activation_quant_key))
        if weight not in ((-1, -1), (1, -1), (-1, 1)):
            return False, f"scales of the weight for {weight}; allowed are one, and one a row"
        if x not in ((-1, -1), (1, -1)):
            return False, f"scales of x for {x}; allowed are one, and one a token"
        if c.out_dtype is not None and c.out_dtype not in _DTYPES:
            return False, f"output of {c.out_dtype}; allowed are bf16 and fp16"
        return True, None

    def apply_scaled_mm(
        self, *, A: Tensor, B: Tensor, out_dtype: torch.dtype, As: Tensor, Bs: Tensor, bias: Optional[Tensor],
        output_shape: List[int],
    ) -> Tensor:  # fmt: skip
        """A [tokens, in], B [in, out], the transposed view of rows, As [1] or [tokens, 1], Bs [1] or [out, 1]."""
        weight = B.t()
        x_scales = As.reshape(1) if As.numel() == 1 else As.reshape(-1)
        y = calls.quantized_linear(
            A, weight, Bs.float().reshape(-1), "fp8", 0, weight.shape[0], "none", None, bias, None, x_scales, None,
            None, DTYPES[out_dtype],
        )  # fmt: skip
        return y.view(*output_shape)


def register() -> None:
    register_linear_kernel(HoneMPLinearKernel, PlatformEnum.CUDA, "mp")
    register_linear_kernel(HoneFP8LinearKernel, PlatformEnum.CUDA, "fp8")


def _stored(c: Any) -> Tuple[int, StoredWeight]:
    """Bits of a code, and how a part of a weight is stored."""
    columns, rows = c.partition_weight_shape
    group = 0 if c.group_size in (-1, columns) else c.group_size
    if c.weight_type == scalar_types.uint8b128:
        return 8, StoredWeight(rows, columns, "w8a16", 0)
    return 4, StoredWeight(rows, columns, "w4a16", group)


def _refusal(c: Any) -> Optional[str]:
    """Why there is no kernel for a layer; None: there is."""
    columns, rows = c.partition_weight_shape
    whole = c.group_size in (-1, columns)
    wanted = scalar_types.uint4 if c.zero_points else scalar_types.uint4b8
    if c.has_g_idx:
        return "columns in another order than x; allowed is desc_act False"
    if c.act_type not in _DTYPES:
        return f"x of {c.act_type}; allowed are bf16 and fp16"
    if c.out_type is not None and c.out_type != c.act_type:
        return f"output of {c.out_type}; allowed is that of x, {c.act_type}"
    if c.weight_type == scalar_types.uint8b128 and not c.zero_points:
        return None if whole else f"groups of {c.group_size} with 8 bits; allowed is a scale a row"
    if c.weight_type != wanted:
        return f"codes of {c.weight_type}; allowed are uint4b8, uint4 with zero points, and uint8b128"
    if not whole and (c.group_size not in (32, 64, 128) or columns % c.group_size):
        return f"groups of {c.group_size}; allowed are 32, 64 and 128 that divide {columns}, and a scale a row"
    if columns > MAX_IN or rows > MAX_OUT:
        return f"a weight of {rows} x {columns}; allowed are up to {MAX_OUT} x {MAX_IN}"
    return None


def _put(layer: Any, name: str, value: Tensor) -> None:
    """In place of a parameter, whose shape may be another."""
    delattr(layer, name)
    layer.register_parameter(name, torch.nn.Parameter(value, requires_grad=False))

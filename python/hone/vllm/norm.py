"""Hone's RMSNorm in the place of vLLM's, where vLLM runs custom norms: with enforce_eager, or +rms_norm among the
custom ops. Under Inductor it fuses norms itself, and this has no part in it."""

from __future__ import annotations

from typing import Any, Optional

from torch import Tensor
from vllm.model_executor.custom_op import CustomOp
from vllm.model_executor.layers.layernorm import RMSNorm

from .._torch.prepared import DTYPES
from .._torch.registered import calls


class HoneRMSNorm(RMSNorm):
    def forward_cuda(self, x: Tensor, residual: Optional[Tensor] = None) -> Any:
        """x and residual [..., hidden] -> y, or (y, x + residual)."""
        weight = self.weight.data
        if not takes(self, x, residual, weight):
            return super().forward_cuda(x, residual)
        if residual is None:
            return calls.rms_norm(x, weight, self.variance_epsilon)
        return calls.rms_norm_residual(x, residual, weight, self.variance_epsilon)


def takes(norm: Any, x: Tensor, residual: Optional[Tensor], weight: Tensor) -> bool:
    """Whether there is a kernel for a call."""
    return (
        getattr(norm, "variance_size_override", None) is None
        and getattr(norm, "has_weight", True)
        and x.dtype in DTYPES
        and weight.dtype == x.dtype
        and weight.shape == x.shape[-1:]
        and (residual is None or (residual.dtype == x.dtype and residual.shape == x.shape))
    )


def register() -> None:
    CustomOp.register_oot(HoneRMSNorm, name="RMSNorm")
    HoneRMSNorm.name = RMSNorm.name  # by which custom ops are switched on; registering may have given it another

"""Modules that take the place of torch.nn.RMSNorm and torch.nn.LayerNorm, with the same parameters.

They run Hone's kernels for CUDA tensors of bf16, fp16 and fp32 with a weight of the same dtype, and PyTorch's
functions for everything else: on the CPU, for float64, with mixed dtypes, without a weight, and under
torch.autocast, where PyTorch's functions choose the dtype of their result.
Their state_dict is that of PyTorch's modules; hone.patch() makes one of each that a model has.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor
from torch.nn import functional

from . import torch_ops
from ._torch_prepared import DTYPES

Shape = Union[int, Sequence[int]]

_KERNEL_DTYPES = tuple(DTYPES)


def _adds_epsilon_in_float32() -> bool:
    """What PyTorch adds where eps is None: the epsilon of float32, in which it computes, from 2.7 on; that of
    x's dtype before, which for this x is far more than its square."""
    x = torch.full((1,), 0.01, dtype=torch.bfloat16, device="cpu")
    return functional.rms_norm(x, (1,)).item() > 0.5


_IN_FLOAT32 = _adds_epsilon_in_float32()
_FLOAT32_EPSILON = torch.finfo(torch.float32).eps


def runs_natively(x: Tensor, weight: Optional[Tensor]) -> bool:
    """Whether Hone has a kernel for x [..., hidden] and weight [hidden]."""
    return weight is not None and x.is_cuda and x.dtype in _KERNEL_DTYPES and weight.dtype == x.dtype


def one_dimension(normalized_shape: Shape) -> Tuple[int]:
    """normalized_shape as a tuple of one size. Raises ValueError for more dimensions."""
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if len(sizes) != 1:
        raise ValueError(f"normalized_shape: {normalized_shape!r}; allowed are an int and a tuple of one int")
    return sizes


def _takes_kernel(x: Tensor, residual: Optional[Tensor], weight: Optional[Tensor]) -> bool:
    """Whether a module's call goes to Hone's kernel."""
    return (
        runs_natively(x, weight)
        and (residual is None or (residual.dtype == x.dtype and residual.shape == x.shape))
        and not torch.is_autocast_enabled()  # that is, for CUDA
    )


class RMSNorm(torch.nn.RMSNorm):
    """torch.nn.RMSNorm over the last dimension, in place of which it can stand; trainable.

    forward(x, residual) normalises x + residual and returns that sum, too, in one pass over memory.
    """

    def __init__(
        self, normalized_shape: Shape, eps: Optional[float] = None, elementwise_affine: bool = True,
        device: Any = None, dtype: Optional[torch.dtype] = None,
    ) -> None:  # fmt: skip
        super().__init__(one_dimension(normalized_shape), eps, elementwise_affine, device, dtype)

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Any:
        """x and residual [..., hidden] -> y, or (y, x + residual); all like x."""
        if not _takes_kernel(x, residual, self.weight):
            total = x if residual is None else x + residual
            y = functional.rms_norm(total, self.normalized_shape, self.weight, self.eps)
            return y if residual is None else (y, total)
        epsilon = self.eps
        if epsilon is None:
            epsilon = _FLOAT32_EPSILON if _IN_FLOAT32 else torch.finfo(x.dtype).eps
        if residual is None:
            return torch_ops.rms_norm(x, self.weight, epsilon)
        return torch_ops.rms_norm_residual(x, residual, self.weight, epsilon)


class LayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm over the last dimension, in place of which it can stand.

    forward(x, residual) is that of RMSNorm. Hone's kernel has no gradient: where one is needed, PyTorch's
    function runs.
    """

    def __init__(
        self, normalized_shape: Shape, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Optional[torch.dtype] = None,
    ) -> None:  # fmt: skip
        super().__init__(one_dimension(normalized_shape), eps, elementwise_affine, bias, device, dtype)

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Any:
        """x and residual [..., hidden] -> y, or (y, x + residual); all like x."""
        if not _takes_kernel(x, residual, self.weight) or self._needs_gradient(x, residual):
            total = x if residual is None else x + residual
            y = functional.layer_norm(total, self.normalized_shape, self.weight, self.bias, self.eps)
            return y if residual is None else (y, total)
        if residual is None:
            return torch_ops.layer_norm(x, self.weight, self.bias, self.eps)
        return torch_ops.layer_norm_residual(x, residual, self.weight, self.bias, self.eps)

    def _needs_gradient(self, x: Tensor, residual: Optional[Tensor]) -> bool:
        tensors = (x, residual, self.weight, self.bias)
        return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)

"""What the modules of nn.py have in common."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional


def needs_gradient(*tensors: Optional[Tensor]) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def _gelu_tanh(x: Tensor) -> Tensor:
    return functional.gelu(x, approximate="tanh")


def _identity(x: Tensor) -> Tensor:
    return x


ACTIVATIONS = {
    "none": _identity,
    "gelu_tanh": _gelu_tanh,
    "gelu_erf": functional.gelu,
    "silu": functional.silu,
    "relu": functional.relu,
}


# What classes of activations compute, by their names in torch.nn and transformers.
_CLASSES = {
    "SiLU": "silu",
    "SiLUActivation": "silu",
    "GELUTanh": "gelu_tanh",
    "PytorchGELUTanh": "gelu_tanh",
    "NewGELUActivation": "gelu_tanh",
    "FastGELUActivation": "gelu_tanh",
    "GELUActivation": "gelu_erf",
    "ReLU": "relu",
}


def activation_of(module: Any) -> Optional[str]:
    """The name of what a module of such a class computes; None: of another class."""
    return _CLASSES.get(type(module).__name__)


def checked_activation(activation: str) -> str:
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation: {activation!r}; allowed are {', '.join(ACTIVATIONS)}")
    return activation


def has_columns(residual: Tensor, x: Tensor, columns: int) -> bool:
    return (
        residual.dim() == x.dim() and residual.shape[:-1] == x.shape[:-1] and residual.shape[-1] == columns
    )

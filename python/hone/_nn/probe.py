"""Whether a module of another library computes an RMSNorm, found out by trying, for patching.py."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def epsilon_of(module: Any) -> Any:
    """What a module library's RMSNorm calls it; None: nothing."""
    found = getattr(module, "variance_epsilon", None)
    return getattr(module, "eps", None) if found is None else found


def computes_rms_norm(module: nn.Module) -> bool:
    """Tries the module's own forward with another weight, on the CPU and in float32, whatever PyTorch's
    default is: on rows so small that epsilon counts, and on larger ones."""
    hidden = module.weight.numel()
    generator = torch.Generator().manual_seed(0)
    made = {"dtype": torch.float32, "device": "cpu"}
    weight = torch.rand(hidden, generator=generator, **made) + 0.5
    x = torch.randn(3, hidden, generator=generator, **made) * torch.tensor([[1e-3], [0.1], [10.0]], **made)
    probe = copy.copy(module)
    probe._parameters = {"weight": nn.Parameter(weight, requires_grad=False)}
    try:
        with torch.no_grad():
            found = type(module).forward(probe, x)
    except Exception:  # whatever it needs, it is no plain norm of one tensor
        return False
    wanted = functional.rms_norm(x, (hidden,), weight, epsilon_of(module))
    return (
        isinstance(found, Tensor)
        and found.shape == wanted.shape
        and torch.allclose(found.float(), wanted, rtol=1e-4, atol=1e-5)
    )

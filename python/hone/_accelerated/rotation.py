"""The rotary embedding of a model that is trained: Hone's kernel, forward and back, in the place of the function that
transformers' attention calls."""

from __future__ import annotations

import functools
import types
from typing import Any, Callable, List, Tuple

import torch
from torch import Tensor, nn

from .._torch.prepared import DTYPES
from .._torch.registered import calls

_NAME = "apply_rotary_pos_emb"  # what models call


def _turned(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Tuple[Tensor, Tensor]:
    """q [batch, heads, tokens, head_dim], k likewise, by cosines and sines [batch or 1, tokens, columns that turn], whose
    halves are alike."""
    batch, _, tokens, head_dim = q.shape
    half = cos.shape[-1] // 2
    tables = [t[..., :half].expand(batch, -1, -1).reshape(-1, half).float() for t in (cos, sin)]
    rows, keys = (t.transpose(1, 2).reshape(batch * tokens, -1, head_dim) for t in (q, k))
    place = torch.arange(batch * tokens, dtype=torch.int32, device=q.device)
    turned_k, unused = torch.empty((2, 1, *keys.shape), dtype=k.dtype, device=k.device).unbind(0)
    turned_q = calls.rope_kv_append(
        rows, keys, keys, turned_k, unused, *tables, "half", None, None, place, place, None, None, None, None, None
    )
    shapes = ((batch, tokens, -1, head_dim),) * 2
    return tuple(t.view(s).transpose(1, 2) for t, s in zip((turned_q, turned_k), shapes))  # type: ignore[return-value]


class Rotation(torch.autograd.Function):
    """Its gradient is turned back."""

    @staticmethod
    def forward(context: Any, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Tuple[Tensor, Tensor]:
        context.save_for_backward(cos, sin)
        return _turned(q, k, cos, sin)

    @staticmethod
    def backward(context: Any, dq: Tensor, dk: Tensor) -> Any:
        cos, sin = context.saved_tensors
        with torch.no_grad():
            return (*_turned(dq, dk, cos, -sin), None, None)


def _runs_natively(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int) -> bool:
    return (
        q.is_cuda and q.dtype in DTYPES and k.dtype == q.dtype and q.dim() == 4 and cos.dim() == 3 and unsqueeze_dim == 1
        and cos.shape[-1] % 2 == 0 and cos.shape[-1] <= q.shape[-1] and not (cos.requires_grad or sin.requires_grad)
        and not torch.is_autocast_enabled() and not torch.compiler.is_compiling()
    )  # fmt: skip


def _replacing(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def rotary(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> Any:
        if q.numel() and _runs_natively(q, k, cos, sin, unsqueeze_dim):
            return Rotation.apply(q, k, cos, sin)
        return original(q, k, cos, sin, unsqueeze_dim=unsqueeze_dim)

    return rotary


@functools.lru_cache(maxsize=None)
def _attention_class(old: Any) -> Any:
    """A subclass whose forward is the same code, with another function by that name."""
    forward = old.forward
    names = {**forward.__globals__, _NAME: _replacing(forward.__globals__[_NAME])}
    made = types.FunctionType(forward.__code__, names, forward.__name__, forward.__defaults__, forward.__closure__)
    made.__kwdefaults__ = forward.__kwdefaults__
    members = {"__module__": old.__module__, "__doc__": old.__doc__, "forward": functools.wraps(forward)(made)}
    return type(f"Hone{old.__name__}", (old,), members)


def swap_rotations(model: nn.Module) -> List[Tuple[nn.Module, Any]]:
    """Gives the attention modules of a model our rotation, and returns them with the classes that they had."""
    swapped = []
    for module in model.modules():
        old: Any = type(module)
        forward = vars(old).get("forward")
        plain = isinstance(forward, types.FunctionType) and _NAME in forward.__code__.co_names
        if plain and _NAME in forward.__globals__ and "forward" not in vars(module):
            swapped.append((module, old))
            module.__class__ = _attention_class(old)
    return swapped

"""As much of torch.library as hone._torch.registered touches, over the fake PyTorch of torch.py: operators are
called, and nobody else's code stands between."""

from __future__ import annotations

import contextlib
import sys
import types
from typing import Any, Callable, Dict


class Overload:
    """torch.ops.<namespace>.<name>.default"""

    def __init__(self, torch: Any, schema: str) -> None:
        self.schema, self._torch = schema, torch
        self.kernels: Dict[str, Callable[..., Any]] = {}

    def name(self) -> str:
        return f"hone::{self.schema.partition('(')[0]}"

    def __call__(self, *arguments: Any) -> Any:
        key = "Autograd" if "Autograd" in self.kernels and not self._torch.below else "CUDA"
        return self.kernels[key](*arguments)


class Library:
    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def define(self, schema: str, tags: Any = ()) -> None:
        operator = types.SimpleNamespace(default=Overload(self._torch, schema))
        setattr(self._torch.ops.hone, schema.partition("(")[0], operator)

    def impl(self, operator: Any, kernel: Callable[..., Any], key: str) -> None:
        if isinstance(operator, str):
            operator = getattr(self._torch.ops.hone, operator).default
        operator.kernels[key] = kernel


def register_autograd(operator: Overload, backward: Any, *, setup_context: Any, lib: Any) -> None:
    """PyTorch's words for what it does not take."""
    if "!" in operator.schema:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {operator.name()} with schema "
            f"{operator.schema}. Please create a functional operator and register an autograd formula for that."
        )


def register_fake(name: str, fake: Callable[..., Any], lib: Any) -> None:
    getattr(sys.modules["torch"].ops.hone, name.partition("::")[2]).default.kernels["Meta"] = fake


def install(torch: Any, private: bool = True) -> None:
    """Without `private` PyTorch lacks the interfaces that are its own affair."""
    torch.below, torch.grad = False, True
    torch.ops = types.SimpleNamespace(hone=types.SimpleNamespace())
    torch.Tag = types.SimpleNamespace(pt2_compliant_tag=None)
    torch.library = types.ModuleType("torch.library")
    torch.library.Library = lambda name, kind: Library(torch)
    torch.library.register_autograd, torch.library.register_fake = register_autograd, register_fake
    torch.is_grad_enabled = lambda: torch.grad
    torch.contiguous_format = "contiguous"
    torch.autograd = types.ModuleType("torch.autograd")
    torch.autograd.Function = type("Function", (), {})
    no_tangent = types.SimpleNamespace(tangent=None)
    torch.autograd.forward_ad = types.SimpleNamespace(_current_level=-1, unpack_dual=lambda tensor: no_tangent)
    for name in ("library", "autograd"):
        sys.modules[f"torch.{name}"] = getattr(torch, name)
    if private:
        torch._C._any_requires_grad = lambda *arguments: any(
            getattr(argument, "requires_grad", False) for argument in arguments
        )
        torch._C._AutoDispatchBelowAutograd = lambda: _below(torch)
        torch._C._len_torch_dispatch_stack = lambda: 0
        torch._C._len_torch_function_stack = lambda: 0
        torch._C._are_functorch_transforms_active = lambda: False
        torch._C._is_tracing = lambda: False
        torch._C._autograd = types.SimpleNamespace(_profiler_enabled=lambda: False)
        torch.compiler = types.SimpleNamespace(is_dynamo_compiling=lambda: False)


@contextlib.contextmanager
def _below(torch: Any) -> Any:
    torch.below = True
    try:
        yield
    finally:
        torch.below = False


def uninstall() -> None:
    """Takes it away, and those modules of hone that are on top of it."""
    for name in [name for name in sys.modules if name.startswith(("torch.", "hone.ops", "hone._torch"))]:
        module = sys.modules.pop(name)
        parent, _, own = name.rpartition(".")
        if getattr(sys.modules.get(parent), own, None) is module:
            delattr(sys.modules[parent], own)

"""Sees whether a model is still what was read of it: its modules, hooks and tensors."""

from __future__ import annotations

from typing import Any, List, Tuple

from torch import nn

# transformers' own hooks, which do nothing unless a call asks for hidden states or attentions.
_IDLE_HOOKS = "transformers.utils.output_capturing"


class Watch:
    """Of the modules within a model, itself included."""

    def __init__(self, base: nn.Module, head: Any) -> None:
        modules = [base, *(module for module in base.modules() if module is not base), *([head] if head else [])]
        self._hooks = [hooks for m in modules for hooks in (m._forward_hooks, m._forward_pre_hooks)]
        self._children = [(m._modules, tuple(m._modules.values())) for m in modules if m._modules]
        self._attributes = [m.__dict__ for m in modules]
        self._tensors: List[Tuple[Any, str, int, int]] = []
        for module in modules:
            for store in (module._parameters, module._buffers):
                for name, tensor in store.items():
                    if tensor is not None:
                        self._tensors.append((store, name, tensor.data_ptr(), -1))

    def copied(self, modules: List[nn.Module]) -> None:
        """These have weights of which copies are used: they must not change in place."""
        for module in modules:
            weight: Any = module.weight
            self._tensors.append((module._parameters, "weight", weight.data_ptr(), -1 if weight.is_inference() else weight._version))

    def hooked(self) -> bool:
        """Whether something wants to see what goes through a module within."""
        return any(self._hooks) and any(
            getattr(hook, "__module__", "") != _IDLE_HOOKS for hooks in self._hooks for hook in hooks.values()
        )

    def overridden(self) -> bool:
        return any("forward" in attributes for attributes in self._attributes)

    def moved(self) -> bool:
        """Whether modules or tensors are others than those that were read."""
        for children, known in self._children:
            if tuple(children.values()) != known:
                return True
        for store, name, pointer, version in self._tensors:
            tensor = store.get(name)
            if tensor is None or tensor.data_ptr() != pointer or (version >= 0 and tensor._version != version):
                return True
        return False

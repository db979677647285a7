"""Sees whether a model is still what was read of it: its modules, hooks and tensors.

It is asked at every step, so that what it goes through are lists, by functions of C.
"""

from __future__ import annotations

from itertools import repeat
from operator import contains, getitem, is_
from typing import Any, List

from torch import Tensor, nn

# transformers' own hooks, which do nothing unless a call asks for hidden states or attentions.
_IDLE_HOOKS = "transformers.utils.output_capturing"


class Watch:
    """Of the modules within a model, itself included."""

    def __init__(self, base: nn.Module, head: Any) -> None:
        modules = [base, *(module for module in base.modules() if module is not base), *([head] if head else [])]
        self._hooks = [hooks for m in modules for hooks in (m._forward_hooks, m._forward_pre_hooks)]
        self._children = [m._modules for m in modules if m._modules]
        self._known_children = [tuple(children.values()) for children in self._children]
        self._attributes = [m.__dict__ for m in modules]
        places = [
            (store, name, tensor)
            for module in modules
            for store in (module._parameters, module._buffers)
            for name, tensor in store.items()
            if tensor is not None
        ]
        self._stores: List[Any] = [store for store, _, _ in places]
        self._names = [name for _, name, _ in places]
        self._tensors: List[Any] = [tensor for _, _, tensor in places]
        self._pointers = [tensor.data_ptr() for _, _, tensor in places]

    def hooked(self) -> bool:
        """Whether something wants to see what goes through a module within."""
        return any(self._hooks) and any(
            getattr(hook, "__module__", "") != _IDLE_HOOKS for hooks in self._hooks for hook in hooks.values()
        )

    def overridden(self) -> bool:
        return any(map(contains, self._attributes, repeat("forward")))

    def moved(self) -> bool:
        """Whether modules or tensors are others than those that were read."""
        children: List[Any] = list(map(tuple, map(dict.values, self._children)))  # type: ignore[arg-type]
        if children != self._known_children:
            return True
        try:
            found = map(getitem, self._stores, self._names)
            same = all(map(is_, found, self._tensors))
        except KeyError:
            return True
        return not same or list(map(Tensor.data_ptr, self._tensors)) != self._pointers

"""hone.patch(model): gives the norms of an existing model Hone's kernels.

    for name, old, new in hone.patch(model):
        print(f"{name}: {old.__name__} -> {new.__name__}")

A module gets another class and stays the same object: its parameters, hooks, names, buffers and tied uses are
untouched, the state_dict too, and isinstance() with its old class stays true. Three kinds are known:
torch.nn.RMSNorm and torch.nn.LayerNorm over one dimension, and the RMSNorm that model libraries write
themselves (LlamaRMSNorm and its like). The last are recognized by what they compute, not by their name alone:
a class that scales by 1 + weight, say, looks the same and is left as it is. Where such a module rounds twice,
before and after its weight, Hone's kernel rounds once.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Dict, List, Optional, Tuple, Type

from torch import Tensor, nn

from . import nn as hone_nn
from ._torch.registered import calls
from ._nn.probe import computes_rms_norm, epsilon_of

MAX_HIDDEN = 262144  # of hone_rms_norm::hidden
Swap = Tuple[str, Type[nn.Module], Type[nn.Module]]


def patch(model: nn.Module) -> List[Swap]:
    """Swaps the classes of the norms in `model`, itself included, and returns (name, old class, new class).

    A module that stands under several names appears once. Patching again finds nothing to do. Modules whose
    forward is overridden on the instance are left alone. Patch before torch.compile().
    """
    swapped = []
    for name, module in model.named_modules():
        old = type(module)
        new = _replacement(module)
        if new is not None and "forward" not in vars(module):
            module.__class__ = new
            swapped.append((name, old, new))
    return swapped


def _replacement(module: nn.Module) -> Optional[Type[nn.Module]]:
    """The class that a module should have, or None for one to leave as it is."""
    if type(module) is nn.RMSNorm:
        return hone_nn.RMSNorm if _fits(module.weight, module.normalized_shape) else None
    if type(module) is nn.LayerNorm:
        return hone_nn.LayerNorm if _fits(module.weight, module.normalized_shape) else None
    kind: Any = type(module)
    return _patched_class(kind) if _is_plain_rms_norm(module) else None


def _fits(weight: Optional[Tensor], shape: Tuple[int, ...]) -> bool:
    return weight is not None and len(shape) == 1 and 1 <= shape[0] <= MAX_HIDDEN


class _Patched:
    """Put before a model library's RMSNorm: runs Hone's kernel where there is one, else the module's own
    forward."""

    weight: nn.Parameter

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """[..., hidden] -> the same shape and dtype."""
        if len(arguments) == 1 and not named and hone_nn.runs_natively(arguments[0], self.weight):
            return calls.rms_norm(arguments[0], self.weight, epsilon_of(self))
        return super().forward(*arguments, **named)  # type: ignore[misc]  # the other class has it

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Classes that are made while the program runs are found by what they were made from."""
        reduced: Any = super().__reduce_ex__(protocol)
        _, _, *state = reduced
        return (_new_patched, (type(self).__mro__[2],), *state)


@functools.lru_cache(maxsize=None)
def _patched_class(old: Any) -> Any:
    members: Dict[str, Any] = {"__module__": old.__module__, "__doc__": old.__doc__}
    return type(f"Hone{old.__name__}", (_Patched, old), members)


def _new_patched(old: Any) -> nn.Module:
    """Without its state, for pickle and copy."""
    patched = _patched_class(old)
    return patched.__new__(patched)


def _is_plain_rms_norm(module: nn.Module) -> bool:
    """Whether a module of another library has the looks of an RMSNorm and computes one."""
    weight = getattr(module, "weight", None)
    return (
        type(module).__name__.lower().endswith("rmsnorm")
        and not isinstance(module, (_Patched, nn.RMSNorm))
        and isinstance(weight, nn.Parameter)
        and weight.dim() == 1
        and 1 <= weight.numel() <= MAX_HIDDEN
        and list(module._parameters) == ["weight"]
        and isinstance(epsilon_of(module), float)
        and _takes_one_tensor(module)
        and computes_rms_norm(module)
    )


def _takes_one_tensor(module: nn.Module) -> bool:
    """A second parameter, as of a gate or a residual, would be lost on ours."""
    return len(inspect.signature(type(module).forward).parameters) == 2

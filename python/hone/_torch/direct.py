"""Calls of PyTorch's operators of Hone that nobody but the kernel has to see: they pass by the dispatcher.

torch.library costs each call of an operator in Python 2.6 us, more than all our checks. Where neither a
gradient is wanted nor a compiler, a mode, a transform, a tracer, a profiler or a tensor subclass is at work,
what the dispatcher ends in is called at once; else, and wherever that raises what may be the dispatcher's
affair, the operator. What is asked of PyTorch for that is not public: where any of it is missing, all calls
are the operator's. Operators that write to their arguments always go through the dispatcher, which counts
versions. Called by registered.py; the functions may be called from any thread.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..errors import HoneError

# What has to be 0, False or None: how many modes of either kind see calls, whether torch.func, a tracer or a
# profiler is at work.
_WATCHERS = {
    "modes": "_len_torch_dispatch_stack",
    "function_modes": "_len_torch_function_stack",
    "transforms": "_are_functorch_transforms_active",
    "tracing": "_is_tracing",
    "profiled": "_autograd._profiler_enabled",
}
_NOTHING = type(None)
_TENSORS = frozenset({Tensor, torch.nn.Parameter})
# Types of arguments that need no conversion, by what a schema calls them.
_TYPES = {
    "Tensor": _TENSORS,
    "float": frozenset({float}),
    "int": frozenset({int}),
    "SymInt": frozenset({int}),
    "bool": frozenset({bool}),
    "str": frozenset({str}),
}


def direct_call(
    schema: str, operator: Any, implementation: Callable[..., Any], known: Any
) -> Callable[..., Any]:
    """A function with the operator's arguments that calls the implementation where it may, else the
    operator. `known`: a KnownCall (prepared.py), whose look-up then stands in the function, or None."""
    watchers = _watchers()
    if watchers is None or "!" in schema:
        return operator
    name, _, rest = schema.partition("(")
    pieces = [piece.rpartition(" ")[::2] for piece in rest.partition(") ->")[0].split(", ")]
    arguments = [(kind, text.partition("=")[0]) for kind, text in pieces]
    names: Dict[str, Any] = {
        "operator": operator, "implementation": implementation, "HoneError": HoneError,
        "grad_enabled": torch.is_grad_enabled, "forward_ad": forward_ad,
        "is_compiling": torch.compiler.is_dynamo_compiling, **watchers, **({} if known is None else known.names),
    }  # fmt: skip
    for kind, argument in arguments:
        optional = frozenset({_NOTHING}) if kind.endswith("?") else frozenset()
        names[f"{argument}_types"] = _TYPES[kind.rstrip("?")] | optional
    # Variables of a function around it, since torch.compile looks for global ones in the module.
    tries = () if known is None else known.lines
    inner = _lines(name, ", ".join(text for _, text in pieces), arguments, tries)
    text = "\n    ".join([f"def make({', '.join(names)}):", *inner, f"return {name}"])
    found: Dict[str, Any] = {}
    exec(compile(text, f"<hone::{name} direct>", "exec"), globals(), found)
    return found["make"](**names)


def _watchers() -> Any:
    """Functions of PyTorch by our names; None where one is missing."""
    found = {}
    for name, path in _WATCHERS.items():
        function: Any = torch._C
        for part in path.split("."):
            function = getattr(function, part, None)
        if function is None:
            return None
        found[name] = function
    known = hasattr(getattr(torch, "compiler", None), "is_dynamo_compiling")
    return found if known and hasattr(forward_ad, "_current_level") else None


def _lines(name: str, parameters: str, arguments: List[Any], tries: Sequence[str]) -> List[str]:
    given = ", ".join(argument for _, argument in arguments)
    wishes = " or ".join(
        f"{argument} is not None and {argument}.requires_grad" if "?" in kind else f"{argument}.requires_grad"
        for kind, argument in arguments
        if kind.startswith("Tensor")
    )
    tests = ["not is_compiling()"]  # first: a compiler that follows the call sees the operator alone
    tests += [f"type({argument}) in {argument}_types" for _, argument in arguments]
    tests += [f"not (grad_enabled() and ({wishes}))"]
    tests += [f"not {watcher}()" for watcher in _WATCHERS]
    tests += ["forward_ad._current_level < 0"]
    return [
        f"def {name}({parameters}):",
        f"    if {' and '.join(tests)}:",
        "        try:",
        *(f"            {line}" for line in tries),
        f"            return implementation({given})",
        "        except HoneError:",
        "            raise",
        "        except RuntimeError:  # of a tensor without memory, say, that the dispatcher understands",
        "            pass",
        f"    return operator({given})",
    ]

"""Hone's way of a case: what is prepared, what a call is handed, and the problems that are tuned for it.

A module of bench/torch_operators names the description; its fields follow from the case and from the case's
inputs, and the arguments of a call are the inputs of the same names. What differs, the module says.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))  # where hone is not installed

import torch  # noqa: E402

import hone  # noqa: E402
from hone._operators.prepare import KINDS  # noqa: E402

Case = Dict[str, Any]
Told = Dict[str, Any]  # inputs by name, as `Input` of torch_cases.py
Problem = Tuple[str, Dict[str, Any]]  # of `hone tune --op`: the family's name, and its static fields


class Ours(NamedTuple):
    """What Hone does for a case."""

    description: type
    # Fields that neither the case nor its inputs say.
    fields: Callable[[Case], Dict[str, Any]] = lambda _: {}
    # Arguments of a call that are no input of the same name: the names of the inputs that they are.
    names: Callable[[Case], Dict[str, str]] = lambda _: {}
    numbers: Dict[str, float] = {}  # arguments that are the same in every call
    # Tensors that are made once for an input set, and stay there under names that begin with `hone_`.
    kept: Callable[[Case], Told] = lambda _: {}
    # All arguments and the result of a call, where these are not the inputs and the outputs as they are.
    arguments: Optional[Callable[[Case, Dict[str, Any]], Dict[str, Any]]] = None
    result: Callable[[Any], Any] = lambda outputs: outputs
    # The problems to tune, where the description is not the problem of one family.
    problems: Optional[Callable[[Case], List[Problem]]] = None


def described(ours: Ours, case: Case, told: Told) -> Any:
    """The description of a case with these inputs."""
    kind = ours.description
    given = {"dtype": case.get("dtype", "bf16"), **_options(kind, told)}
    for field in dataclasses.fields(kind):
        key = kind.C_FIELDS.get(field.name, field.name).removeprefix("max_")
        if key in case:
            given[field.name] = case[key]
    return kind(**{**given, **ours.fields(case)})


def _options(kind: Any, told: Told) -> Dict[str, Any]:
    """Flags that are for tensors which are there, or are not; and words that are the dtype of one."""
    found: Dict[str, Any] = {}
    for tensor in getattr(KINDS[kind], "TENSORS", ()):
        names = [name for name in tensor.name.split() if name in told]
        if tensor.when in kind.__dataclass_fields__ and not tensor.written:
            found[tensor.when] = found.get(tensor.when, False) or bool(names)
        if names and tensor.dtype in kind.WORDS:
            found[tensor.dtype] = str(told[names[0]].dtype).removeprefix("torch.")
    return found


def sizes_of(description: Any, case: Case) -> Any:
    """What says how much a call is of: a number, or several."""
    if len(description.CALL_SIZES) > 1:
        return tuple(case[name] for name in description.CALL_SIZES)
    return case[description.LIMIT.removeprefix("max_")]


def problems(ours: Ours, case: Case, told: Told) -> List[Problem]:
    """What `hone tune` has to have tuned for a case."""
    if ours.problems:
        return ours.problems(case)
    description = described(ours, case, told)
    return [(description.FAMILY, description.problem_fields())]


def prepare(description: Any, sizes: Any) -> Any:
    """The operator; says when a kernel of it for a call of these sizes is not a winner of this very
    problem."""
    explained = hone.explain(description, sizes)
    for half in explained.get("parts", [explained]):
        if half["origin"] != "exact":
            hint = half.get("tune_command") or "no command would tune it"
            print(f"{description}, {sizes}: {half['origin']}, not exact; {hint}", file=sys.stderr)
    return hone.prepare(description)


def prepared_call(ours: Ours, case: Case, told: Told, inputs: Dict[str, Any]) -> Callable[..., Any]:
    """A function of an input set. The workspace is taken once: calls that follow one another on a stream
    share it, those of a captured graph as well."""
    description = described(ours, case, told)
    sizes = sizes_of(description, case)
    operator = prepare(description, sizes)
    fixed: Dict[str, Any] = dict(ours.numbers)
    size = operator.workspace_bytes(*(sizes if isinstance(sizes, tuple) else (sizes,)))
    if size:
        fixed["workspace"] = next(iter(inputs.values())).new_empty((size,), dtype=torch.uint8)
    others = (*getattr(operator, "NUMBERS", ()), "workspace")
    names = {name: name for name in getattr(operator, "GIVEN", ()) if name not in others}
    names.update(ours.names(case))

    def call(t: Dict[str, Any]) -> Any:
        for name, wanted in ours.kept(case).items():
            if name not in t:
                t[name] = wanted.make(t)
        if ours.arguments:
            given = ours.arguments(case, t)
        else:
            given = {name: t.get(theirs) for name, theirs in names.items()}
        return ours.result(operator(**given, **fixed))

    return call

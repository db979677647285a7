"""Prepared operators of tensors [..., columns] and of weights, whose shapes and dtypes follow from the
description."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, Dict, List, Tuple

from .._native import library
from ..runtime import Runtime
from . import fast_path
from .arguments import Arguments, check_is_number, check_presence
from .base import Operator
from .tensors import Tensor, Wanted


class RowsOperator(Operator):
    """Base of the operators of calls.py, which declare the tensors of a call."""

    TENSORS: ClassVar[Tuple[Tensor, ...]]
    GIVEN: ClassVar[Tuple[str, ...]]  # the arguments of a call in their order, but for the stream
    NUMBERS: ClassVar[Tuple[str, ...]]  # those of them that are numbers

    def __init__(self, description: Any, runtime: Runtime) -> None:
        super().__init__(description, runtime)
        self.wanted: List[Wanted] = [wanted for tensor in self.TENSORS for wanted in tensor.of(description)]
        self._check = library.check
        self._plain: Callable[..., Any]  # for torch tensors that fit, from the first torch tensor on

    def _bind_torch(self, torch: Any) -> None:
        self._plain = fast_path.compiled(self, torch, (*self.GIVEN, "stream"), fresh=False)
        super()._bind_torch(torch)

    def fresh_call(self, torch: Any, parameters: Tuple[str, ...]) -> Callable[..., Any]:
        """A function of these parameters that makes what is written, for PyTorch's operators; fast_path.py
        says more."""
        return fast_path.compiled(self, torch, parameters, fresh=True)

    def _call_checked(self, given: Tuple[Any, ...], stream: Any) -> Any:
        values = dict(zip(self.GIVEN, given))
        first = given[0]
        arguments, known_stream = self._begin(first, stream)
        pointers: Dict[str, Any] = {}
        for wanted in self._in_order():
            self._read(arguments, wanted, values, pointers, first)
        for name in self.NUMBERS:
            check_is_number(values[name], name)
            pointers[name] = values[name]
        outputs = [wanted.name for wanted in self.wanted if wanted.written and wanted.present]
        if "workspace" in values:
            needed = self.workspace_bytes(arguments.rows)
            pointers["workspace"] = self._checked_workspace(arguments, values["workspace"], needed, first)
        arguments.check_writable(*outputs, "workspace")
        self._run_checked(arguments, known_stream, arguments.rows, **pointers)
        found = tuple(values[name] for name in outputs)
        return found if len(found) > 1 else found[0]

    def _in_order(self) -> List[Wanted]:
        """Inputs, of which the first sets the rows, before what is written."""
        first = self.GIVEN[0]
        return sorted(self.wanted, key=lambda wanted: (wanted.written, wanted.name != first))

    def _read(
        self, arguments: Arguments, wanted: Wanted, values: Dict[str, Any], pointers: Dict[str, Any],
        first: Any,
    ) -> None:  # fmt: skip
        """Checks one tensor, which is made where it is written and not given."""
        name, dtypes = wanted.name, wanted.dtypes
        shape: Any = wanted.shape
        if not wanted.present or not wanted.written and wanted.option:
            check_presence(values[name], name, wanted.option, wanted.present)
        if not wanted.present:
            return
        if values[name] is None and wanted.written:
            made = arguments.shape(*shape) if wanted.rows else shape
            values[name] = arguments.allocate(name, dtypes[0], made, first)
        value = values[name]
        if wanted.said:
            found, pointers[name], strides = arguments.heads(value, name, dtypes, shape)
            pointers.update({size: found[place] for place, size in wanted.said})
            if wanted.strided:
                pointers[wanted.stride] = strides[0]
        elif wanted.rows and wanted.strided:
            pointers[name], pointers[wanted.stride] = arguments.matrix(value, name, dtypes, shape[-1])
        elif wanted.strided:
            pointers[name], pointers[wanted.stride] = arguments.weight(value, name, dtypes, shape)
        elif wanted.rows and name == self.GIVEN[0]:
            pointers[name] = arguments.leading(value, name, dtypes, shape)
        else:
            pointers[name] = arguments.compact(
                value, name, dtypes, arguments.shape(*shape) if wanted.rows else shape
            )

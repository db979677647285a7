"""Prepared operators of tensors of heads, [batch, tokens, heads, head_dim]: what attention and its append have in
common. Their classes read the arguments of a call through an object, a careful or a fast one."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, Tuple, Union

from ..runtime import Runtime
from .arguments import Arguments, check_presence
from .base import Operator
from .description import CODES
from .plain_arguments import PlainArguments

Reader = Union[Arguments, PlainArguments]
INDICES = ("int32",)
FLOATS = ("fp32",)
Option = Tuple[str, str, bool]  # an argument that a call has or has not, with what, and whether


class HeadsOperator(Operator):
    """Base of the operators of calls.py that are not of rows."""

    WRITTEN: ClassVar[Tuple[str, ...]]  # arguments
    WORKS: ClassVar[bool] = False  # whether calls have a workspace

    description: Any
    _options: Tuple[Option, ...]

    def __init__(self, description: Any, runtime: Runtime) -> None:
        super().__init__(description, runtime)
        self._dtypes = (description.dtype,)
        kv_dtype = getattr(description, "kv_dtype", "same")
        self._kv_dtypes = CODES.get(kv_dtype, self._dtypes)
        self._quantized = kv_dtype != "same"
        self._kv_row = (description.kv_heads, description.head_dim)

    def _scales(self) -> Tuple[Option, ...]:
        return tuple((name, "kv_dtype='fp8'", self._quantized) for name in ("k_scale", "v_scale"))

    def _read_table(self, arguments: Reader, given: Any, sequences: int, values: Dict[str, Any]) -> int:
        """Reads the page table; returns the tokens that a sequence has room for."""
        shape, values["page_table"], (values["page_table_stride"],) = arguments.heads(
            given.page_table, "page_table", INDICES, (sequences, "pages")
        )
        return shape[1] * self.description.page_size

    def _bind_torch(self, torch: Any) -> None:
        self._plain = PlainArguments(torch, self.device)
        super()._bind_torch(torch)

    def _read(self, arguments: Reader, given: Any) -> Tuple[Tuple[int, ...], Dict[str, Any], Any]:
        """The sizes of a call, what else run_pointers() takes, and what the call returns."""
        raise NotImplementedError

    def _check_presence(self, given: Any) -> None:
        for name, option, wanted in self._options:
            check_presence(getattr(given, name), name, option, wanted)

    def _call_plain(self, given: Any, stream: Any) -> Any:
        """For torch tensors that fit. Raises one of NOT_PLAIN for others."""
        raw_stream = self._plain_stream(stream)
        sizes, values, results = self._read(self._plain, given)
        if self.WORKS:
            workspace = self._plain_workspace(given.workspace, self.workspace_bytes(*sizes), given.q, stream)
            if workspace is not None:
                values["workspace"] = workspace.data_ptr()
        self.run_pointers(raw_stream, *sizes, **values)
        return results

    def _call_checked(self, given: Any, stream: Any) -> Any:
        arguments, known_stream = self._begin(given.q, stream)
        sizes, values, results = self._read(arguments, given)
        if self.WORKS:
            needed = self.workspace_bytes(*sizes)
            values["workspace"] = self._checked_workspace(arguments, given.workspace, needed, given.q)
        arguments.check_writable(*self.WRITTEN)
        self._run_checked(arguments, known_stream, *sizes, **values)
        return results

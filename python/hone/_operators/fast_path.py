"""Writes the Python of calls with torch tensors that are as they should be, for one prepared operator.

What the operator takes is known once it is prepared. So its checks are written out in a straight line, with
everything looked up before: no loop, no option, no method of ours stands between a call and libhone. The text
of such a function is at ``function.__doc__``. It raises one of NOT_PLAIN before anything is enqueued where a
tensor is not as it should be, and leaves it to the careful way to find out whether that is a mistake.
"""

from __future__ import annotations

import ctypes
import linecache
import math
import re
import struct
import zlib
from typing import Any, Callable, Dict, List, Sequence, Tuple

from .._native import arrays, streams, structs
from .arguments import WORKSPACE_ALIGNMENT
from .base import NotPlain
from .tensors import Wanted

_MOST_STREAMS = 1024  # that are remembered


class _Streams(Dict[int, ctypes.c_void_p]):
    """CUstreams as ctypes, which takes an object of its own faster than a number."""

    def __missing__(self, stream: int) -> ctypes.c_void_p:
        if len(self) >= _MOST_STREAMS:
            self.clear()
        found = self[stream] = ctypes.c_void_p(stream)
        return found


_STREAMS = _Streams()


def compiled(operator: Any, torch: Any, parameters: Sequence[str], fresh: bool) -> Callable[..., Any]:
    """A function of these parameters, which returns what the operator writes.

    ``fresh``: what is written is always made, the stream is the current one, inputs have no gaps, and the
    caller knows that dtype, device and columns of an `x` that comes first are right; else the parameters have
    everything that is written, the workspace, and `stream`.
    """
    writer = _Writer(operator, torch, parameters, fresh)
    text = "\n".join(writer.lines()) + "\n"
    name = f"<hone {operator.CALL} {zlib.crc32(text.encode()):08x}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)  # for tracebacks
    exec(compile(text, name, "exec"), writer.names)
    function = writer.names["plain"]
    function.__doc__ = text
    return function


class _Writer:
    def __init__(self, operator: Any, torch: Any, parameters: Sequence[str], fresh: bool) -> None:
        self._operator, self._torch, self._fresh = operator, torch, fresh
        self._parameters = list(parameters)
        self._inputs = [wanted for wanted in operator.wanted if not wanted.written]
        self._outputs = [wanted for wanted in operator.wanted if wanted.written and wanted.present]
        self._first = next(wanted for wanted in self._inputs if wanted.name == parameters[0])
        self._works = "workspace" in operator.GIVEN
        self._idle = [name for name in operator.NUMBERS if fresh and self._is_idle(name)]
        self.names: Dict[str, Any] = {
            "__name__": __name__, "NotPlain": NotPlain, "device": operator.device,
            "handle": operator._pointer, "run": operator._run, "check": operator._check,
            "sizes": operator.sizes,
            "streams": _STREAMS, "raw_stream": streams.raw_stream, "empty": torch.empty,
            "current_stream": streams.torch_stream_getter(torch), "empty_like": torch.empty_like,
            "current_device": torch.cuda.current_device, "uint8": torch.uint8,
        }  # fmt: skip

    def lines(self) -> List[str]:
        body = [*self._absent(), *self._read_first()]
        for wanted in self._inputs:
            if wanted.present and wanted is not self._first:
                body += self._read(wanted)
        if self._torch.cuda.device_count() > 1:
            body += ["if current_device() != device:", "    raise NotPlain"]
        if not self._fresh:
            for wanted in self._outputs:
                body += [f"if {wanted.name} is not None and ({self._misfit(wanted)}):", "    raise NotPlain"]
        body += self._find_workspace() + self._make() + self._launch()
        set_shape = f"shape = {self._first.name}.shape"
        if not any(re.search(r"(?<![\w.])shape\b", line) for line in body if line != set_shape):
            body.remove(set_shape)
        return [f"def plain({', '.join(self._parameters)}):", *(f"    {line}" for line in body)]

    def _is_idle(self, number: str) -> bool:
        """Whether a number belongs to nothing: epsilon without a norm, a factor that the operator does not
        have."""
        if number == "epsilon":
            return any(w.name == "norm_weight" and not w.present for w in self._operator.wanted)
        return getattr(self._operator.description, number, True) is False

    def _absent(self) -> List[str]:
        names = [w.name for w in self._operator.wanted if not w.present and w.name in self._parameters]
        names += self._idle
        if not names:
            return []
        return [f"if {' or '.join(f'{name} is not None' for name in names)}:", "    raise NotPlain"]

    def _bad_dtype(self, wanted: Wanted) -> str:
        """A condition; remembers the dtypes that are allowed."""
        dtypes = tuple(dict.fromkeys(arrays.torch_dtype(self._torch, dtype) for dtype in wanted.dtypes))
        self.names[f"{wanted.name}_dtype"], self.names[f"{wanted.name}_dtypes"] = dtypes[0], dtypes
        if len(dtypes) == 1:
            return f"{wanted.name}.dtype is not {wanted.name}_dtype"
        return f"{wanted.name}.dtype not in {wanted.name}_dtypes"

    def _read_first(self) -> List[str]:
        """The first tensor sets the leading dimensions and the rows."""
        name, columns = self._first.name, self._first.shape
        bad = f"{self._bad_dtype(self._first)} or {name}.get_device() != device"
        bad += f" or shape[-1] != {columns[-1]}" if columns else ""
        bad += f" or shape[{-len(columns)}:] != {columns}" if len(columns) > 1 else ""
        known = self._fresh and name == "x"
        lines = [f"shape = {name}.shape"] + ([] if known else [f"if {bad}:", "    raise NotPlain"])
        lines += self._stride(self._first)
        lines.append(f"count = {name}.numel()" + (f" // {math.prod(columns)}" if columns else ""))
        return lines + ["if not count:", "    raise NotPlain"] if self._fresh else lines

    def _shape(self, wanted: Wanted) -> str:
        if not wanted.rows:
            self.names[f"{wanted.name}_shape"] = wanted.shape
            return f"{wanted.name}_shape"
        if wanted.shape == self._first.shape:
            return "shape"
        leading = f"shape[:{-len(self._first.shape)}]" if self._first.shape else "shape"
        columns = "".join(f"{size}, " for size in wanted.shape)
        return f"{leading} + ({columns})" if wanted.shape else leading

    def _misfit(self, wanted: Wanted, contiguous: bool = True) -> str:
        """A condition: whether a tensor is not what is wanted."""
        name = wanted.name
        tests = [self._bad_dtype(wanted), f"{name}.get_device() != device"]
        if wanted.said:
            tests.append(f"{name}.dim() != {len(wanted.shape)}")
            fixed = [(i, size) for i, size in enumerate(wanted.shape) if isinstance(size, int)]
            tests += [f"{name}.shape[{i}] != {size}" for i, size in fixed]
        else:
            tests.append(f"{name}.shape != {self._shape(wanted)}")
        tests += [f"not {name}.is_contiguous()"] * contiguous
        return " or ".join(tests)

    def _read(self, wanted: Wanted) -> List[str]:
        strided = wanted.strided and not self._fresh
        lines = [f"if {self._misfit(wanted, not strided)}:", "    raise NotPlain"]
        lines += [f"{size} = {wanted.name}.shape[{place}]" for place, size in wanted.said]
        return lines + self._stride(wanted) if strided else lines

    def _stride(self, wanted: Wanted) -> List[str]:
        """Finds out how far rows lie apart."""
        name, columns = wanted.name, wanted.shape[-1] if wanted.shape else 1
        if self._fresh or not wanted.strided:
            return [f"if not {name}.is_contiguous():", "    raise NotPlain"]
        return [
            f"if {name}.is_contiguous():",
            f"    {wanted.stride} = {columns}",
            f"elif {name}.dim() == 2 and {name}.stride(1) == 1 and {name}.stride(0) >= {columns}:",
            f"    {wanted.stride} = {name}.stride(0)",
            "else:",
            "    raise NotPlain",
        ]

    def _find_workspace(self) -> List[str]:
        lines = ["size = sizes[count]"]
        if not self._works:
            return lines
        first = self._first.name
        make = f"workspace = empty((size[1],), dtype=uint8, device={first}.device)"
        if self._fresh:
            at = "workspace_at = workspace.data_ptr() if size[1] else 0"
            return [*lines, "if size[1]:", f"    {make}", at]
        self.names["ALIGNMENT"] = WORKSPACE_ALIGNMENT
        return [
            *lines,
            "if workspace is None:",
            "    if size[1]:",
            "        if stream is not None:  # whose memory it has to be",
            "            raise NotPlain",
            f"        {make}",
            "    workspace_at = workspace.data_ptr() if size[1] else 0",
            "else:",
            "    workspace_at = workspace.data_ptr()",
            "    if (workspace.get_device() != device or not workspace.is_contiguous()",
            "            or workspace.nbytes < size[1] or workspace_at % ALIGNMENT):",
            "        raise NotPlain",
        ]

    def _make(self) -> List[str]:
        """Makes what is written and not given."""
        lines = []
        for wanted in self._outputs:
            self._bad_dtype(wanted)  # remembers the dtype to make
            alike = wanted.rows and wanted.shape == self._first.shape and wanted.dtypes == self._first.dtypes
            text = f"{wanted.name} = empty_like({self._first.name})"
            if not alike:
                shape, first = self._shape(wanted), self._first.name
                text = f"{wanted.name} = empty({shape}, dtype={wanted.name}_dtype, device={first}.device)"
            lines += [text] if self._fresh else [f"if {wanted.name} is None:", f"    {text}"]
        return lines

    def _value(self, member: str) -> str:
        """What a member of the arguments is."""
        for wanted in self._operator.wanted:
            if member == wanted.name:
                return f"{member}.data_ptr()" if wanted.present else "0"
            if member == wanted.stride:
                read = wanted.present and wanted.strided and not wanted.written and not self._fresh
                return member if read else str(wanted.shape[-1]) if wanted.present and wanted.strided else "0"
        if member == "workspace":
            return "workspace_at"
        if member in self._idle:
            return "0"
        said = [size for wanted in self._operator.wanted if wanted.present for _, size in wanted.said]
        return member if member in self._parameters or member in said else "0"

    def _packing(self) -> Tuple[str, str]:
        """The values of the members of the arguments, and their format: what is 0 always is padding."""
        values, packing = [str(self._operator._bytes)], "@I"
        for name, kind in self._operator.ARGUMENTS._fields_[1:]:
            value = self._value(name)
            if value == "0":
                packing += f"{ctypes.sizeof(kind)}x"
            else:
                packing += structs.CODES[kind]
                values.append(value)
        return ", ".join(values), packing

    def _launch(self) -> List[str]:
        values, packing = self._packing()
        self.names["pack"] = struct.Struct(packing).pack
        stream = "current_stream(device)"
        if not self._fresh:
            stream += " if stream is None else raw_stream(stream)"
        results = ", ".join(wanted.name for wanted in self._outputs)
        return [
            f"status = run(handle, streams[{stream}], pack({values}), size[0])",
            "if status:",
            "    check(status)",
            f"return {results}",
        ]

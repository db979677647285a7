"""What all prepared operators have in common: the C handle, and the two ways of a call.

Torch tensors that fit are recognized by a few attribute checks and launched at once. Everything else (other
arrays, mistakes) goes the careful way of arguments.py, which costs several microseconds more and either runs
or says what is wrong. Which way was taken is not visible.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import struct
import weakref
from typing import Any, Callable, ClassVar, ContextManager, Dict, Tuple, Type

from .._native import arrays, library, runtime_structs, streams, structs
from ..errors import BadArgumentError
from ..runtime import Runtime, runtime_of
from .arguments import WORKSPACE_ALIGNMENT, Arguments, check_size
from .description import Description

_MISALIGNED = 3  # HONE_MISALIGNED
_MOST_SIZES = 4096  # that are remembered: they change from call to call


class NotPlain(Exception):
    """These arguments have to go the careful way."""


# What plain calls raise before anything is enqueued: the careful way finds out what it is, and says so.
NOT_PLAIN = (NotPlain, AttributeError, IndexError, BadArgumentError, struct.error)


class _NoTensor:
    """Stands for torch.Tensor until the first torch tensor comes: nothing is of this type."""


class _Sizes(Dict[int, Tuple[ctypes.c_int64, int]]):
    """Rows of a call as C takes them, and the bytes of its workspace, which the library is asked for once."""

    def __init__(self, handle: int) -> None:
        super().__init__()
        self._handle = handle

    def __missing__(self, rows: int) -> Tuple[ctypes.c_int64, int]:
        size = ctypes.c_size_t()
        workspace = library.function("hone_operator_workspace")
        library.check(workspace(self._handle, rows, ctypes.byref(size)))
        if len(self) >= _MOST_SIZES:
            self.clear()
        found = self[rows] = ctypes.c_int64(rows), size.value
        return found


_packing = functools.lru_cache(maxsize=None)(structs.packing)


def _prepared_anew(kind: Type[Operator], description: Description, device: int) -> Operator:
    runtime = runtime_of(device)
    try:
        return kind(description, runtime)
    finally:
        runtime.give_warnings(3)


class Operator:
    """Base of prepared operators; holds the C handle, which goes with the last reference.

    The arguments of a run are packed into bytes (structs.py): those are made faster than a buffer of the
    thread is looked up and filled, and need nobody's care.
    """

    CALL: ClassVar[str]  # the middle of hone_<CALL>_run
    ARGUMENTS: ClassVar[Type[ctypes.Structure]]
    run_pointers: Callable[..., None]

    def __init__(self, description: Description, runtime: Runtime) -> None:
        """Loads or compiles every kernel that a call can reach. Raises HoneError."""
        self.description = description
        self.device = runtime.device
        prepare = library.function(f"hone_{description.C_NAME}_prepare")
        destroy = library.function("hone_operator_destroy")
        self._pointer = ctypes.c_void_p()
        # Before there is a handle, as Ctrl-C may come while kernels are compiled. Not at exit, when the driver may
        # be gone before us.
        weakref.finalize(self, destroy, self._pointer).atexit = False
        described = ctypes.byref(description.to_struct())
        library.check(prepare(runtime.handle, described, ctypes.byref(self._pointer)))
        self._handle = self._pointer.value or 0
        self._run = library.bare_function(f"hone_{self.CALL}_run")
        packing = _packing(self.ARGUMENTS)
        self._pack, self._bytes = packing.pack, packing.size
        self.sizes = _Sizes(self._handle)
        self._tensor: Any = _NoTensor  # type of the first argument of calls that may go the fast way

    def __repr__(self) -> str:
        return f"<hone operator {self.description} on CUDA device {self.device}>"

    def __copy__(self) -> Operator:
        """Itself, which nothing changes: a second one of the same handle would be left with none."""
        return self

    def __deepcopy__(self, _memo: Any) -> Operator:
        return self

    def __reduce__(self) -> Tuple[Any, ...]:
        """Another process prepares it anew."""
        return _prepared_anew, (type(self), self.description, self.device)

    def report(self) -> Dict[str, Any]:
        """What preparing chose, bucket by bucket: the members are those of docs/json-output.md."""
        return json.loads(self._report(runtime_structs.JSON))

    def report_text(self) -> str:
        """The same for people: lines that end in a newline."""
        return self._report(runtime_structs.TEXT)

    def workspace_bytes(self, rows: int) -> int:
        """Bytes of device memory, aligned to 256, that a call of up to `rows` rows needs; 0: none."""
        return self.sizes[check_size(rows, "rows")][1]

    def _report(self, text_format: int) -> str:
        report = library.function("hone_operator_report")
        return library.read_text(lambda *text: report(self._handle, text_format, *text))

    def _bind_torch(self, torch: Any) -> None:
        """Remembers what the fast way needs of PyTorch."""
        self._torch = torch
        self._current_stream = streams.torch_stream_getter(torch)
        # With several GPUs, the caller's current one may be another than the operator's.
        several = torch.cuda.device_count() > 1
        self._current_device = torch.cuda.current_device if several else None
        self._tensor = torch.Tensor  # last: opens the fast way, perhaps to other threads

    def _plain_stream(self, stream: Any) -> int:
        if self._current_device is not None and self._current_device() != self.device:
            raise NotPlain
        return self._current_stream(self.device) if stream is None else streams.raw_stream(stream)

    def _plain_workspace(self, given: Any, needed: int, likeness: Any, stream: Any) -> Any:
        """A torch tensor that holds the workspace of a call; None where none is needed."""
        if given is None:
            if not needed:
                return None
            if stream is not None:  # whose memory it has to be
                raise NotPlain
            return self._torch.empty((needed,), dtype=self._torch.uint8, device=likeness.device)
        if (
            given.get_device() == self.device
            and given.is_contiguous()
            and given.nbytes >= needed
            and given.data_ptr() % WORKSPACE_ALIGNMENT == 0
        ):
            return given
        raise NotPlain

    def _begin(self, first: Any, stream: Any) -> Tuple[Arguments, int]:
        """Begins a careful call; opens the fast way when `first` is a torch tensor."""
        if self._tensor is _NoTensor and arrays.is_torch_tensor(first):
            self._bind_torch(arrays.torch())
        known = streams.current_stream(first, self.device) if stream is None else streams.raw_stream(stream)
        description = self.description
        return Arguments(self.device, description.most_rows, description.LIMIT, known), known

    def _checked_workspace(self, arguments: Arguments, given: Any, needed: int, likeness: Any) -> int:
        """The pointer of the workspace of a call, which is made where it is not given; 0: none is needed."""
        if given is None:
            if not needed:
                return 0
            with arguments.on_stream():
                given = arguments.allocate("workspace", "uint8", (needed,), likeness)
        return arguments.workspace(given, needed)

    def _run_checked(self, arguments: Arguments, *values: Any, **named: Any) -> None:
        """run_pointers() on the operator's device; an error names the argument, if it can be told which."""
        with self._on_device():
            try:
                self.run_pointers(*values, **named)
            except BadArgumentError as error:
                culprits = arguments.misaligned() if error.status == _MISALIGNED else ""
                if culprits:
                    raise ValueError(culprits) from error
                raise

    def _on_device(self) -> ContextManager[Any]:
        """Makes the operator's device current where PyTorch is in use; other libraries' users do so
        themselves."""
        torch = arrays.torch()
        if torch is None or not torch.cuda.is_initialized():
            return contextlib.nullcontext()
        return torch.cuda.device(self.device)

"""The arguments of one call of an operator, checked one by one: the careful way of _operator.py.

Errors are TypeError and ValueError that name the argument, the value found, and what is allowed.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, ContextManager, List, Optional, Sequence, Tuple, Union

from .._native import arrays, streams
from .._native.integers import integer

WORKSPACE_ALIGNMENT = 256  # bytes


class Arguments:
    """The first matrix sets the rows that every other one must have. One object a call, one thread."""

    def __init__(self, device: int, most_rows: int, limit: str, stream: int) -> None:
        """`limit` is what the description calls `most_rows`."""
        self.rows = 0
        self._device = device
        self._most_rows = most_rows
        self._limit = limit
        self._stream = stream
        self._leading: Optional[Tuple[int, ...]] = None  # dimensions before the columns
        self._seen: List[Tuple[arrays.ArrayView, int]] = []  # with strides; keeps DLPack capsules alive

    def matrix(self, value: Any, name: str, dtypes: Sequence[str], columns: int) -> Tuple[int, int]:
        """(pointer, row stride in elements) of an array [..., columns]."""
        array = self._view(value, name, dtypes)
        rows, stride = arrays.rows_of(array, columns)
        if self._leading is None:
            self._set_leading(array, array.shape[:-1], rows)
        arrays.check_shape(array, self.shape(columns))
        self._seen.append((array, stride))
        return array.pointer, stride

    def leading(self, value: Any, name: str, dtypes: Sequence[str], shape: Tuple[int, ...] = ()) -> int:
        """The pointer of a contiguous array [..., *shape], of one element a row where nothing is said; it
        comes first."""
        array = self._view(value, name, dtypes)
        arrays.check_contiguous(array)
        leading = array.shape[: max(len(array.shape) - len(shape), 0)]
        self._set_leading(array, leading, math.prod(leading))
        arrays.check_shape(array, self.shape(*shape))
        self._seen.append((array, 0))
        return array.pointer

    def weight(
        self, value: Any, name: str, dtypes: Sequence[str], shape: Tuple[int, int]
    ) -> Tuple[int, int]:
        """(pointer, row stride in elements) of an array of `shape`, whatever the rows of the call."""
        array = self._view(value, name, dtypes)
        arrays.check_shape(array, shape)
        _, stride = arrays.rows_of(array, shape[1])
        self._seen.append((array, stride))
        return array.pointer, stride

    def heads(
        self, value: Any, name: str, dtypes: Sequence[str], shape: Sequence[Union[int, str]]
    ) -> Tuple[Tuple[int, ...], int, Tuple[int, ...]]:
        """(shape, pointer, strides but the last in elements) of an array, whose last dimension is contiguous;
        of dimensions without a second element the stride is 0. A word in `shape` allows any size."""
        array = self._view(value, name, dtypes)
        _check_sizes(array, shape)
        strides = _head_strides(array)
        uneven = (stride for stride in strides if arrays.misaligned(array, stride))
        self._seen.append((array, next(uneven, 0)))
        return array.shape, array.pointer, strides

    def compact(self, value: Any, name: str, dtypes: Sequence[str], shape: Tuple[int, ...]) -> int:
        """The pointer of a contiguous array of `shape`."""
        array = self._view(value, name, dtypes)
        arrays.check_shape(array, shape)
        arrays.check_contiguous(array)
        self._seen.append((array, 0))
        return array.pointer

    def workspace(self, value: Any, needed_bytes: int) -> int:
        """The pointer of a contiguous array of any shape and dtype."""
        array = self._view(value, "workspace", ())
        arrays.check_contiguous(array)
        found = math.prod(array.shape) * arrays.ITEM_BYTES.get(array.dtype, 0)
        if found < needed_bytes:
            raise ValueError(f"workspace: it has {found} bytes; needed are {needed_bytes}")
        if array.pointer % WORKSPACE_ALIGNMENT:
            raise ValueError(
                f"workspace: its address is {array.pointer:#x}; allowed are multiples of "
                f"{WORKSPACE_ALIGNMENT} bytes"
            )
        self._seen.append((array, 0))
        return array.pointer

    def check_writable(self, *names: str) -> None:
        """Raises for those of these names, among what was checked so far, that must not be written."""
        for array, _ in self._seen:
            if array.name in names:
                arrays.check_writable(array)

    def allocate(self, name: str, dtype: str, shape: Tuple[int, ...], likeness: Any) -> Any:
        """A new torch tensor where `likeness` is one. Raises ValueError where not."""
        torch = arrays.torch()
        if not arrays.is_torch_tensor(likeness):
            raise ValueError(
                f"{name}: it is missing, and only torch tensors can be made here; needed is an array of "
                f"shape {list(shape)} and dtype {dtype} on CUDA device {self._device}"
            )
        return torch.empty(shape, dtype=arrays.torch_dtype(torch, dtype), device=likeness.device)

    def on_stream(self) -> ContextManager[Any]:
        """Within it PyTorch makes tensors for the stream of the call: those for another would be given to
        somebody else before the call's kernels are done with them."""
        torch = arrays.torch()
        if torch is None or not torch.cuda.is_initialized():
            return contextlib.nullcontext()
        return streams.torch_stream_context(torch, self._stream, self._device)

    def shape(self, *last: int) -> Tuple[int, ...]:
        """The leading dimensions of the matrices, and `last`."""
        assert self._leading is not None
        return (*self._leading, *last)

    def misaligned(self) -> str:
        """Which arguments are no multiples of 16 bytes, in words; "" when all are. Scales of rows are read
        one by one."""
        found = [
            arrays.misaligned(array, stride)
            for array, stride in self._seen
            if array.name not in ("scale", "x_scales")
        ]
        return "; ".join(text for text in found if text)

    def _view(self, value: Any, name: str, dtypes: Sequence[str]) -> arrays.ArrayView:
        array = arrays.view(value, name, self._stream)
        if dtypes:
            arrays.check_dtype(array, dtypes)
        arrays.check_device(array, self._device)
        return array

    def _set_leading(self, first: arrays.ArrayView, leading: Tuple[int, ...], rows: int) -> None:
        self._leading, self.rows = leading, rows
        if rows > self._most_rows:
            raise ValueError(
                f"{first.name}: it has {rows} rows; allowed are up to {self._most_rows}, the "
                f"{self._limit} that this operator was prepared for"
            )


def _check_sizes(array: arrays.ArrayView, wanted: Sequence[Union[int, str]]) -> None:
    """Raises ValueError; a word allows any size."""
    if not arrays.has_sizes(array.shape, wanted):
        allowed = ", ".join(map(str, wanted))
        raise ValueError(f"{array.name}: its shape is {list(array.shape)}; allowed is [{allowed}]")


def _head_strides(array: arrays.ArrayView) -> Tuple[int, ...]:
    """Raises ValueError where elements are apart, used twice, or in descending order."""
    *strides, last = (0 if size <= 1 else stride for size, stride in zip(array.shape, array.strides))
    if last > 1 or any(stride < 1 < size for size, stride in zip(array.shape, array.strides)):
        raise ValueError(
            f"{array.name}: its strides are {list(array.strides)} for shape {list(array.shape)}; allowed are "
            f"1 for the last dimension, and others from 1: make it contiguous first"
        )
    return tuple(strides)


def check_number(value: Any, name: str) -> float:
    """What is not given is 0. Raises TypeError for what is no number, ValueError for one that is not above
    0."""
    if value is None:
        return 0.0
    if not hasattr(value, "__float__"):
        raise TypeError(f"{name}: {value!r}; allowed is a number")
    if not 0 < value < math.inf:
        raise ValueError(f"{name}: {value!r}; allowed are numbers above 0")
    check_is_number(value, name)
    return float(value)


def check_count(value: Any, name: str, most: Optional[int] = None, why: str = "") -> int:
    """What is not given is 0. Raises TypeError for what is no integer, ValueError for one below 0 or above `most`,
    which `why` explains."""
    if value is None:
        return 0
    count = integer(value)
    if count is None:
        raise TypeError(f"{name}: {value!r}; allowed is an integer")
    if most is not None and count > most:
        raise ValueError(f"{name}: {count}; allowed are up to {most}, {why}")
    if count < 0:
        raise ValueError(f"{name}: {count}; allowed are integers from 0")
    return count


def check_size(value: Any, name: str) -> int:
    """A size of a call, as C takes it: ctypes would cut off what is longer. Raises TypeError and ValueError."""
    most = (1 << 63) - 1
    if value is None:
        raise TypeError(f"{name}: None; allowed is an integer")
    return check_count(value, name, most, "what fits 64 bits")


def check_is_number(value: Any, name: str) -> None:
    """Raises TypeError for what is no number, ValueError for an integer that no float holds."""
    if not hasattr(value, "__float__"):
        raise TypeError(f"{name}: {value!r}; allowed is a number")
    try:
        float(value)
    except OverflowError:
        raise ValueError(f"{name}: more than a float holds; allowed are numbers that fit 64 bits") from None


def check_presence(value: Any, name: str, option: str, wanted: bool) -> None:
    """Raises TypeError for an array that is missing, ValueError for one that the operator does not take."""
    if wanted and value is None:
        raise TypeError(f"{name}: it is missing; this operator was prepared with {option}")
    if not wanted and value is not None:
        raise ValueError(f"{name}: it is given, but this operator was prepared without {option}")

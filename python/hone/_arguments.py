"""The arguments of one call of an operator, checked one by one: the careful way of _operator.py.

Errors are TypeError and ValueError that name the argument, the value found, and what is allowed.
"""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence, Tuple

from . import _arrays


class Arguments:
    """The first matrix sets the shape that every other one must have. One object a call, one thread."""

    def __init__(self, device: int, hidden: int, max_rows: int, stream: int) -> None:
        self.rows = 0
        self._device = device
        self._hidden = hidden
        self._max_rows = max_rows
        self._stream = stream
        self._first: Optional[_arrays.ArrayView] = None
        self._seen: List[Tuple[_arrays.ArrayView, int]] = []  # with strides; keeps DLPack capsules alive

    def matrix(self, value: Any, name: str, dtypes: Sequence[str]) -> Tuple[int, int]:
        """(pointer, row stride in elements) of an array [..., hidden]."""
        array = self._view(value, name, dtypes)
        rows, stride = _arrays.rows_of(array, self._hidden)
        if self._first is None:
            self._first, self.rows = array, rows
            self._check_rows()
        _arrays.check_shape(array, self._first.shape)
        self._seen.append((array, stride))
        return array.pointer, stride

    def vector(
        self, value: Any, name: str, dtypes: Sequence[str], shape: Optional[Tuple[int, ...]] = None
    ) -> int:
        """The pointer of a contiguous array of `shape`, [hidden] if not given."""
        array = self._view(value, name, dtypes)
        _arrays.check_shape(array, (self._hidden,) if shape is None else shape)
        _arrays.check_contiguous(array)
        self._seen.append((array, 0))
        return array.pointer

    def workspace(self, value: Any, needed_bytes: int) -> int:
        """The pointer of a contiguous array of any shape and dtype."""
        array = self._view(value, "workspace", ())
        _arrays.check_contiguous(array)
        found = math.prod(array.shape) * _arrays.ITEM_BYTES.get(array.dtype, 0)
        if found < needed_bytes:
            raise ValueError(f"workspace: it has {found} bytes; needed are {needed_bytes}")
        if array.pointer % 256:
            raise ValueError(
                f"workspace: its address is {array.pointer:#x}; allowed are multiples of 256 bytes"
            )
        self._seen.append((array, 0))
        return array.pointer

    def check_writable(self, *names: str) -> None:
        """Of those that were checked so far."""
        for array, _ in self._seen:
            if array.name in names:
                _arrays.check_writable(array)

    def allocate(self, name: str, dtype: str, shape: Tuple[int, ...], likeness: Any) -> Any:
        """A new torch tensor where `likeness` is one. Raises ValueError where not."""
        torch = _arrays.torch()
        if not _arrays.is_torch_tensor(likeness):
            raise ValueError(
                f"{name}: it is missing, and only torch tensors can be made here; needed is an array of "
                f"shape {list(shape)} and dtype {dtype} on CUDA device {self._device}"
            )
        return torch.empty(shape, dtype=_arrays.torch_dtype(torch, dtype), device=likeness.device)

    @property
    def shape(self) -> Tuple[int, ...]:
        """Of the matrices: [..., hidden]."""
        assert self._first is not None
        return self._first.shape

    def misaligned(self) -> str:
        """Which arguments are no multiples of 16 bytes, in words; "" when all are."""
        found = [_arrays.misaligned(array, stride) for array, stride in self._seen if array.name != "scale"]
        return "; ".join(text for text in found if text)

    def _view(self, value: Any, name: str, dtypes: Sequence[str]) -> _arrays.ArrayView:
        array = _arrays.view(value, name, self._stream)
        if dtypes:
            _arrays.check_dtype(array, dtypes)
        _arrays.check_device(array, self._device)
        return array

    def _check_rows(self) -> None:
        if self.rows > self._max_rows:
            assert self._first is not None
            raise ValueError(
                f"{self._first.name}: it has {self.rows} rows; allowed are up to {self._max_rows}, the "
                f"max_rows that this operator was prepared for"
            )


def check_epsilon(epsilon: Any) -> None:
    """Raises TypeError for what is no number."""
    if not hasattr(epsilon, "__float__"):
        raise TypeError(f"epsilon: {epsilon!r}; allowed is a number")


def check_presence(value: Any, name: str, option: str, wanted: bool) -> None:
    """Raises TypeError for an array that is missing, ValueError for one that the operator does not take."""
    if wanted and value is None:
        raise TypeError(f"{name}: it is missing; this operator was prepared with {option}")
    if not wanted and value is not None:
        raise ValueError(f"{name}: it is given, but this operator was prepared without {option}")

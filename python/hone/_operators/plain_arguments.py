"""The arguments of one call, for torch tensors that are as they should be: the fast way of heads.py. It has
the methods of Arguments (arguments.py) that its operators use."""

from __future__ import annotations

from typing import Any, Dict, Sequence, Tuple, Union

from .._native import arrays
from .base import NotPlain


class PlainArguments:
    """One for an operator; any thread. Raises NotPlain, or AttributeError for what is no tensor: then it is
    for Arguments to say what is wrong, if anything is."""

    def __init__(self, torch: Any, device: int) -> None:
        self._torch = torch
        self._device = device
        self._dtypes: Dict[Sequence[str], Tuple[Any, ...]] = {}  # PyTorch's by the words for them

    def takes(self, value: Any, dtypes: Sequence[str]) -> bool:
        """Whether a tensor has one of these dtypes and the operator's device."""
        return value.get_device() == self._device and value.dtype in self._allowed(dtypes)

    def heads(
        self, value: Any, name: str, dtypes: Sequence[str], shape: Sequence[Union[int, str]]
    ) -> Tuple[Tuple[int, ...], int, Tuple[int, ...]]:
        """As that of Arguments."""
        found = value.shape
        if not self.takes(value, dtypes):
            raise NotPlain
        if len(found) != len(shape):
            raise NotPlain
        strides = []
        for size, wanted, stride in zip(found, shape, value.stride()):
            if (size != wanted and not isinstance(wanted, str)) or stride < 1 < size:
                raise NotPlain
            strides.append(0 if size <= 1 else stride)
        if strides.pop() > 1:
            raise NotPlain
        return found, value.data_ptr(), tuple(strides)

    def compact(self, value: Any, name: str, dtypes: Sequence[str], shape: Tuple[int, ...]) -> int:
        """As that of Arguments."""
        if self.takes(value, dtypes) and value.shape == shape and value.is_contiguous():
            return value.data_ptr()
        raise NotPlain

    def allocate(self, name: str, dtype: str, shape: Tuple[int, ...], likeness: Any) -> Any:
        """A new tensor on the device of `likeness`."""
        return self._torch.empty(shape, dtype=self._allowed((dtype,))[0], device=likeness.device)

    def _allowed(self, dtypes: Sequence[str]) -> Tuple[Any, ...]:
        found = self._dtypes.get(dtypes)
        if found is None:
            found = tuple(arrays.torch_dtype(self._torch, dtype) for dtype in dtypes)
            self._dtypes[dtypes] = found
        return found

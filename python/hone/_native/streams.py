"""Which CUDA stream a call goes to."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, ContextManager

from . import arrays
from .integers import integer


def raw_stream(stream: Any) -> int:
    """The CUstream of what a caller gave as `stream=`.

    An integer, an object of PyTorch (`cuda_stream`), CuPy (`ptr`), Numba (`handle`), or one with
    `__cuda_stream__`. Raises TypeError, and ValueError for an int that is none.
    """
    if type(stream) is int:
        return _handle(stream, "stream")
    if hasattr(stream, "__cuda_stream__"):
        return _handle(stream.__cuda_stream__()[1], "stream")
    for attribute in ("cuda_stream", "ptr", "handle"):
        found = getattr(stream, attribute, None)
        found = getattr(found, "value", found)  # a ctypes integer
        if isinstance(found, int):
            return _handle(found, "stream")
        if found is None and hasattr(stream, attribute):  # ctypes' null pointer
            return 0
    if integer(stream) is not None:  # asked last, since what is no integer costs an exception
        return _handle(stream, "stream")
    raise TypeError(
        f"stream: a {type(stream).__name__} is no stream; allowed are an int (CUstream) and objects with "
        f"__cuda_stream__, cuda_stream, ptr or handle"
    )


def _handle(number: Any, name: str) -> int:
    """A CUstream, as C takes it: ctypes would cut off what is longer."""
    handle = integer(number)
    if handle is None:
        raise TypeError(f"{name}: {number!r}; allowed is an int (CUstream)")
    if not 0 <= handle < 1 << 64:
        raise ValueError(f"{name}: {handle}; allowed are ints of 64 bits, from 0")
    return handle


def current_stream(array: Any, device: int) -> int:
    """Where the caller works: PyTorch's current stream of the device for its tensors; else the stream that
    the array names (`__cuda_array_interface__` version 3); else PyTorch's, where it is in use; else the
    default."""
    if not arrays.is_torch_tensor(array):
        named = arrays.stream_of(array)
        if named is not None:
            return _handle(named, "the stream of __cuda_array_interface__")
    torch = arrays.torch()
    if torch is None or not torch.cuda.is_initialized():
        return 0
    return torch_stream_getter(torch)(device)


def torch_stream_getter(torch: Any) -> Callable[[int], int]:
    """A function from a device's ordinal to the raw handle of PyTorch's current stream there."""
    fast = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if fast is not None:
        return fast
    return lambda device: torch.cuda.current_stream(device).cuda_stream


def torch_stream_context(torch: Any, stream: int, device: int) -> ContextManager[Any]:
    """Makes a raw stream PyTorch's current one, where it is not already."""
    if stream == torch_stream_getter(torch)(device):
        return contextlib.nullcontext()
    # ExternalStream(0) would be a new stream; up to 2, handles are names of the default streams.
    default = stream <= 2
    cuda = torch.cuda
    return cuda.stream(cuda.default_stream(device) if default else cuda.ExternalStream(stream, device))

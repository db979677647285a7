"""The fake CUDA driver of tests/fake_driver, asked through ctypes: how much was launched, memory to launch
on."""

from __future__ import annotations

import ctypes
import os
from ctypes import c_size_t, c_uint64

class FakeDriver:
    """Device 0's memory and streams, and this process's launches."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL(os.environ["HONE_CUDA_LIBRARY"])
        self._cuda.cuInit(0)
        context = ctypes.c_void_p()
        self._cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        self._context = context

    def allocate(self, size_bytes: int) -> int:
        """A device pointer, aligned to at least 256 bytes."""
        self._cuda.cuCtxSetCurrent(self._context)
        address = c_uint64()
        status = self._cuda.cuMemAlloc_v2(ctypes.byref(address), c_size_t(size_bytes))
        if status:
            raise MemoryError(f"cuMemAlloc: {status}")
        return address.value

    def make_stream(self) -> int:
        """A CUstream."""
        self._cuda.cuCtxSetCurrent(self._context)
        stream = ctypes.c_void_p()
        status = self._cuda.cuStreamCreate(ctypes.byref(stream), 1)
        if status:
            raise RuntimeError(f"cuStreamCreate: {status}")
        return stream.value

    def launch_count(self) -> int:
        return self._cuda.fake_cuda_launch_count()

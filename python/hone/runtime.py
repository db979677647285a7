"""One Runtime a device and process: driver, compiler and tuning results, opened at the first use.

Thread-safe. A child of fork() starts without any: what it prepares anew gets a Runtime of its own.
"""

from __future__ import annotations

import ctypes
import os
import threading
import warnings
from collections import deque
from typing import Any, Deque, Dict

from ._native import arrays, library, runtime_structs
from ._native.integers import integer
from .errors import HoneError, HoneWarning


class Runtime:
    """Made by :func:`runtime_of`; lives until the process ends, as prepared operators may outlive every other
    reference to it."""

    def __init__(self, device: int, allow_compile: bool) -> None:
        """Raises NoGpuError, MissingLibraryError and others of hone_runtime_create()."""
        self.device = device
        self._library = library.library()
        self._warnings: Deque[str] = deque()
        # ctypes keeps no reference to a callback of its own.
        self._on_warning = runtime_structs.WARNING_CALLBACK(self._remember_warning)
        options = runtime_structs.RuntimeOptions(
            struct_size=ctypes.sizeof(runtime_structs.RuntimeOptions),
            flags=0 if allow_compile else runtime_structs.NO_COMPILE,
            device=device,
            on_warning=self._on_warning,
        )
        handle = ctypes.c_void_p()
        try:
            library.check(self._library.hone_runtime_create(ctypes.byref(options), ctypes.byref(handle)))
        except BaseException:  # Ctrl-C meanwhile: what is made would call a callback that is gone
            self._library.hone_runtime_destroy(handle)
            raise
        self.handle = handle.value

    def _remember_warning(self, _user: Any, text: bytes) -> None:
        self._warnings.append(text.decode(errors="replace"))

    def give_warnings(self, stacklevel: int) -> None:
        """Hands what the library had to say to `warnings`: from here, where an exception may be raised, and
        not from the library's callback, where it would be lost."""
        while self._warnings:
            try:
                text = self._warnings.popleft()
            except IndexError:  # another thread was faster
                return
            warnings.warn(text, HoneWarning, stacklevel=stacklevel + 1)

    def freeze(self) -> None:
        """From now on a prepare that would have to compile raises FrozenError."""
        library.check(self._library.hone_runtime_freeze(self.handle))

    def counters(self) -> Dict[str, int]:
        """Since the runtime was made; the names are those of hone_counters."""
        counters = runtime_structs.Counters(struct_size=ctypes.sizeof(runtime_structs.Counters))
        library.check(self._library.hone_runtime_counters(self.handle, ctypes.byref(counters)))
        names = [name for name, _ in runtime_structs.Counters._fields_]
        return {name: getattr(counters, name) for name in names if name not in ("struct_size", "reserved")}

    def device_name(self) -> str:
        """Such as "NVIDIA H100 80GB HBM3"."""
        name = self._library.hone_runtime_device_name(self.handle)
        if name is None:
            raise HoneError("the runtime has no device name: its handle was made before fork()")
        return name.decode(errors="replace")


_lock = threading.Lock()
_runtimes: Dict[int, Runtime] = {}
_frozen = False


def runtime_of(device: int) -> Runtime:
    """The Runtime of a device, made at the first call."""
    found = _runtimes.get(device)
    if found is None:
        with _lock:
            found = _runtimes.get(device)
            if found is None:
                found = _runtimes[device] = Runtime(device, allow_compile=not _frozen)
    return found


_MOST_ORDINAL = (1 << 31) - 1


def device_ordinal(device: Any = None) -> int:
    """A device as the CUDA driver counts, from an int, "cuda:1", a torch.device, or None.

    None is PyTorch's current device where PyTorch is in use, else 0. Raises TypeError or ValueError.
    """
    if device is None:
        torch = arrays.torch()
        return torch.cuda.current_device() if torch is not None and torch.cuda.is_initialized() else 0
    ordinal = integer(device)
    if ordinal is None:
        ordinal = _ordinal_from_text(str(device), device)
    if not 0 <= ordinal <= _MOST_ORDINAL:  # ctypes would cut off what is longer
        raise ValueError(f"device: {ordinal}; allowed are numbers from 0 to {_MOST_ORDINAL}")
    return ordinal


def _ordinal_from_text(text: str, device: Any) -> int:
    """The number in "cuda:1", that of the current device for "cuda": so a torch.device prints, too."""
    kind, colon, number = text.partition(":")
    if kind != "cuda" or (colon and not (number.isascii() and number.isdigit())):
        raise ValueError(
            f"device: {device!r}; allowed are None, a number, 'cuda', 'cuda:1' and a torch.device of CUDA"
        )
    return int(number) if number else device_ordinal(None)


def freeze(device: Any = None) -> None:
    """From now on a prepare that would have to compile raises FrozenError: on one device, or with None on all
    of this process, those that are first used later, too."""
    global _frozen
    if device is not None:
        runtime_of(device_ordinal(device)).freeze()
        return
    with _lock:
        _frozen = True
        runtimes = list(_runtimes.values())
    for runtime in runtimes:
        runtime.freeze()


def counters(device: Any = None) -> Dict[str, int]:
    """Successful runs by where the knowledge of their kernel came from (`runs_exact`, `runs_neighbour`,
    `runs_foreign`, `runs_fallback`), `failed_launches`, `prepares`, `compiles`, `image_cache_hits`."""
    return runtime_of(device_ordinal(device)).counters()


def device_name(device: Any = None) -> str:
    """Such as "NVIDIA H100 80GB HBM3"."""
    return runtime_of(device_ordinal(device)).device_name()


def _start_anew() -> None:
    """In a child of fork(): its parent's runtimes answer HONE_FORKED, and its lock may be held by nobody."""
    global _lock
    _lock = threading.Lock()
    _runtimes.clear()


os.register_at_fork(after_in_child=_start_anew)

"""Finds and loads libhone.so, at the first call that needs it: importing the package never fails.

Declares the prototypes of runtime/hone.h and turns statuses into exceptions. Thread-safe.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any, Callable, List, Optional, Tuple

from .. import errors
from . import runtime_structs, structs

VERSION = "0.1.0"  # of the package; the C struct layouts are those of this version's header
FILE_NAME = "libhone.so.0"

_PACKAGE = Path(__file__).resolve().parent.parent

_lock = threading.Lock()
_loaded: Optional[ctypes.CDLL] = None

_TEXT_ARGUMENTS = (c_int, c_char_p, c_size_t, POINTER(c_size_t))


def source_tree() -> Optional[Path]:
    """The source tree that the package lies in, or None for an installed package."""
    root = _PACKAGE.parent.parent
    return root if (root / "runtime" / "hone.h").is_file() else None


def library_candidates() -> List[Path]:
    """Where libhone.so may be, best first; with HONE_LIBRARY set, there and nowhere else."""
    wanted = os.environ.get("HONE_LIBRARY")
    return [Path(wanted)] if wanted else own_candidates(FILE_NAME)


def own_candidates(file_name: str) -> List[Path]:
    """Where a library that comes with the package may be."""
    candidates = [_PACKAGE / "lib" / file_name]
    tree = source_tree()
    if tree is not None:
        candidates.append(tree / "build" / "release" / file_name)
    return candidates


def library() -> ctypes.CDLL:
    """The loaded library with its prototypes. Raises MissingLibraryError."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _open()
    return _loaded


def function(name: str) -> Any:
    """A function of the library. Raises MissingLibraryError for one that this library does not have."""
    loaded = library()
    if not hasattr(loaded, name):
        version = loaded.hone_version().decode()
        raise errors.MissingLibraryError(f"libhone {version}, {loaded._name}, has no function {name}")
    return getattr(loaded, name)


def bare_function(name: str) -> Any:
    """The same without a prototype, which makes calls faster: its arguments have to be instances of the
    ctypes that C declares, or bytes."""
    function(name)
    return library()[name]


def check(status: int) -> None:
    """Raises the exception for a status of this thread's last call; does nothing for HONE_OK."""
    if status:
        loaded = library()
        text = loaded.hone_status_string(status).decode(errors="replace")
        raise errors.error_from(status, text, loaded.hone_last_error().decode(errors="replace"))


def read_text(write: Callable[[Any, int, Any], int]) -> str:
    """The whole text of a function that writes (text, capacity, length) as hone_operator_report() does."""
    capacity = 16384
    while True:
        buffer = ctypes.create_string_buffer(capacity)
        length = c_size_t()
        check(write(buffer, capacity, ctypes.byref(length)))
        if length.value < capacity:
            return buffer.raw[: length.value].decode(errors="replace")
        capacity = length.value + 1


def _open() -> ctypes.CDLL:
    loaded = open_library(library_candidates(), "HONE_LIBRARY", "libhone", "hone_c", "hone_version")
    _declare(loaded)
    check_version(loaded, loaded.hone_version().decode())
    return loaded


def open_library(candidates: List[Path], variable: str, name: str, target: str, marker: str) -> ctypes.CDLL:
    """The first candidate that is a file; `target` builds it, and it has to have a function `marker`. Raises
    MissingLibraryError."""
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise errors.MissingLibraryError(_not_found(candidates, variable, name, target))
    announce_environment()
    try:
        loaded = ctypes.CDLL(str(path.absolute()))
    except OSError as error:
        raise errors.MissingLibraryError(f"{path} does not load here: {error}") from None
    if not hasattr(loaded, marker):
        raise errors.MissingLibraryError(f"{path} is no {name}: it has no function {marker}")
    return loaded


def _not_found(candidates: List[Path], variable: str, name: str, target: str) -> str:
    tried = ", ".join(str(candidate) for candidate in candidates)
    if os.environ.get(variable):
        return f"{variable} names {tried}, which is no file"
    if source_tree() is not None:
        return f"{name} is not built; tried {tried}. `cmake --build build/release --target {target}` builds it"
    return f"{name} was not found; tried {tried}. Install the wheel again, or set {variable} to the file"


def announce_environment() -> None:
    """Sets VIRTUAL_ENV as activating this Python's environment would, if nobody has.

    libhone and the program look there for the NVRTC of the environment's wheels, which is where PyTorch's is.
    They know the system's folders and an active conda environment.
    """
    if sys.prefix not in ("/usr", "/usr/local", os.environ.get("CONDA_PREFIX")):
        os.environ.setdefault("VIRTUAL_ENV", sys.prefix)


def _version(text: str) -> Tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3])


def check_version(loaded: ctypes.CDLL, found: str) -> None:
    """A later library reads the structs of this package; an earlier one may not."""
    if _version(found) < _version(VERSION):
        raise errors.MissingLibraryError(
            f"{loaded._name} is version {found}, older than this package, {VERSION}: install both from one wheel"
        )


def _declare(loaded: ctypes.CDLL) -> None:
    """Prototypes; the size of an argument that no prototype declares would be guessed."""
    _declare_runtime(loaded)
    for name, (description, sizes) in structs.OPERATORS.items():
        _function(loaded, f"hone_{name}_prepare", c_void_p, POINTER(description), POINTER(c_void_p))
        numbers = [c_int64] * sizes
        _function(loaded, f"hone_{name}_explain", c_void_p, POINTER(description), *numbers, *_TEXT_ARGUMENTS)
    # The arguments of a call come as bytes: immutable, so that threads share nothing.
    for name, sizes in structs.CALLS.items():
        _function(loaded, f"hone_{name}_run", c_void_p, c_void_p, c_char_p, *[c_int64] * sizes)
    weights = (POINTER(structs.QuantizeWeights), c_char_p, c_int64)
    _function(loaded, "hone_quantize_weights_on_host", *weights, c_int32)
    _function(loaded, "hone_quantize_weights_on_device", c_void_p, *weights, c_void_p)
    _function(loaded, "hone_quantize_weights_workspace", c_void_p, weights[0], c_int64, POINTER(c_size_t))
    _function(loaded, "hone_attention_workspace", c_void_p, *[c_int64] * 3, POINTER(c_size_t))
    _function(loaded, "hone_attention_append_workspace", c_void_p, *[c_int64] * 2, POINTER(c_size_t))


def _declare_runtime(loaded: ctypes.CDLL) -> None:
    _function(loaded, "hone_version", result=c_char_p)
    _function(loaded, "hone_status_string", c_int, result=c_char_p)
    _function(loaded, "hone_last_error", result=c_char_p)
    _function(loaded, "hone_runtime_create", POINTER(runtime_structs.RuntimeOptions), POINTER(c_void_p))
    _function(loaded, "hone_runtime_destroy", c_void_p, result=None)
    _function(loaded, "hone_runtime_freeze", c_void_p)
    _function(loaded, "hone_runtime_device_name", c_void_p, result=c_char_p)
    _function(loaded, "hone_runtime_counters", c_void_p, POINTER(runtime_structs.Counters))
    _function(loaded, "hone_operator_destroy", c_void_p, result=None)
    _function(loaded, "hone_operator_report", c_void_p, *_TEXT_ARGUMENTS)
    _function(loaded, "hone_operator_workspace", c_void_p, c_int64, POINTER(c_size_t))


def _function(loaded: ctypes.CDLL, name: str, *arguments: Any, result: Any = c_int) -> None:
    """Leaves out what the library does not have; function() says so when it is asked for."""
    if hasattr(loaded, name):
        declared = getattr(loaded, name)
        declared.argtypes = arguments
        declared.restype = result


def _start_anew() -> None:
    """In a child of fork(): another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_start_anew)

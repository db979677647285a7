"""Finds and loads libhone_decoder.so, at the first decoder: it stands beside libhone.so, and neither needs the other.
Thread-safe."""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import List, Optional

from .. import errors
from . import library
from .decoder_structs import DecoderLogProbabilities, DecoderOptions, DecoderPiece, DecoderRequest, DecoderState

FILE_NAME = "libhone_decoder.so.0"

_lock = threading.Lock()
_loaded: Optional[ctypes.CDLL] = None


def candidates() -> List[Path]:
    """With HONE_DECODER_LIBRARY set, there and nowhere else; else beside the libhone.so that HONE_LIBRARY
    names, or where the package's own libraries are."""
    wanted = os.environ.get("HONE_DECODER_LIBRARY")
    if wanted:
        return [Path(wanted)]
    named = os.environ.get("HONE_LIBRARY")
    return [Path(named).with_name(FILE_NAME)] if named else library.own_candidates(FILE_NAME)


def decoder_library() -> ctypes.CDLL:
    """The loaded library with its prototypes. Raises MissingLibraryError."""
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = _open()
        return _loaded


def check(status: int) -> None:
    """Raises the exception for a status of this thread's last call; does nothing for HONE_OK."""
    if status:
        message = decoder_library().hone_decoder_last_error().decode(errors="replace")
        raise errors.error_from(status, message, message)


def _open() -> ctypes.CDLL:
    marker = "hone_decoder_version"
    loaded = library.open_library(
        candidates(), "HONE_DECODER_LIBRARY", "libhone_decoder", "hone_decoder_c", marker
    )
    _declare(loaded)
    library.check_version(loaded, loaded.hone_decoder_version().decode())
    return loaded


def _declare(loaded: ctypes.CDLL) -> None:
    """Prototypes; the size of an argument that no prototype declares would be guessed."""
    size_out = POINTER(c_size_t)
    for name, result, arguments in (
        ("version", c_char_p, ()),
        ("last_error", c_char_p, ()),
        ("create", ctypes.c_int, (c_char_p, POINTER(DecoderOptions), POINTER(c_void_p))),
        ("destroy", None, (c_void_p,)),
        ("read_state", ctypes.c_int, (c_void_p, POINTER(DecoderState))),
        ("encode", ctypes.c_int, (c_void_p, c_char_p, c_size_t, c_uint32, POINTER(c_int32), c_size_t, size_out)),
        ("decode", ctypes.c_int, (c_void_p, POINTER(c_int32), c_size_t, c_void_p, c_size_t, size_out)),
        ("render_chat", ctypes.c_int,
         (c_void_p, POINTER(c_char_p), POINTER(c_char_p), c_size_t, c_void_p, c_size_t, size_out)),
        ("render_chat_with", ctypes.c_int,
         (c_void_p, POINTER(c_char_p), POINTER(c_char_p), c_size_t, c_uint32, c_void_p, c_size_t, size_out)),
        ("submit", ctypes.c_int, (c_void_p, POINTER(DecoderRequest), POINTER(c_void_p))),
        ("next", ctypes.c_int, (c_void_p, c_int64, POINTER(DecoderPiece))),
        ("read_log_probabilities", ctypes.c_int, (c_void_p, c_int32, POINTER(DecoderLogProbabilities))),
        ("cancel", ctypes.c_int, (c_void_p,)),
        ("text_destroy", None, (c_void_p,)),
    ):
        declared = getattr(loaded, f"hone_decoder_{name}")
        declared.restype = result
        declared.argtypes = arguments


def _start_anew() -> None:
    """In a child of fork(): another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_start_anew)

"""Mirrors of what runtime/hone.h declares by hand: the runtime's structs and numbers. structs.py has those of
operators; ``tests/python/structs_test.py`` compares every member with the header."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int32, c_uint32, c_uint64, c_void_p

WARNING_CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)

NO_CACHE = 1
NO_COMPILE = 2

TEXT = 0
JSON = 1


class RuntimeOptions(ctypes.Structure):
    """hone_runtime_options"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("device", c_int32),
        ("reserved", c_uint32),
        ("cache_file", c_char_p),
        ("on_warning", WARNING_CALLBACK),
        ("user", c_void_p),
        ("capture_file", c_char_p),
    ]


class Counters(ctypes.Structure):
    """hone_counters"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("runs_exact", c_uint64),
        ("runs_neighbour", c_uint64),
        ("runs_foreign", c_uint64),
        ("runs_fallback", c_uint64),
        ("failed_launches", c_uint64),
        ("prepares", c_uint64),
        ("compiles", c_uint64),
        ("image_cache_hits", c_uint64),
    ]

"""Mirrors of what decoder/c_api/hone_decoder.h declares; ``tests/python/structs_test.py`` compares every member with the
header."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

from .runtime_structs import WARNING_CALLBACK

IGNORE_END = 1
PLAIN_PROMPT = 2
BARE_PROMPT = 4
CHAT = 8
NO_THINKING = 16
LOG_PROBABILITIES = 32
SCORE_PROMPT = 64

# How a text ended, by hone_decoder_end; GOES_ON has no name.
GOES_ON = 0
ENDS = {1: "end_token", 2: "length", 3: "stop", 4: "cancelled"}


class DecoderOptions(ctypes.Structure):
    """hone_decoder_options"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("device", c_int32),
        ("max_sequences", c_int32),
        ("max_context", c_int64),
        ("max_step_tokens", c_int64),
        ("memory_share", c_double),
        ("format", c_char_p),
        ("group", c_int64),
        ("zeros", c_int32),
        ("lm_head", c_int32),
        ("cache_file", c_char_p),
        ("on_warning", WARNING_CALLBACK),
        ("user", c_void_p),
        ("kv_cache", c_char_p),
    ]


class DecoderState(ctypes.Structure):
    """hone_decoder_state"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("max_context", c_int64),
        ("vocabulary", c_int64),
        ("running", c_int64),
        ("waiting", c_int64),
        ("pages", c_int64),
        ("pages_used", c_int64),
        ("new_tokens", c_uint64),
        ("shared_tokens", c_uint64),
    ]


class DecoderRequest(ctypes.Structure):
    """hone_decoder_request"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("prompt", c_char_p),
        ("prompt_bytes", c_size_t),
        ("prompt_ids", POINTER(c_int32)),
        ("prompt_id_count", c_size_t),
        ("max_tokens", c_int64),
        ("temperature", c_float),
        ("top_k", c_int32),
        ("top_p", c_float),
        ("min_p", c_float),
        ("seed", c_int64),
        ("stops", POINTER(c_char_p)),
        ("stop_count", c_size_t),
        ("end_ids", POINTER(c_int32)),
        ("end_id_count", c_size_t),
        ("likeliest", c_int32),
        ("reserved", c_int32),
    ]


class DecoderPiece(ctypes.Structure):
    """hone_decoder_piece"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("end", c_int32),
        ("text", c_void_p),
        ("text_bytes", c_size_t),
        ("ids", POINTER(c_int32)),
        ("id_count", c_size_t),
    ]


class DecoderLogProbabilities(ctypes.Structure):
    """hone_decoder_log_probabilities"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("likeliest", c_int32),
        ("count", c_size_t),
        ("of_tokens", POINTER(c_double)),
        ("likeliest_ids", POINTER(c_int32)),
        ("of_likeliest", POINTER(c_double)),
    ]

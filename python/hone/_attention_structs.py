"""Mirrors of the attention structs of runtime/hone.h, as _structs.py has those of the other operators."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int32, c_int64, c_uint32, c_void_p
from typing import Any, List, Tuple, Type

KV_DTYPES = {"same": 0, "fp8": 1}
ROPE_STYLES = {"half": 0, "interleaved": 1}


def _members(kind: Any, names: str) -> List[Tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class Attention(ctypes.Structure):
    """hone_attention"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *_members(c_int64, "heads kv_heads head_dim max_batch max_q_len max_kv_len min_q_len window page_size"),
        *_members(c_int32, "kv_dtype causal lengths packed softcap lse"),
    ]


class AttentionArgs(ctypes.Structure):
    """hone_attention_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("scale", c_float),
        ("softcap", c_float),
        ("reserved", c_uint32),
        *_members(c_void_p, "q k v out lse kv_lengths q_starts kv_starts page_table"),
        *_members(c_void_p, "k_scale v_scale workspace"),
        *_members(c_int64, "q_batch_stride q_token_stride q_head_stride"),
        *_members(c_int64, "k_batch_stride k_token_stride k_head_stride"),
        *_members(c_int64, "v_batch_stride v_token_stride v_head_stride"),
        *_members(c_int64, "out_batch_stride out_token_stride out_head_stride"),
        *_members(c_int64, "page_table_stride pool_pages q_tokens kv_tokens"),
    ]


class RopeKvAppend(ctypes.Structure):
    """hone_rope_kv_append"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        *_members(c_int64, "heads kv_heads head_dim rotary_dim max_tokens page_size"),
        *_members(c_int32, "kv_dtype style norm slots"),
    ]


class RopeKvAppendArgs(ctypes.Structure):
    """hone_rope_kv_append_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        *_members(c_void_p, "q k v out k_cache v_cache cos sin kv_lengths page_table positions slots"),
        *_members(c_void_p, "k_scale v_scale q_weight k_weight"),
        *_members(c_int64, "q_token_stride q_head_stride k_token_stride k_head_stride"),
        *_members(c_int64, "v_token_stride v_head_stride out_token_stride out_head_stride"),
        *_members(c_int64, "cache_batch_stride cache_token_stride cache_head_stride"),
        *_members(c_int64, "page_table_stride q_len kv_len pool_pages table_rows"),
    ]


_CODES = {c_uint32: "I", c_float: "f", c_void_p: "P", c_int64: "q"}


def _packing(args: Type[ctypes.Structure]) -> str:
    return "@" + "".join(_CODES[field[1]] for field in args._fields_)


# For struct.pack(), as those of _structs.py.
ATTENTION_ARGS_FORMAT = _packing(AttentionArgs)
ROPE_KV_APPEND_ARGS_FORMAT = _packing(RopeKvAppendArgs)

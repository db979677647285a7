"""Mirrors of the structs of runtime/hone.h: same names, same members, same order; those of attention are in
_attention_structs.py.

``tests/python/structs_test.py`` compares every size and offset with the header. The arguments of a call are
packed by ``struct`` instead (_operator.py), which is several times faster than filling a ctypes structure.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_float, c_int32, c_int64, c_uint32, c_uint64, c_void_p

WARNING_CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)

NO_CACHE = 1
NO_COMPILE = 2

TEXT = 0
JSON = 1

DTYPES = {"fp32": 0, "fp16": 1, "bf16": 2}
OUTPUTS = {"same": 0, "int8": 1, "fp8": 2}
ACTIVATIONS = {"none": 0, "gelu_tanh": 1, "gelu_erf": 2, "silu": 3, "relu": 4}


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


class RmsNorm(ctypes.Structure):
    """hone_rms_norm"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("hidden", c_int64),
        ("max_rows", c_int64),
        ("output", c_int32),
        ("residual", c_int32),
    ]


class LayerNorm(ctypes.Structure):
    """hone_layer_norm"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("hidden", c_int64),
        ("max_rows", c_int64),
        ("output", c_int32),
        ("residual", c_int32),
        ("bias", c_int32),
        ("reserved", c_uint32),
    ]


class RmsNormBackward(ctypes.Structure):
    """hone_rms_norm_backward"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("hidden", c_int64),
        ("max_rows", c_int64),
        ("residual", c_int32),
        ("reserved", c_uint32),
    ]


class NormArgs(ctypes.Structure):
    """hone_norm_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        ("x", c_void_p),
        ("residual", c_void_p),
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("out", c_void_p),
        ("sum", c_void_p),
        ("scale", c_void_p),
        ("x_stride", c_int64),
        ("residual_stride", c_int64),
        ("out_stride", c_int64),
        ("sum_stride", c_int64),
    ]


class RmsNormBackwardArgs(ctypes.Structure):
    """hone_rms_norm_backward_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        ("dy", c_void_p),
        ("x", c_void_p),
        ("weight", c_void_p),
        ("dsum", c_void_p),
        ("dx", c_void_p),
        ("dweight", c_void_p),
        ("workspace", c_void_p),
        ("dy_stride", c_int64),
        ("x_stride", c_int64),
        ("dsum_stride", c_int64),
        ("dx_stride", c_int64),
    ]


class Linear(ctypes.Structure):
    """hone_linear"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("in", c_int64),
        ("out", c_int64),
        ("max_tokens", c_int64),
        ("activation", c_int32),
        ("bias", c_int32),
        ("residual", c_int32),
        ("norm", c_int32),
    ]


class LinearArgs(ctypes.Structure):
    """hone_linear_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        ("x", c_void_p),
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("residual", c_void_p),
        ("out", c_void_p),
        ("workspace", c_void_p),
        ("x_stride", c_int64),
        ("weight_stride", c_int64),
        ("residual_stride", c_int64),
        ("out_stride", c_int64),
        ("norm_weight", c_void_p),
    ]


class FusedFfn(ctypes.Structure):
    """hone_fused_ffn"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("hidden", c_int64),
        ("intermediate", c_int64),
        ("max_tokens", c_int64),
        ("activation", c_int32),
        ("gated", c_int32),
        ("bias", c_int32),
        ("residual", c_int32),
        ("norm", c_int32),
    ]


class FusedFfnArgs(ctypes.Structure):
    """hone_fused_ffn_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        ("x", c_void_p),
        ("gate", c_void_p),
        ("up", c_void_p),
        ("up_bias", c_void_p),
        ("down", c_void_p),
        ("down_bias", c_void_p),
        ("residual", c_void_p),
        ("out", c_void_p),
        ("workspace", c_void_p),
        ("x_stride", c_int64),
        ("residual_stride", c_int64),
        ("out_stride", c_int64),
        ("norm_weight", c_void_p),
    ]


# The same for struct.pack(). NormArgs and RmsNormBackwardArgs are alike: size, epsilon, seven pointers, four
# strides.
NORM_ARGS_FORMAT = "@IfPPPPPPPqqqq"
LINEAR_ARGS_FORMAT = "@IfPPPPPPqqqqP"
FUSED_FFN_ARGS_FORMAT = "@IfPPPPPPPPPqqqP"

"""Mirrors of the structs of quantized linear layers in runtime/hone.h; see _structs.py."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int32, c_int64, c_uint32, c_void_p

QUANT_FORMATS = {"w4a16": 0, "w8a16": 1, "w8a8": 2, "fp8": 3}


class QuantizedLinear(ctypes.Structure):
    """hone_quantized_linear"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("in", c_int64),
        ("out", c_int64),
        ("max_tokens", c_int64),
        ("group", c_int64),
        ("format", c_int32),
        ("zeros", c_int32),
        ("one_scale", c_int32),
        ("quantized_x", c_int32),
        ("one_x_scale", c_int32),
        ("activation", c_int32),
        ("bias", c_int32),
        ("residual", c_int32),
        ("norm", c_int32),
        ("reserved", c_uint32),
    ]


class QuantizedLinearArgs(ctypes.Structure):
    """hone_quantized_linear_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        ("x", c_void_p),
        ("x_scales", c_void_p),
        ("norm_weight", c_void_p),
        ("weight", c_void_p),
        ("scales", c_void_p),
        ("zeros", c_void_p),
        ("bias", c_void_p),
        ("residual", c_void_p),
        ("out", c_void_p),
        ("workspace", c_void_p),
        ("x_stride", c_int64),
        ("x_scale_stride", c_int64),
        ("weight_stride", c_int64),
        ("residual_stride", c_int64),
        ("out_stride", c_int64),
    ]


class QuantizedFfn(ctypes.Structure):
    """hone_quantized_ffn"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("hidden", c_int64),
        ("intermediate", c_int64),
        ("max_tokens", c_int64),
        ("group", c_int64),
        ("format", c_int32),
        ("zeros", c_int32),
        ("one_scale", c_int32),
        ("quantized_x", c_int32),
        ("one_x_scale", c_int32),
        ("activation", c_int32),
        ("gated", c_int32),
        ("bias", c_int32),
        ("residual", c_int32),
        ("norm", c_int32),
    ]


class QuantizedFfnArgs(ctypes.Structure):
    """hone_quantized_ffn_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("epsilon", c_float),
        ("x", c_void_p),
        ("x_scales", c_void_p),
        ("norm_weight", c_void_p),
        ("gate", c_void_p),
        ("gate_scales", c_void_p),
        ("gate_zeros", c_void_p),
        ("up", c_void_p),
        ("up_scales", c_void_p),
        ("up_zeros", c_void_p),
        ("down", c_void_p),
        ("down_scales", c_void_p),
        ("down_zeros", c_void_p),
        ("up_bias", c_void_p),
        ("down_bias", c_void_p),
        ("residual", c_void_p),
        ("out", c_void_p),
        ("workspace", c_void_p),
        ("x_stride", c_int64),
        ("x_scale_stride", c_int64),
        ("residual_stride", c_int64),
        ("out_stride", c_int64),
    ]


class QuantizeWeights(ctypes.Structure):
    """hone_quantize_weights"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("in", c_int64),
        ("max_out", c_int64),
        ("group", c_int64),
        ("format", c_int32),
        ("zeros", c_int32),
        ("one_scale", c_int32),
        ("scale_dtype", c_int32),
        ("search", c_int32),
        ("reserved", c_uint32),
    ]


class QuantizeWeightsArgs(ctypes.Structure):
    """hone_quantize_weights_args"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("weight", c_void_p),
        ("codes", c_void_p),
        ("scales", c_void_p),
        ("zeros", c_void_p),
        ("workspace", c_void_p),
        ("weight_stride", c_int64),
    ]


# Those of runs that are to be fast for struct.pack().
QUANTIZED_LINEAR_ARGS_FORMAT = "@IfPPPPPPPPPPqqqqq"
QUANTIZED_FFN_ARGS_FORMAT = "@IfPPPPPPPPPPPPPPPPPqqqq"

"""Descriptions of linear layers and feed-forward networks with weights of 4 or 8 bits, as in
descriptions.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from . import _quantized_structs
from .descriptions import Description

MAX_IN, MAX_OUT = 262144, 1048576  # of hone_quantized_linear
BLOCK = 64  # rows and columns of a block of packed codes
_BLOCK_BYTES = {"w4a16": 2048, "w8a16": 4096}
_CODES = {"w4a16": "uint8", "w8a16": "uint8", "w8a8": "int8", "fp8": "fp8_e4m3"}


def blocks_of(extent: int) -> int:
    return -(-extent // BLOCK)


def groups_of(columns: int, group: int) -> int:
    """Scales of a row; those of w4a16 reach to the end of its last block."""
    return 1 if group == 0 else -(-blocks_of(columns) * BLOCK // group)


@dataclass(frozen=True)
class StoredWeight:
    """Shapes and dtypes of the arrays of a weight [rows, columns]: what docs/formats.md describes."""

    rows: int
    columns: int
    format: str
    group: int
    one_scale: bool = False

    @property
    def packed(self) -> bool:
        """Codes stand in blocks; else row by row."""
        return self.format in _BLOCK_BYTES

    @property
    def codes_shape(self) -> Tuple[int, int]:
        """Of w4a16 and w8a16 a row of blocks a row; bytes."""
        if self.packed:
            return blocks_of(self.rows), blocks_of(self.columns) * _BLOCK_BYTES[self.format]
        return self.rows, self.columns

    @property
    def codes_dtype(self) -> str:
        return _CODES[self.format]

    @property
    def scales_shape(self) -> Tuple[int, ...]:
        """Of w4a16 also that of zeros."""
        if self.format == "w4a16":
            return blocks_of(self.rows), groups_of(self.columns, self.group), BLOCK
        if self.group:
            return -(-self.rows // self.group), self.columns // self.group
        return (1,) if self.one_scale else (self.rows,)

    def scales_dtype(self, dtype: str) -> str:
        """For an operator of `dtype`."""
        return dtype if self.format == "w4a16" else "fp32"


@dataclass(frozen=True)
class QuantizedLinear(Description):
    """out = activation(x * weight^T + bias) + residual, accumulated in fp32 (w8a8: in 32-bit integers), where
    an element of weight is (code - zero point) * scale; the rows of x are tokens.

    "w4a16" and "w8a16" multiply x as it is. "w8a8" and "fp8" (E4M3) multiply codes with codes: those of x are
    given (quantized_x), as RmsNorm writes them, or made first, with a scale for each token, or, with a group,
    for each 128 columns of it. With a norm, x * rsqrt(mean(x^2) + epsilon) * norm_weight takes the place of
    x.
    """

    in_features: int  # elements of a row of x, 1 to 262144
    out_features: int  # elements of a row of out, 1 to 1048576
    format: str = "w4a16"  # or "w8a16", "w8a8", "fp8"
    # Columns of the weight that share a scale; 0: all of a row. w4a16: 32, 64 or 128, dividing in_features;
    # fp8: 128, dividing in_features, for a scale each 128 x 128 of the weight; others: 0.
    group: int = 0
    max_tokens: int = 8192  # most rows of one call
    dtype: str = "bf16"  # of x that is no codes, bias, residual, norm_weight and out: fp16 or bf16
    zeros: bool = False  # w4a16: codes have zero points, one a group
    one_scale: bool = False  # w8a8, fp8 with group 0: one scale for the whole weight, not one a row
    quantized_x: bool = False  # w8a8, fp8: x comes as codes with scales; not with norm
    one_x_scale: bool = False  # quantized_x, group 0: one scale for all of x, not one a token
    activation: str = "none"  # or "gelu_tanh", "gelu_erf", "silu", "relu"
    bias: bool = False
    residual: bool = False
    norm: bool = False

    C_NAME = "quantized_linear"
    STRUCT = _quantized_structs.QuantizedLinear
    SIZES = ("in_features", "out_features", "group", "max_tokens")
    C_FIELDS = {"in_features": "in", "out_features": "out"}

    @property
    def stored_weight(self) -> StoredWeight:
        return StoredWeight(self.out_features, self.in_features, self.format, self.group, self.one_scale)


@dataclass(frozen=True)
class QuantizedFfn(Description):
    """FusedFfn with quantized weights, all of one format. What lies between the halves is rounded to dtype;
    where codes are multiplied with codes, the second half makes its own of that."""

    hidden: int  # elements of a row of x and out
    intermediate: int  # elements of a row between the halves
    format: str = "w4a16"
    group: int = 0  # as QuantizedLinear's; divides hidden and intermediate
    max_tokens: int = 8192
    dtype: str = "bf16"
    zeros: bool = False  # of all weights
    one_scale: bool = False  # one for each weight
    quantized_x: bool = False  # x, and only x, comes as codes with scales; not with norm
    one_x_scale: bool = False
    activation: str = "silu"
    gated: bool = True
    bias: bool = False  # of both halves; not with gated
    residual: bool = False
    norm: bool = False

    C_NAME = "quantized_ffn"
    STRUCT = _quantized_structs.QuantizedFfn
    SIZES = ("hidden", "intermediate", "group", "max_tokens")

    @property
    def stored_up(self) -> StoredWeight:
        """Also that of gate."""
        return StoredWeight(self.intermediate, self.hidden, self.format, self.group, self.one_scale)

    @property
    def stored_down(self) -> StoredWeight:
        return StoredWeight(self.hidden, self.intermediate, self.format, self.group, self.one_scale)


@dataclass(frozen=True)
class QuantizeWeights(Description):
    """Codes and scales of weights [up to max_out, in_features], for a QuantizedLinear: those that
    docs/formats.md says quantizing chooses, the same bits as the host's."""

    in_features: int  # columns of a weight, 1 to 262144
    format: str = "w4a16"  # or "w8a16", "w8a8", "fp8"
    group: int = 0  # as QuantizedLinear's
    max_out: int = 32768  # most rows of one call, 1 to 1048576
    dtype: str = "bf16"  # of the weight: fp32, fp16 or bf16
    zeros: bool = False  # w4a16: codes get zero points, one a group
    one_scale: bool = False  # w8a8, fp8 with group 0: one scale for the whole weight, not one a row
    scale_dtype: str = "bf16"  # of w4a16's scales: fp16 or bf16; the other formats' are fp32 always
    search: bool = True  # w4a16: the scale of each group that leaves the least squared error

    C_NAME = "quantize_weights"
    STRUCT = _quantized_structs.QuantizeWeights
    SIZES = ("in_features", "group", "max_out")
    C_FIELDS = {"in_features": "in"}

    def stored_weight(self, rows: int) -> StoredWeight:
        return StoredWeight(rows, self.in_features, self.format, self.group, self.one_scale)

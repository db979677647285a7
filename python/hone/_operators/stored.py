"""How weights of 4 or 8 bits are stored: what docs/formats.md describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

MAX_IN, MAX_OUT = 262144, 1048576  # columns and rows of a weight
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
    """Shapes and dtypes of the arrays of a weight [rows, columns]."""

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
        """In blocks a row is one of blocks, in bytes."""
        if self.packed:
            return blocks_of(self.rows), blocks_of(self.columns) * _BLOCK_BYTES[self.format]
        return self.rows, self.columns

    @property
    def codes_dtype(self) -> str:
        return _CODES[self.format]

    @property
    def scales_shape(self) -> Tuple[int, ...]:
        """That of zeros, too, of w4a16."""
        if self.format == "w4a16":
            return blocks_of(self.rows), groups_of(self.columns, self.group), BLOCK
        if self.group:
            return -(-self.rows // self.group), self.columns // self.group
        return (1,) if self.one_scale else (self.rows,)

    def scales_dtype(self, dtype: str) -> str:
        """For an operator of `dtype`."""
        return dtype if self.format == "w4a16" else "fp32"

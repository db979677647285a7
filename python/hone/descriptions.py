"""What an operator is: frozen values that :func:`hone.prepare` and :func:`hone.explain` take."""

from __future__ import annotations

from ctypes import Structure, sizeof
from dataclasses import dataclass
from typing import Any, ClassVar, Dict, Type

from . import _structs

_ALIASES = {
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
}


def dtype_name(dtype: Any) -> str:
    """Our name, "bf16", for "bf16", "bfloat16" or torch.bfloat16. Raises ValueError."""
    text = str(dtype)
    if text.startswith("torch."):
        text = text[len("torch.") :]
    return _one_of("dtype", _ALIASES.get(text, text), _structs.DTYPES)


def _one_of(field: str, value: Any, allowed: Dict[str, int]) -> Any:
    if value not in allowed:
        raise ValueError(f"{field}: {value!r}; allowed are {', '.join(allowed)}")
    return value


class Description:
    """Base of the descriptions. C_NAME is the middle of its C functions' names: hone_<C_NAME>_prepare."""

    C_NAME: ClassVar[str]
    STRUCT: ClassVar[Type[Structure]]
    hidden: int
    max_rows: int
    dtype: str

    def __post_init__(self) -> None:
        """Checks types, and brings names into their one form; sizes are libhone's to judge."""
        for field in ("hidden", "max_rows"):
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{field}: {value!r}; allowed is an int")
            if not -(2**63) <= value < 2**63:  # ctypes would cut it off
                raise ValueError(f"{field}: {value}; allowed are numbers of 64 bits")
        for field in ("residual", "bias"):
            if not isinstance(getattr(self, field, False), bool):
                raise TypeError(f"{field}: {getattr(self, field)!r}; allowed is a bool")
        object.__setattr__(self, "dtype", dtype_name(getattr(self, "dtype")))
        _one_of("output", getattr(self, "output", "same"), _structs.OUTPUTS)

    def to_struct(self) -> Structure:
        """The C struct of this description."""
        values: Dict[str, Any] = dict(vars(self))
        values["dtype"] = _structs.DTYPES[values["dtype"]]
        if "output" in values:
            values["output"] = _structs.OUTPUTS[values["output"]]
        return self.STRUCT(struct_size=sizeof(self.STRUCT), **values)


@dataclass(frozen=True)
class RmsNorm(Description):
    """y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements, accumulated in fp32.

    With a residual, x + residual (rounded to dtype) takes the place of x and is returned, too.
    """

    hidden: int  # elements of a row, 1 to 262144
    max_rows: int = 8192  # most rows of one call
    dtype: str = "bf16"  # of x, residual, weight and sum: fp32, fp16 or bf16, or a torch.dtype
    output: str = "same"  # "same": dtype; "int8" or "fp8" (E4M3): codes and one fp32 scale a row
    residual: bool = False

    C_NAME = "rms_norm"
    STRUCT = _structs.RmsNorm


@dataclass(frozen=True)
class LayerNorm(Description):
    """y = (x - mean(x)) * rsqrt(var(x) + epsilon) * weight + bias over each row; otherwise like RmsNorm."""

    hidden: int
    max_rows: int = 8192
    dtype: str = "bf16"
    output: str = "same"
    residual: bool = False
    bias: bool = True

    C_NAME = "layer_norm"
    STRUCT = _structs.LayerNorm


@dataclass(frozen=True)
class RmsNormBackward(Description):
    """Gradients of an RmsNorm: dx [rows, hidden] and dweight [hidden], accumulated in fp32, the same at every
    call.

    For a norm with a residual, x is its sum, whose own gradient dsum joins dx, the gradient of both x and
    residual.
    """

    hidden: int
    max_rows: int = 8192
    dtype: str = "bf16"  # of every tensor
    residual: bool = False

    C_NAME = "rms_norm_backward"
    STRUCT = _structs.RmsNormBackward

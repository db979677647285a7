"""The tensors of a call as calls.py declares them, and what each has to be for one description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Tuple, Union

from .description import CODES


class Wanted(NamedTuple):
    """What one tensor of a call has to be."""

    name: str
    present: bool  # whether the operator takes it
    option: str  # with which it was prepared then; "": it always does
    dtypes: Tuple[str, ...]  # best first
    rows: bool  # whether the leading dimensions of the call come first
    # Behind them; a word is an argument of run_pointers() that the tensor says.
    shape: Tuple[Union[int, str], ...]
    strided: bool  # whether rows may lie apart
    written: bool

    @property
    def stride(self) -> str:
        """The argument of run_pointers() that is its row stride."""
        return "x_scale_stride" if self.name == "x_scales" else f"{self.name}_stride"

    @property
    def said(self) -> List[Tuple[int, str]]:
        """Dimensions that a call says, and the arguments that they are."""
        return [(place, size) for place, size in enumerate(self.shape) if isinstance(size, str)]


_OPTIONS = {  # of properties; of a flag it is its name
    "quantized": "an output of int8 or fp8",
    "maps_rows": "gather=True or combine=True",
    "gated_bias": "gated=True and bias=True",
}


def _option(when: str) -> str:
    return _OPTIONS.get(when, f"{when}=True") if when else ""


def _present(description: Any, when: str) -> bool:
    """Whether a flag or property says yes; descriptions that share a call may lack it."""
    return not when or getattr(description, when, False)


def _dtypes(description: Any, dtype: str) -> Tuple[str, ...]:
    """The dtypes that "fp32" means, "" for the description's, or the name of a field or property."""
    if dtype in description.WORDS or not dtype:
        return (getattr(description, dtype or "dtype"),)
    return getattr(description, dtype) if hasattr(description, dtype) else (dtype,)


def _sizes(description: Any, names: Tuple[str, ...]) -> Tuple[Any, ...]:
    """Fields of a description; what is none is for each call to say."""
    known: Dict[str, Any] = {name: getattr(description, name, name) for name in names}
    return tuple(int(name) if name.isdigit() else known[name] for name in names)


@dataclass(frozen=True)
class Tensor:
    """One tensor of a call, or the three of a stored weight."""

    name: str
    rows: bool  # whether the leading dimensions of the call come first
    shape: Tuple[str, ...]  # fields of the description, behind them
    when: str = ""  # a flag or property of the description that it needs
    dtype: str = ""  # "": the description's; "fp32" and the like, or a property or a field whose word it is
    strided: bool = False  # whether rows may lie apart
    written: bool = False

    def of(self, description: Any) -> List[Wanted]:
        """What the tensor has to be for a description."""
        return [self._wanted(description, self.rows, _sizes(description, self.shape), self.strided)]

    def _wanted(self, description: Any, rows: bool, shape: Tuple[Any, ...], strided: bool) -> Wanted:
        present, dtypes = _present(description, self.when), _dtypes(description, self.dtype)
        return Wanted(self.name, present, _option(self.when), dtypes, rows, shape, strided, self.written)


class _Computed(Tensor):
    """A tensor of the shape that the description's property <name>_shape says."""

    def of(self, description: Any) -> List[Wanted]:
        of_rows, shape = getattr(description, f"{self.name}_shape")
        return [self._wanted(description, of_rows, shape, of_rows and len(shape) == 1)]


class _Stored(Tensor):
    """The codes, scales and zero points of a weight [rows, columns] of 4 or 8 bits, or of some that stand one after
    the other, [weights, rows, columns]."""

    def of(self, description: Any) -> List[Wanted]:
        *weights, rows, columns = _sizes(description, self.shape)
        weight = description.stored(rows, columns)
        present, option = _present(description, self.when), _option(self.when)
        codes, scales, zeros = self.name.split()
        of_codes = CODES.get(weight.codes_dtype, (weight.codes_dtype,))
        of_scales = (weight.scales_dtype(description.dtype),)
        apart, with_zeros = self.strided and not weight.packed, present and description.zeros
        zeros_option = f"{option} and zeros=True" if option else "zeros=True"
        shape = (*weights, *weight.scales_shape)
        of_all = (*weights, *weight.codes_shape)
        return [
            Wanted(codes, present, option, of_codes, False, of_all, apart, False),
            Wanted(scales, present, option, of_scales, False, shape, False, False),
            Wanted(zeros, with_zeros, zeros_option, ("uint8",), False, shape, False, False),
        ]


def rows(
    name: str, columns: str, *, when: str = "", dtype: str = "", strided: bool = False, written: bool = False
) -> Tensor:
    """[..., columns], fields of the description; with the same leading dimensions as every other."""
    return Tensor(name, True, tuple(columns.split()), when, dtype, strided, written)


def fixed(
    name: str, shape: str, *, when: str = "", dtype: str = "", strided: bool = False, written: bool = False
) -> Tensor:
    """A tensor of the same shape in every call."""
    return Tensor(name, False, tuple(shape.split()), when, dtype, strided, written)


def computed(name: str, *, when: str = "", dtype: str = "", written: bool = False) -> Tensor:
    """A tensor of the shape that the description's property <name>_shape says."""
    return _Computed(name, False, (), when, dtype, written=written)


def stored(names: str, shape: str, *, when: str = "", strided: bool = False) -> Tensor:
    """A weight [rows, columns] of 4 or 8 bits, or several: the names of its codes, scales and zero points."""
    return _Stored(names, False, tuple(shape.split()), when, strided=strided)

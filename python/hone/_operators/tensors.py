"""The tensors of a call as calls.py declares them, and what each has to be for one description."""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Tuple

from .description import CODES


class Wanted(NamedTuple):
    """What one tensor of a call has to be."""

    name: str
    present: bool  # whether the operator takes it
    option: str  # with which it was prepared then; "": it always does
    dtypes: Tuple[str, ...]  # best first
    rows: bool  # whether the leading dimensions of the call come first
    shape: Tuple[int, ...]  # behind them
    strided: bool  # whether rows may lie apart
    written: bool

    @property
    def stride(self) -> str:
        """The argument of run_pointers() that is its row stride."""
        return "x_scale_stride" if self.name == "x_scales" else f"{self.name}_stride"


Tensor = Callable[[Any], List[Wanted]]

_OPTIONS = {"quantized": "an output of int8 or fp8"}  # of properties; of a flag it is its name


def _option(when: str) -> str:
    return _OPTIONS.get(when, f"{when}=True") if when else ""


def _present(description: Any, when: str) -> bool:
    """Whether a flag or property says yes; descriptions that share a call may lack it."""
    return not when or getattr(description, when, False)


def _dtypes(description: Any, dtype: str) -> Tuple[str, ...]:
    """Of "fp32", of "" for the description's, or of a property's name."""
    if not dtype:
        return (description.dtype,)
    return getattr(description, dtype) if hasattr(description, dtype) else (dtype,)


def _sizes(description: Any, names: str) -> Tuple[int, ...]:
    return tuple(int(name) if name.isdigit() else getattr(description, name) for name in names.split())


def _tensor(name: str, rows: bool, shape: str, when: str, dtype: str, strided: bool, written: bool) -> Tensor:
    def wanted(description: Any) -> List[Wanted]:
        present = _present(description, when)
        return [
            Wanted(
                name, present, _option(when), _dtypes(description, dtype), rows, _sizes(description, shape), strided,
                written,
            )
        ]  # fmt: skip

    return wanted


def rows(
    name: str, columns: str, *, when: str = "", dtype: str = "", strided: bool = False, written: bool = False
) -> Tensor:
    """[..., columns], fields of the description; with the same leading dimensions as every other."""
    return _tensor(name, True, columns, when, dtype, strided, written)


def fixed(
    name: str, shape: str, *, when: str = "", dtype: str = "", strided: bool = False, written: bool = False
) -> Tensor:
    """Of the same shape in every call."""
    return _tensor(name, False, shape, when, dtype, strided, written)


def workspace() -> Tensor:
    """Memory of any dtype and shape."""
    return lambda description: []


def computed(name: str, *, when: str = "", dtype: str = "") -> Tensor:
    """Of the shape that the description's property <name>_shape says."""

    def wanted(description: Any) -> List[Wanted]:
        of_rows, shape = getattr(description, f"{name}_shape")
        present = _present(description, when)
        strided = of_rows and bool(shape)
        return [
            Wanted(name, present, _option(when), _dtypes(description, dtype), of_rows, shape, strided, False)
        ]

    return wanted


def stored(names: str, shape: str, *, when: str = "", strided: bool = False) -> Tensor:
    """The codes, scales and zero points of a weight [rows, columns] of 4 or 8 bits."""

    def wanted(description: Any) -> List[Wanted]:
        weight = description.stored(*_sizes(description, shape))
        present = _present(description, when)
        option, with_zeros = _option(when), " and ".join(filter(None, [_option(when), "zeros=True"]))
        codes, scales, zeros = names.split()
        of_codes = CODES.get(weight.codes_dtype, (weight.codes_dtype,))
        of_scales = (weight.scales_dtype(description.dtype),)
        apart = strided and not weight.packed
        return [
            Wanted(codes, present, option, of_codes, False, weight.codes_shape, apart, False),
            Wanted(scales, present, option, of_scales, False, weight.scales_shape, False, False),
            Wanted(
                zeros, present and description.zeros, with_zeros, ("uint8",), False, weight.scales_shape, False, False
            ),
        ]  # fmt: skip

    return wanted

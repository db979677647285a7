"""Prepared quantizing of weights: hone.prepare() returns it for QuantizeWeights. What operators.py says of
threads and streams holds here, too; but a call waits until it is done, and none can be captured."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional

from . import _library
from ._arguments import check_presence
from ._operator import Operator
from ._quantized_structs import QuantizeWeightsArgs
from .quantized_descriptions import StoredWeight
from .runtime import Runtime


class Packed(NamedTuple):
    """The arrays of a stored weight, of the shapes that StoredWeight tells."""

    codes: Any
    scales: Any
    zeros: Optional[Any]


def packed_arguments(**values: int) -> bytes:
    """hone_quantize_weights_args, with these members."""
    return bytes(QuantizeWeightsArgs(struct_size=ctypes.sizeof(QuantizeWeightsArgs), **values))


class QuantizeWeightsOperator(Operator):
    """A prepared QuantizeWeights."""

    def __init__(self, description: Any, runtime: Runtime) -> None:
        super().__init__(description, runtime)
        self._run = _library.function("hone_quantize_weights_run")

    def run_pointers(
        self, stream: int, rows: int, weight: int, codes: int, scales: int, workspace: int, *,
        zeros: int = 0, weight_stride: int = 0,
    ) -> None:  # fmt: skip
        """Quantizes `rows` rows at device pointers, and waits until that is done. weight_stride is elements
        from row to row, 0 meaning in_features. Nothing is checked but what the library checks. Raises
        HoneError."""
        arguments = packed_arguments(
            weight=weight, codes=codes, scales=scales, zeros=zeros, workspace=workspace,
            weight_stride=weight_stride,
        )  # fmt: skip
        _library.check(self._run(self._handle, stream, arguments, rows))

    def __call__(
        self, weight: Any, codes: Any = None, scales: Any = None, zeros: Any = None, *, workspace: Any = None,
        stream: Any = None,
    ) -> Packed:  # fmt: skip
        """Returns (codes, scales, zeros), which a QuantizedLinear takes.

        weight is [out_features, in_features] of dtype, whose rows may lie apart. codes, scales and zeros are
        arrays without gaps, as a QuantizedLinear has them; for torch tensors they are made where they are not
        given. zeros goes with zeros=True alone.

        Raises TypeError and ValueError naming the argument, also for weights that are infinite or no number
        and for scales beyond the range of scale_dtype, and HoneError.
        """
        description = self.description
        arguments, known_stream = self._begin(weight, stream)
        pointer, stride = arguments.matrix(weight, "weight", self._dtypes, description.in_features)
        stored = description.stored_weight(arguments.rows)
        if zeros is not None:
            check_presence(zeros, "zeros", "zeros=True", description.zeros)
        dtypes = {"codes": stored.codes_dtype, "scales": stored.scales_dtype(description.scale_dtype)}
        shapes = {"codes": stored.codes_shape, "scales": stored.scales_shape}
        given = {"codes": codes, "scales": scales}
        if description.zeros:
            dtypes["zeros"], shapes["zeros"], given["zeros"] = "uint8", stored.scales_shape, zeros
        with arguments.on_stream():
            for name, value in given.items():
                if value is None:
                    given[name] = arguments.allocate(name, dtypes[name], shapes[name], weight)
        pointers = {
            name: arguments.compact(value, name, _allowed(dtypes[name]), shapes[name])
            for name, value in given.items()
        }
        needed = self.workspace_bytes(arguments.rows)
        pointers["workspace"] = self._checked_workspace(arguments, workspace, needed, weight)
        arguments.check_writable("codes", "scales", "zeros", "workspace")
        self._run_checked(
            arguments, known_stream, arguments.rows, weight=pointer, weight_stride=stride, **pointers
        )
        return Packed(given["codes"], given["scales"], given.get("zeros"))


def _allowed(dtype: str) -> tuple:
    """Where a library has no fp8, its bytes do."""
    return ("fp8_e4m3", "uint8") if dtype == "fp8_e4m3" else (dtype,)

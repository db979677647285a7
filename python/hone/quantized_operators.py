"""Prepared linear layers and feed-forward networks with weights of 4 or 8 bits: hone.prepare() returns them
for QuantizedLinear and QuantizedFfn.

What operators.py says of threads, capture, gradients and streams holds here, too.
"""

from __future__ import annotations

import struct
from typing import Any, Dict, NamedTuple, Tuple, Union

from . import _library, _quantized_structs
from ._arguments import Arguments, check_epsilon, check_presence
from ._operator import NOT_PLAIN, Operator
from ._plain_arguments import PlainArguments, PlainRows
from .quantized_descriptions import StoredWeight
from .runtime import Runtime

_LINEAR_ARGS = struct.Struct(_quantized_structs.QUANTIZED_LINEAR_ARGS_FORMAT)
_pack_linear = _LINEAR_ARGS.pack
_LINEAR_BYTES = _LINEAR_ARGS.size

_FFN_ARGS = struct.Struct(_quantized_structs.QUANTIZED_FFN_ARGS_FORMAT)
_pack_ffn = _FFN_ARGS.pack
_FFN_BYTES = _FFN_ARGS.size

# What codes may be, best first: where a library has no fp8, its bytes do.
_CODES = {"fp8": ("fp8_e4m3", "uint8")}
_FLOATS = ("fp32",)
_BYTES = ("uint8",)

Reader = Union[Arguments, PlainRows]
Given = Dict[str, Any]


class _Weight(NamedTuple):
    """How the arrays of a stored weight are called, and what they have to be."""

    codes: str
    scales: str
    zeros: str
    stored: StoredWeight


class _QuantizedOperator(Operator):
    """What both have in common. A call's arguments, by name, are read by one of two readers."""

    _weights: Tuple[_Weight, ...]
    _vectors: Tuple[Tuple[str, Tuple[int]], ...]  # arrays without gaps of dtype, and their shapes
    _strided = False  # whether rows of codes may lie apart

    def __init__(self, description: Any, runtime: Runtime, columns_in: int, columns_out: int) -> None:
        super().__init__(description, runtime)
        self._run = _library.function(f"hone_{description.C_NAME}_run")
        self._in, self._out = columns_in, columns_out
        self._codes = _CODES.get(description.format, (self._weights[0].stored.codes_dtype,))
        self._scales = (self._weights[0].stored.scales_dtype(description.dtype),)
        self._x_dtypes = self._codes if description.quantized_x else self._dtypes
        self._options: Tuple[Tuple[str, str, bool], ...] = (
            ("x_scales", "quantized_x=True", description.quantized_x),
            ("norm_weight", "norm=True", description.norm),
            ("residual", "residual=True", description.residual),
        )

    def _bind_torch(self, torch: Any) -> None:
        self._plain = PlainArguments(torch, self.device)
        super()._bind_torch(torch)

    def _call(self, x: Any, given: Given, workspace: Any, stream: Any) -> Any:
        if type(x) is self._tensor:
            try:
                return self._call_plain(x, given, workspace, stream)
            except NOT_PLAIN:
                pass
        return self._call_checked(x, given, workspace, stream)

    def _call_plain(self, x: Any, given: Given, workspace: Any, stream: Any) -> Any:
        """For torch tensors that fit. Raises one of NOT_PLAIN for others."""
        raw_stream = self._plain_stream(stream)
        reader = PlainRows(self._plain, self.description.most_rows)
        values, out = self._read(reader, x, given)
        workspace = self._plain_workspace(workspace, self.workspace_bytes(reader.rows), x, stream)
        if workspace is not None:
            values["workspace"] = workspace.data_ptr()
        self.run_pointers(raw_stream, reader.rows, **values)
        return out

    def _call_checked(self, x: Any, given: Given, workspace: Any, stream: Any) -> Any:
        arguments, known_stream = self._begin(x, stream)
        values, out = self._read(arguments, x, given)
        needed = self.workspace_bytes(arguments.rows)
        values["workspace"] = self._checked_workspace(arguments, workspace, needed, x)
        arguments.check_writable("out", "workspace")
        self._run_checked(arguments, known_stream, arguments.rows, **values)
        return out

    def _read(self, reader: Reader, x: Any, given: Given) -> Tuple[Dict[str, Any], Any]:
        """What run_pointers() takes, and what the call returns."""
        for name, option, wanted in self._options:
            check_presence(given[name], name, option, wanted)
        check_epsilon(given["epsilon"])
        values: Dict[str, Any] = {"epsilon": given["epsilon"]}
        values["x"], values["x_stride"] = reader.matrix(x, "x", self._x_dtypes, self._in)
        if self.description.quantized_x:
            self._read_x_scales(reader, given["x_scales"], values)
        for weight in self._weights:
            self._read_weight(reader, weight, given, values)
        for name, shape in self._vectors:
            if given[name] is not None:
                values[name] = reader.compact(given[name], name, self._dtypes, shape)
        out = given["out"]
        if out is None:
            out = reader.allocate("out", self._dtypes[0], reader.shape(self._out), x)
        for name, value in (("residual", given["residual"]), ("out", out)):
            if value is not None:
                values[name], values[f"{name}_stride"] = reader.matrix(value, name, self._dtypes, self._out)
        return values, out

    def _read_x_scales(self, reader: Reader, x_scales: Any, values: Dict[str, Any]) -> None:
        group = self.description.group
        if group:
            found = reader.matrix(x_scales, "x_scales", _FLOATS, self._in // group)
            values["x_scales"], values["x_scale_stride"] = found
        else:
            shape = (1,) if self.description.one_x_scale else reader.shape()
            values["x_scales"] = reader.compact(x_scales, "x_scales", _FLOATS, shape)

    def _read_weight(self, reader: Reader, weight: _Weight, given: Given, values: Dict[str, Any]) -> None:
        stored, codes = weight.stored, given[weight.codes]
        if self._strided:
            found = reader.weight(codes, weight.codes, self._codes, stored.codes_shape)
            values[weight.codes], values[f"{weight.codes}_stride"] = found
        else:
            values[weight.codes] = reader.compact(codes, weight.codes, self._codes, stored.codes_shape)
        shape = stored.scales_shape
        values[weight.scales] = reader.compact(given[weight.scales], weight.scales, self._scales, shape)
        if self.description.zeros:
            values[weight.zeros] = reader.compact(given[weight.zeros], weight.zeros, _BYTES, shape)


class QuantizedLinearOperator(_QuantizedOperator):
    """A prepared QuantizedLinear."""

    def __init__(self, description: Any, runtime: Runtime) -> None:
        columns, rows = description.in_features, description.out_features
        self._weights = (_Weight("weight", "scales", "zeros", description.stored_weight),)
        self._vectors = (("norm_weight", (columns,)), ("bias", (rows,)))
        self._strided = not description.stored_weight.packed
        super().__init__(description, runtime, columns, rows)
        self._options += (("zeros", "zeros=True", description.zeros), ("bias", "bias=True", description.bias))

    def run_pointers(
        self, stream: int, tokens: int, x: int, weight: int, scales: int, out: int, *, zeros: int = 0,
        x_scales: int = 0, norm_weight: int = 0, bias: int = 0, residual: int = 0, workspace: int = 0,
        x_stride: int = 0, x_scale_stride: int = 0, weight_stride: int = 0, residual_stride: int = 0,
        out_stride: int = 0, epsilon: float = 0.0,
    ) -> None:  # fmt: skip
        """Enqueues the operator for device pointers (0: none). Strides are elements from row to row, 0
        meaning the row's length. Nothing is checked but what the library checks. Raises HoneError."""
        status = self._run(
            self._handle,
            stream,
            _pack_linear(
                _LINEAR_BYTES, epsilon, x, x_scales, norm_weight, weight, scales, zeros, bias, residual, out,
                workspace, x_stride, x_scale_stride, weight_stride, residual_stride, out_stride,
            ),
            tokens,
        )  # fmt: skip
        if status:
            _library.check(status)

    def __call__(
        self, x: Any, weight: Any, scales: Any, zeros: Any = None, bias: Any = None, residual: Any = None, *,
        x_scales: Any = None, norm_weight: Any = None, epsilon: float = 1e-5, out: Any = None,
        workspace: Any = None, stream: Any = None,
    ) -> Any:  # fmt: skip
        """Returns out.

        x is [..., in_features], out and residual are [..., out_features], as for a Linear. weight holds
        codes: of w4a16 and w8a16 uint8 [ceil(out_features / 64), ceil(in_features / 64) * 2048 or 4096], the
        blocks of docs/formats.md without gaps; of w8a8 int8, of fp8 float8_e4m3fn or uint8 [out_features,
        in_features], whose rows may lie apart. scales are of dtype, [ceil(out_features / 64), groups, 64],
        with uint8 zeros of the same shape, for w4a16; else fp32, [out_features], [1], or, in groups,
        [ceil(out_features / 128), in_features / 128].

        x_scales belong to an x of codes: fp32 [...], [1], or, in groups, [..., in_features / 128]. bias is
        [out_features] and norm_weight [in_features]; everything else is as for a Linear.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        given = {
            "weight": weight, "scales": scales, "zeros": zeros, "bias": bias, "residual": residual,
            "x_scales": x_scales, "norm_weight": norm_weight, "epsilon": epsilon, "out": out,
        }  # fmt: skip
        return self._call(x, given, workspace, stream)


class QuantizedFfnOperator(_QuantizedOperator):
    """A prepared QuantizedFfn."""

    def __init__(self, description: Any, runtime: Runtime) -> None:
        hidden, between = description.hidden, description.intermediate
        first = ("gate", "up") if description.gated else ("up",)
        stored = {"gate": description.stored_up, "up": description.stored_up, "down": description.stored_down}
        self._weights = tuple(
            _Weight(name, f"{name}_scales", f"{name}_zeros", stored[name]) for name in (*first, "down")
        )
        self._vectors = (("norm_weight", (hidden,)), ("up_bias", (between,)), ("down_bias", (hidden,)))
        super().__init__(description, runtime, hidden, hidden)
        gated, zeros, bias = description.gated, description.zeros, description.bias
        self._options += (
            ("gate", "gated=True", gated),
            ("gate_scales", "gated=True", gated),
            ("gate_zeros", "gated=True and zeros=True", gated and zeros),
            ("up_zeros", "zeros=True", zeros),
            ("down_zeros", "zeros=True", zeros),
            ("up_bias", "bias=True", bias),
            ("down_bias", "bias=True", bias),
        )

    def run_pointers(
        self, stream: int, tokens: int, x: int, up: int, up_scales: int, down: int, down_scales: int,
        out: int, *, workspace: int = 0, gate: int = 0, gate_scales: int = 0, gate_zeros: int = 0,
        up_zeros: int = 0, down_zeros: int = 0, x_scales: int = 0, norm_weight: int = 0, up_bias: int = 0,
        down_bias: int = 0, residual: int = 0, x_stride: int = 0, x_scale_stride: int = 0,
        residual_stride: int = 0, out_stride: int = 0, epsilon: float = 0.0,
    ) -> None:  # fmt: skip
        """Enqueues the operator for device pointers (0: none). Strides are elements from row to row, 0
        meaning the row's length. Nothing is checked but what the library checks. Raises HoneError."""
        status = self._run(
            self._handle,
            stream,
            _pack_ffn(
                _FFN_BYTES, epsilon, x, x_scales, norm_weight, gate, gate_scales, gate_zeros, up, up_scales,
                up_zeros, down, down_scales, down_zeros, up_bias, down_bias, residual, out, workspace,
                x_stride, x_scale_stride, residual_stride, out_stride,
            ),
            tokens,
        )  # fmt: skip
        if status:
            _library.check(status)

    def __call__(
        self, x: Any, *, up: Any, up_scales: Any, down: Any, down_scales: Any, gate: Any = None,
        gate_scales: Any = None, gate_zeros: Any = None, up_zeros: Any = None, down_zeros: Any = None,
        up_bias: Any = None, down_bias: Any = None, residual: Any = None, x_scales: Any = None,
        norm_weight: Any = None, epsilon: float = 1e-5, out: Any = None, workspace: Any = None,
        stream: Any = None,
    ) -> Any:  # fmt: skip
        """Returns out.

        x, residual and out are [..., hidden] of one shape. gate (where the operator is gated) and up are
        stored weights [intermediate, hidden], down is one [hidden, intermediate], each with its scales and
        zeros, as those of a QuantizedLinear, all without gaps; up_bias is [intermediate], down_bias and
        norm_weight are [hidden]. Everything else is as for a FusedFfn and a QuantizedLinear.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        given = {
            "gate": gate, "gate_scales": gate_scales, "gate_zeros": gate_zeros, "up": up,
            "up_scales": up_scales, "up_zeros": up_zeros, "down": down, "down_scales": down_scales,
            "down_zeros": down_zeros, "up_bias": up_bias, "down_bias": down_bias, "residual": residual,
            "x_scales": x_scales, "norm_weight": norm_weight, "epsilon": epsilon, "out": out,
        }  # fmt: skip
        return self._call(x, given, workspace, stream)

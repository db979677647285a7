"""Prepared linear layers and feed-forward networks: hone.prepare() returns them for Linear and FusedFfn.

What operators.py says of threads, capture, gradients and streams holds here, too.
"""

from __future__ import annotations

import struct
from typing import Any, Tuple

from . import _library, _structs
from ._arguments import Arguments, check_epsilon, check_presence
from ._operator import NOT_PLAIN, NotPlain, Operator
from .runtime import Runtime

_LINEAR_ARGS = struct.Struct(_structs.LINEAR_ARGS_FORMAT)
_pack_linear = _LINEAR_ARGS.pack
_LINEAR_BYTES = _LINEAR_ARGS.size

_FFN_ARGS = struct.Struct(_structs.FUSED_FFN_ARGS_FORMAT)
_pack_ffn = _FFN_ARGS.pack
_FFN_BYTES = _FFN_ARGS.size


class _TokenOperator(Operator):
    """What both have in common: rows of `columns_in` elements become rows of `columns_out`."""

    def __init__(self, description: Any, runtime: Runtime, columns_in: int, columns_out: int) -> None:
        super().__init__(description, runtime)
        self._run = _library.function(f"hone_{description.C_NAME}_run")
        self._in, self._out = columns_in, columns_out
        self._row = (columns_out,)
        self._norm_row = (columns_in,)
        self._residual = description.residual
        self._norm = description.norm

    def _plain_out(self, out: Any, shape: Any, likeness: Any) -> Any:
        """`out`, or a new tensor of `shape` where it is None."""
        if out is None:
            return self._torch.empty(shape, dtype=self._torch_dtype, device=likeness.device)
        if self._takes(out, self._torch_dtype, shape):
            return out
        raise NotPlain

    def _plain_option(self, tensor: Any, shape: Any, wanted: bool) -> int:
        """The pointer of a tensor that the operator takes or not; 0: not."""
        if tensor is None and not wanted:
            return 0
        if wanted and self._takes(tensor, self._torch_dtype, shape):
            return tensor.data_ptr()
        raise NotPlain

    def _checked_norm(self, arguments: Arguments, norm_weight: Any, epsilon: Any) -> int:
        """The pointer of the norm's weight; 0 where the operator has no norm."""
        check_presence(norm_weight, "norm_weight", "norm=True", self._norm)
        check_epsilon(epsilon)
        if not self._norm:
            return 0
        return arguments.compact(norm_weight, "norm_weight", self._dtypes, self._norm_row)


class LinearOperator(_TokenOperator):
    """A prepared Linear."""

    def __init__(self, description: Any, runtime: Runtime) -> None:
        super().__init__(description, runtime, description.in_features, description.out_features)
        self._weight = (self._out, self._in)
        self._bias = description.bias

    def run_pointers(
        self, stream: int, tokens: int, x: int, weight: int, bias: int, residual: int, out: int,
        workspace: int, x_stride: int, weight_stride: int, residual_stride: int, out_stride: int,
        norm_weight: int = 0, epsilon: float = 0.0,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are elements from row to row, 0
        meaning the row's length. Nothing is checked but what the library checks. Raises HoneError."""
        status = self._run(
            self._handle,
            stream,
            _pack_linear(
                _LINEAR_BYTES, epsilon, x, weight, bias, residual, out, workspace,
                x_stride, weight_stride, residual_stride, out_stride, norm_weight,
            ),
            tokens,
        )
        if status:
            _library.check(status)

    def __call__(
        self, x: Any, weight: Any, bias: Any = None, residual: Any = None, *, norm_weight: Any = None,
        epsilon: float = 1e-5, out: Any = None, workspace: Any = None, stream: Any = None,
    ) -> Any:
        """Returns out.

        x is [..., in_features], out and residual are [..., out_features], with the same leading dimensions,
        which have to collapse into rows of one common stride; weight is [out_features, in_features], whose
        rows may lie apart; bias is [out_features] and norm_weight [in_features], without gaps. out may be
        residual itself. epsilon is the norm's. workspace is any
        memory of workspace_bytes(tokens), aligned to 256, that no other call uses meanwhile. out and
        workspace are made by PyTorch where they are not given and x is its tensor. stream is an int
        (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current one.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(x) is self._tensor:
            try:
                return self._call_plain(
                    x, weight, bias, residual, norm_weight, epsilon, out, workspace, stream
                )
            except NOT_PLAIN:
                pass
        return self._call_checked(x, weight, bias, residual, norm_weight, epsilon, out, workspace, stream)

    def _call_plain(
        self, x: Any, weight: Any, bias: Any, residual: Any, norm_weight: Any, epsilon: float, out: Any,
        workspace: Any, stream: Any,
    ) -> Any:
        """For torch tensors that fit. Raises one of NOT_PLAIN for others."""
        columns = self._in
        shape = x.shape
        x_stride = self._plain_rows(x, shape, columns)
        if not self._takes(weight, self._torch_dtype, self._weight):
            raise NotPlain
        shape = shape[:-1] + self._row
        bias_pointer = self._plain_option(bias, self._row, self._bias)
        residual_pointer = self._plain_option(residual, shape, self._residual)
        norm_pointer = self._plain_option(norm_weight, self._norm_row, self._norm)
        tokens = x.numel() // columns
        raw_stream = self._plain_stream(stream)
        workspace = self._plain_workspace(workspace, self.workspace_bytes(tokens), x, stream)
        out = self._plain_out(out, shape, x)
        self.run_pointers(
            raw_stream, tokens, x.data_ptr(), weight.data_ptr(), bias_pointer, residual_pointer,
            out.data_ptr(), 0 if workspace is None else workspace.data_ptr(), x_stride, 0, 0, 0,
            norm_pointer, epsilon,
        )
        return out

    def _call_checked(
        self, x: Any, weight: Any, bias: Any, residual: Any, norm_weight: Any, epsilon: Any, out: Any,
        workspace: Any, stream: Any,
    ) -> Any:
        arguments, known_stream = self._begin(x, stream)
        dtypes, columns = self._dtypes, self._out
        x_pointer, x_stride = arguments.matrix(x, "x", dtypes, self._in)
        weight_pointer, weight_stride = arguments.weight(weight, "weight", dtypes, self._weight)
        check_presence(bias, "bias", "bias=True", self._bias)
        check_presence(residual, "residual", "residual=True", self._residual)
        bias_pointer = residual_pointer = residual_stride = 0
        if self._bias:
            bias_pointer = arguments.compact(bias, "bias", dtypes, self._row)
        if self._residual:
            residual_pointer, residual_stride = arguments.matrix(residual, "residual", dtypes, columns)
        norm_pointer = self._checked_norm(arguments, norm_weight, epsilon)
        if out is None:
            out = arguments.allocate("out", dtypes[0], arguments.shape(columns), x)
        out_pointer, out_stride = arguments.matrix(out, "out", dtypes, columns)
        workspace_pointer = self._checked_workspace(
            arguments, workspace, self.workspace_bytes(arguments.rows), x
        )
        arguments.check_writable("out", "workspace")
        self._run_checked(
            arguments, known_stream, arguments.rows, x_pointer, weight_pointer, bias_pointer,
            residual_pointer, out_pointer, workspace_pointer, x_stride, weight_stride, residual_stride,
            out_stride, norm_pointer, epsilon,
        )
        return out


class FusedFfnOperator(_TokenOperator):
    """A prepared FusedFfn."""

    def __init__(self, description: Any, runtime: Runtime) -> None:
        super().__init__(description, runtime, description.hidden, description.hidden)
        self._gated = description.gated
        self._bias = description.bias
        self._up = (description.intermediate, description.hidden)
        self._down = (description.hidden, description.intermediate)
        self._between = (description.intermediate,)

    def run_pointers(
        self, stream: int, tokens: int, x: int, gate: int, up: int, up_bias: int, down: int, down_bias: int,
        residual: int, out: int, workspace: int, x_stride: int, residual_stride: int, out_stride: int,
        norm_weight: int = 0, epsilon: float = 0.0,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are elements from row to row, 0
        meaning hidden. Nothing is checked but what the library checks. Raises HoneError."""
        status = self._run(
            self._handle,
            stream,
            _pack_ffn(
                _FFN_BYTES, epsilon, x, gate, up, up_bias, down, down_bias, residual, out, workspace,
                x_stride, residual_stride, out_stride, norm_weight,
            ),
            tokens,
        )
        if status:
            _library.check(status)

    def __call__(
        self, x: Any, gate: Any, up: Any, down: Any, up_bias: Any = None, down_bias: Any = None,
        residual: Any = None, *, norm_weight: Any = None, epsilon: float = 1e-5, out: Any = None,
        workspace: Any = None, stream: Any = None,
    ) -> Any:
        """Returns out.

        x, residual and out are [..., hidden] of one shape, as for a Linear; gate (None where the operator is
        not gated) and up are [intermediate, hidden], down is [hidden, intermediate], up_bias [intermediate],
        down_bias and norm_weight [hidden], all without gaps. residual may be x, and out may be residual
        itself, or both. epsilon, workspace and stream are those of a Linear.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        weights = (gate, up, up_bias, down, down_bias)
        if type(x) is self._tensor:
            try:
                return self._call_plain(
                    x, weights, residual, norm_weight, epsilon, out, workspace, stream
                )
            except NOT_PLAIN:
                pass
        return self._call_checked(x, weights, residual, norm_weight, epsilon, out, workspace, stream)

    def _call_plain(
        self, x: Any, weights: Tuple[Any, ...], residual: Any, norm_weight: Any, epsilon: float, out: Any,
        workspace: Any, stream: Any,
    ) -> Any:
        """For torch tensors that fit. Raises one of NOT_PLAIN for others."""
        columns = self._in
        shape = x.shape
        x_stride = self._plain_rows(x, shape, columns)
        gate, up, up_bias, down, down_bias = weights
        pointers = (
            self._plain_option(gate, self._up, self._gated),
            self._plain_option(up, self._up, True),
            self._plain_option(up_bias, self._between, self._bias),
            self._plain_option(down, self._down, True),
            self._plain_option(down_bias, self._row, self._bias),
            self._plain_option(residual, shape, self._residual),
        )
        norm_pointer = self._plain_option(norm_weight, self._norm_row, self._norm)
        tokens = x.numel() // columns
        raw_stream = self._plain_stream(stream)
        workspace = self._plain_workspace(workspace, self.workspace_bytes(tokens), x, stream)
        out = self._plain_out(out, shape, x)
        self.run_pointers(
            raw_stream, tokens, x.data_ptr(), *pointers, out.data_ptr(),
            0 if workspace is None else workspace.data_ptr(), x_stride, 0, 0, norm_pointer, epsilon,
        )
        return out

    def _call_checked(
        self, x: Any, weights: Tuple[Any, ...], residual: Any, norm_weight: Any, epsilon: Any, out: Any,
        workspace: Any, stream: Any,
    ) -> Any:
        arguments, known_stream = self._begin(x, stream)
        dtypes, columns = self._dtypes, self._out
        x_pointer, x_stride = arguments.matrix(x, "x", dtypes, columns)
        pointers = []
        for value, name, shape, option, wanted in zip(
            weights,
            ("gate", "up", "up_bias", "down", "down_bias"),
            (self._up, self._up, self._between, self._down, self._row),
            ("gated=True", "", "bias=True", "", "bias=True"),
            (self._gated, True, self._bias, True, self._bias),
        ):
            if option:
                check_presence(value, name, option, wanted)
            pointers.append(arguments.compact(value, name, dtypes, shape) if wanted else 0)
        check_presence(residual, "residual", "residual=True", self._residual)
        residual_pointer = residual_stride = 0
        if self._residual:
            residual_pointer, residual_stride = arguments.matrix(residual, "residual", dtypes, columns)
        norm_pointer = self._checked_norm(arguments, norm_weight, epsilon)
        if out is None:
            out = arguments.allocate("out", dtypes[0], arguments.shape(columns), x)
        out_pointer, out_stride = arguments.matrix(out, "out", dtypes, columns)
        workspace_pointer = self._checked_workspace(
            arguments, workspace, self.workspace_bytes(arguments.rows), x
        )
        arguments.check_writable("out", "workspace")
        self._run_checked(
            arguments, known_stream, arguments.rows, x_pointer, *pointers, residual_pointer, out_pointer,
            workspace_pointer, x_stride, residual_stride, out_stride, norm_pointer, epsilon,
        )
        return out

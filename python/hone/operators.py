"""Prepared operators: what :func:`hone.prepare` returns.

Operators may be called from many threads at once, and under stream capture; gradients are not recorded
(hone.ops has operators for autograd). Launches go to the caller's current stream.
"""

from __future__ import annotations

import struct
from typing import Any, Tuple

from . import _arrays, _library, _structs
from ._arguments import check_epsilon, check_presence
from ._operator import NOT_PLAIN, NotPlain, Operator
from .runtime import Runtime

_ARGS = struct.Struct(_structs.NORM_ARGS_FORMAT)
_pack_args = _ARGS.pack
_ARGS_BYTES = _ARGS.size

# What `out` may be for codes, best first: where a library has no fp8, its bytes do.
_CODES = {"int8": ("int8",), "fp8": ("fp8_e4m3", "uint8")}


class Norm(Operator):
    """A prepared RmsNorm or LayerNorm."""

    def __init__(self, description: Any, runtime: Runtime) -> None:
        super().__init__(description, runtime)
        self._run = _library.function("hone_norm_run")
        self._hidden: int = description.hidden
        self._row = (self._hidden,)
        self._residual = description.residual
        self._bias = getattr(description, "bias", False)
        self._quantized = description.output != "same"
        self._outputs = _CODES.get(description.output, self._dtypes)

    def _bind_torch(self, torch: Any) -> None:
        self._torch_output = _arrays.torch_dtype(torch, self._outputs[0])
        super()._bind_torch(torch)

    def run_pointers(
        self, stream: int, rows: int, x: int, residual: int, weight: int, bias: int, out: int, sum: int,
        scale: int, x_stride: int, residual_stride: int, out_stride: int, sum_stride: int, epsilon: float,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are elements from row to row, 0
        meaning hidden. Nothing is checked but what the library checks. Raises HoneError."""
        status = self._run(
            self._handle,
            stream,
            _pack_args(
                _ARGS_BYTES, epsilon, x, residual, weight, bias, out, sum, scale,
                x_stride, residual_stride, out_stride, sum_stride,
            ),
            rows,
        )
        if status:
            _library.check(status)

    def __call__(
        self, x: Any, weight: Any, residual: Any = None, bias: Any = None, *, out: Any = None,
        sum: Any = None, scale: Any = None, epsilon: float = 1e-5, stream: Any = None,
    ) -> Any:
        """Returns out, or (out, sum), (out, scale), (out, sum, scale): sum with a residual, scale with codes.

        x, residual, out and sum are [..., hidden] of one shape, whose leading dimensions have to collapse
        into rows of one common stride; weight and bias are [hidden], scale is [...] in fp32, without gaps.
        Outputs that are not given are made by PyTorch when x is its tensor. out may be x itself, sum may be x
        or residual. stream is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's
        current one.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(x) is self._tensor:
            try:
                return self._call_plain(x, weight, residual, bias, out, sum, scale, epsilon, stream)
            except NOT_PLAIN:
                pass
        return self._call_checked(x, weight, residual, bias, out, sum, scale, epsilon, stream)

    def _call_plain(
        self, x: Any, weight: Any, residual: Any, bias: Any, out: Any, sum: Any, scale: Any, epsilon: float,
        stream: Any,
    ) -> Any:
        """For torch tensors that fit. Raises one of NOT_PLAIN for others."""
        hidden = self._hidden
        dtype = self._torch_dtype
        shape = x.shape
        x_stride = self._plain_rows(x, shape, hidden)
        if not self._takes(weight, dtype, self._row):
            raise NotPlain
        if out is None:
            out = self._empty_like(x, dtype=self._torch_output) if self._quantized else self._empty_like(x)
        elif not self._takes(out, self._torch_output, shape):
            raise NotPlain
        residual_pointer = bias_pointer = sum_pointer = scale_pointer = 0
        if self._residual:
            if not self._takes(residual, dtype, shape):
                raise NotPlain
            if sum is None:
                sum = self._empty_like(x)
            elif not self._takes(sum, dtype, shape):
                raise NotPlain
            residual_pointer = residual.data_ptr()
            sum_pointer = sum.data_ptr()
        elif residual is not None or sum is not None:
            raise NotPlain
        if self._bias:
            if not self._takes(bias, dtype, self._row):
                raise NotPlain
            bias_pointer = bias.data_ptr()
        elif bias is not None:
            raise NotPlain
        if self._quantized:
            if scale is None:
                scale = self._torch.empty(shape[:-1], dtype=self._torch.float32, device=x.device)
            elif not self._takes(scale, self._torch.float32, shape[:-1]):
                raise NotPlain
            scale_pointer = scale.data_ptr()
        elif scale is not None:
            raise NotPlain
        self.run_pointers(
            self._plain_stream(stream), x.numel() // hidden, x.data_ptr(), residual_pointer,
            weight.data_ptr(), bias_pointer, out.data_ptr(), sum_pointer, scale_pointer, x_stride, hidden,
            hidden, hidden, epsilon,
        )
        return self._results(out, sum, scale)

    def _results(self, out: Any, sum: Any, scale: Any) -> Any:
        if self._residual:
            return (out, sum, scale) if self._quantized else (out, sum)
        return (out, scale) if self._quantized else out

    def _call_checked(
        self, x: Any, weight: Any, residual: Any, bias: Any, out: Any, sum: Any, scale: Any, epsilon: float,
        stream: Any,
    ) -> Any:
        arguments, known_stream = self._begin(x, stream)
        dtypes, hidden = self._dtypes, self._hidden
        x_pointer, x_stride = arguments.matrix(x, "x", dtypes, hidden)
        weight_pointer = arguments.compact(weight, "weight", dtypes, self._row)
        self._check_presence(residual, bias, sum, scale)
        check_epsilon(epsilon)
        residual_pointer = residual_stride = bias_pointer = sum_pointer = sum_stride = scale_pointer = 0
        if self._bias:
            bias_pointer = arguments.compact(bias, "bias", dtypes, self._row)
        if self._residual:
            residual_pointer, residual_stride = arguments.matrix(residual, "residual", dtypes, hidden)
            if sum is None:
                sum = arguments.allocate("sum", dtypes[0], arguments.shape(hidden), x)
            sum_pointer, sum_stride = arguments.matrix(sum, "sum", dtypes, hidden)
        if out is None:
            out = arguments.allocate("out", self._outputs[0], arguments.shape(hidden), x)
        out_pointer, out_stride = arguments.matrix(out, "out", self._outputs, hidden)
        if self._quantized:
            if scale is None:
                scale = arguments.allocate("scale", "fp32", arguments.shape(), x)
            scale_pointer = arguments.compact(scale, "scale", ("fp32",), arguments.shape())
        arguments.check_writable("out", "sum", "scale")
        self._run_checked(
            arguments, known_stream, arguments.rows, x_pointer, residual_pointer, weight_pointer,
            bias_pointer, out_pointer, sum_pointer, scale_pointer, x_stride, residual_stride, out_stride,
            sum_stride, epsilon,
        )
        return self._results(out, sum, scale)

    def _check_presence(self, residual: Any, bias: Any, sum: Any, scale: Any) -> None:
        check_presence(residual, "residual", "residual=True", self._residual)
        check_presence(bias, "bias", "bias=True", self._bias)
        if not self._residual:
            check_presence(sum, "sum", "residual=True", False)
        if not self._quantized:
            check_presence(scale, "scale", "an output of int8 or fp8", False)


class NormBackward(Operator):
    """A prepared RmsNormBackward."""

    def __init__(self, description: Any, runtime: Runtime) -> None:
        super().__init__(description, runtime)
        self._run = _library.function("hone_rms_norm_backward_run")
        self._hidden: int = description.hidden
        self._row = (self._hidden,)
        self._residual = description.residual

    def run_pointers(
        self, stream: int, rows: int, dy: int, x: int, weight: int, dsum: int, dx: int, dweight: int,
        workspace: int, dy_stride: int, x_stride: int, dsum_stride: int, dx_stride: int, epsilon: float,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are elements from row to row, 0
        meaning hidden. Nothing is checked but what the library checks. Raises HoneError."""
        status = self._run(
            self._handle,
            stream,
            _pack_args(
                _ARGS_BYTES, epsilon, dy, x, weight, dsum, dx, dweight, workspace,
                dy_stride, x_stride, dsum_stride, dx_stride,
            ),
            rows,
        )
        if status:
            _library.check(status)

    def __call__(
        self, dy: Any, x: Any, weight: Any, dsum: Any = None, *, dx: Any = None, dweight: Any = None,
        workspace: Any = None, epsilon: float = 1e-5, stream: Any = None,
    ) -> Tuple[Any, Any]:
        """Returns (dx, dweight).

        dy, x (what was normalized: for a norm with a residual its sum), dsum and dx are [..., hidden] of one
        shape, as for Norm; weight and dweight are [hidden]; workspace is any memory of workspace_bytes(rows),
        aligned to 256, that no other call uses meanwhile. What is not given is made by PyTorch when dy is its
        tensor.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(dy) is self._tensor:
            try:
                return self._call_plain(dy, x, weight, dsum, dx, dweight, workspace, epsilon, stream)
            except NOT_PLAIN:
                pass
        return self._call_checked(dy, x, weight, dsum, dx, dweight, workspace, epsilon, stream)

    def _call_plain(
        self, dy: Any, x: Any, weight: Any, dsum: Any, dx: Any, dweight: Any, workspace: Any, epsilon: float,
        stream: Any,
    ) -> Tuple[Any, Any]:
        """For torch tensors that fit, with everything that is written made here. Raises one of NOT_PLAIN for
        others."""
        shape, hidden = dy.shape, self._hidden
        if dx is not None or dweight is not None or workspace is not None or (dsum is None) == self._residual:
            raise NotPlain
        if x.shape != shape or (self._residual and dsum.shape != shape):
            raise NotPlain
        dy_stride = self._plain_rows(dy, shape, hidden)
        x_stride = self._plain_rows(x, shape, hidden)
        dsum_stride = self._plain_rows(dsum, shape, hidden) if self._residual else 0
        if not self._takes(weight, self._torch_dtype, self._row):
            raise NotPlain
        rows = dy.numel() // hidden
        workspace = self._plain_workspace(None, self.workspace_bytes(rows), dy, stream)
        dx = self._empty_like(dy)
        dweight = self._empty_like(weight)
        self.run_pointers(
            self._plain_stream(stream), rows, dy.data_ptr(), x.data_ptr(), weight.data_ptr(),
            dsum.data_ptr() if self._residual else 0, dx.data_ptr(), dweight.data_ptr(),
            0 if workspace is None else workspace.data_ptr(), dy_stride, x_stride, dsum_stride, hidden,
            epsilon,
        )
        return dx, dweight

    def _call_checked(
        self, dy: Any, x: Any, weight: Any, dsum: Any, dx: Any, dweight: Any, workspace: Any, epsilon: float,
        stream: Any,
    ) -> Tuple[Any, Any]:
        arguments, known_stream = self._begin(dy, stream)
        dtypes, hidden = self._dtypes, self._hidden
        dy_pointer, dy_stride = arguments.matrix(dy, "dy", dtypes, hidden)
        x_pointer, x_stride = arguments.matrix(x, "x", dtypes, hidden)
        weight_pointer = arguments.compact(weight, "weight", dtypes, self._row)
        check_presence(dsum, "dsum", "residual=True", self._residual)
        check_epsilon(epsilon)
        dsum_pointer = dsum_stride = 0
        if self._residual:
            dsum_pointer, dsum_stride = arguments.matrix(dsum, "dsum", dtypes, hidden)
        if dx is None:
            dx = arguments.allocate("dx", dtypes[0], arguments.shape(hidden), dy)
        if dweight is None:
            dweight = arguments.allocate("dweight", dtypes[0], self._row, dy)
        dx_pointer, dx_stride = arguments.matrix(dx, "dx", dtypes, hidden)
        dweight_pointer = arguments.compact(dweight, "dweight", dtypes, self._row)
        workspace_pointer = self._checked_workspace(
            arguments, workspace, self.workspace_bytes(arguments.rows), dy
        )
        arguments.check_writable("dx", "dweight", "workspace")
        self._run_checked(
            arguments, known_stream, arguments.rows, dy_pointer, x_pointer, weight_pointer, dsum_pointer,
            dx_pointer, dweight_pointer, workspace_pointer, dy_stride, x_stride, dsum_stride, dx_stride,
            epsilon,
        )
        return dx, dweight

"""Prepared operators: what :func:`hone.prepare` returns. They may be called from many threads at once, and
under stream capture; gradients are not recorded (hone.ops has operators for autograd). Launches go to the
caller's current stream.

Generated from kernel_templates/*/operators.py by `./hone generate`.
"""

from __future__ import annotations

from ctypes import c_int64, c_void_p
from typing import Any, NamedTuple, Optional, Tuple

from .. import descriptions
from .._native import structs
from .._native.arrays import Array
from .._native.library import check
from .base import NOT_PLAIN
from .heads import HeadsOperator
from .rows import RowsOperator
from .tensors import computed, fixed, rows, stored

__all__ = [
    "EmbeddingOperator",
    "ExpertLinearOperator",
    "ExpertRoutingOperator",
    "FusedFfnOperator",
    "LinearOperator",
    "Norm",
    "NormBackward",
    "QuantizedExpertLinearOperator",
    "QuantizedFfnOperator",
    "QuantizedLinearOperator",
    "SampleOperator",
]


class AttentionAppendGiven(NamedTuple):
    """What a call is given, but for its stream."""

    q: Any
    k: Any
    v: Any
    k_cache: Any
    v_cache: Any
    kv_lengths: Any
    kv_len: Any
    page_table: Any
    cos: Any
    sin: Any
    q_weight: Any
    k_weight: Any
    scale: Any
    softcap: Any
    epsilon: Any
    out: Any
    workspace: Any


class AttentionAppendCall(HeadsOperator):
    """Runs a prepared AttentionAppend."""

    CALL = "attention_append"
    ARGUMENTS = structs.AttentionAppendArgs

    def run_pointers(
        self, stream: int, batch: int, kv_len: int, q: int = 0, k: int = 0, v: int = 0, out: int = 0,
        k_cache: int = 0, v_cache: int = 0, cos: int = 0, sin: int = 0, kv_lengths: int = 0,
        page_table: int = 0, q_weight: int = 0, k_weight: int = 0, workspace: int = 0,
        q_strides: Tuple[int, ...] = (0, 0), k_strides: Tuple[int, ...] = (0, 0),
        v_strides: Tuple[int, ...] = (0, 0), out_strides: Tuple[int, ...] = (0, 0),
        cache_strides: Tuple[int, ...] = (0, 0, 0), page_table_stride: int = 0, pool_pages: int = 0,
        table_rows: int = 0, scale: float = 0.0, softcap: float = 0.0, epsilon: float = 1e-5,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(
            self._bytes, scale, softcap, epsilon, q, k, v, out, k_cache, v_cache, cos, sin, kv_lengths,
            page_table, q_weight, k_weight, workspace, *q_strides, *k_strides, *v_strides, *out_strides,
            *cache_strides, page_table_stride, pool_pages, table_rows,
        )
        status = self._run(self._pointer, c_void_p(stream), packed, c_int64(batch), c_int64(kv_len))
        if status:
            check(status)

    def __call__(
        self, q: Array, k: Array, v: Array, k_cache: Array, v_cache: Array, kv_lengths: Array, *,
        kv_len: Optional[int] = None, page_table: Optional[Array] = None, cos: Optional[Array] = None,
        sin: Optional[Array] = None, q_weight: Optional[Array] = None, k_weight: Optional[Array] = None,
        scale: Optional[float] = None, softcap: Optional[float] = None, epsilon: float = 1e-5,
        out: Optional[Array] = None, workspace: Optional[Array] = None, stream: Any = None,
    ) -> Any:
        """Returns out, and writes the new token's rows of k_cache and v_cache.

        q and out are [batch, heads, head_dim], k and v [batch, kv_heads, head_dim]; heads are contiguous. The
        caches are [batch, room, kv_heads, head_dim], or pages [pool_pages, page_size, kv_heads, head_dim]
        with a page_table [batch, pages of a sequence]; both have the same strides. kv_lengths [batch]: keys
        of each sequence, the new one included; kv_len the most of any, None: as many as there is room for.
        cos and sin are fp32 [positions, rotary_dim / 2] without gaps; q_weight and k_weight [head_dim] are
        the norms', epsilon is, too. scale: None is head_dim^-0.5. Lengths and tables are int32 on the device.
        workspace is any memory of workspace_bytes(batch, kv_len), aligned to 256, that no other call uses
        meanwhile. out and workspace are made by PyTorch where they are not given and q is its tensor. stream
        is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        given = AttentionAppendGiven(
            q, k, v, k_cache, v_cache, kv_lengths, kv_len, page_table, cos, sin, q_weight, k_weight, scale,
            softcap, epsilon, out, workspace,
        )
        if type(q) is self._tensor:
            try:
                return self._call_plain(given, stream)
            except NOT_PLAIN:
                pass
        return self._call_checked(given, stream)


class AttentionGiven(NamedTuple):
    """What a call is given, but for its stream."""

    q: Any
    k: Any
    v: Any
    kv_lengths: Any
    page_table: Any
    q_starts: Any
    kv_starts: Any
    q_len: Any
    kv_len: Any
    prompts: Any
    k_scale: Any
    v_scale: Any
    sinks: Any
    scale: Any
    softcap: Any
    out: Any
    lse: Any
    workspace: Any


class AttentionCall(HeadsOperator):
    """Runs a prepared Attention."""

    CALL = "attention"
    ARGUMENTS = structs.AttentionArgs

    def run_pointers(
        self, stream: int, batch: int, q_len: int, kv_len: int, q: int = 0, k: int = 0, v: int = 0,
        out: int = 0, lse: int = 0, kv_lengths: int = 0, q_starts: int = 0, kv_starts: int = 0,
        page_table: int = 0, k_scale: int = 0, v_scale: int = 0, sinks: int = 0, workspace: int = 0,
        q_strides: Tuple[int, ...] = (0, 0, 0), k_strides: Tuple[int, ...] = (0, 0, 0),
        v_strides: Tuple[int, ...] = (0, 0, 0), out_strides: Tuple[int, ...] = (0, 0, 0),
        page_table_stride: int = 0, pool_pages: int = 0, q_tokens: int = 0, kv_tokens: int = 0,
        prompts: int = 0, scale: float = 0.0, softcap: float = 0.0,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(
            self._bytes, scale, softcap, 0, q, k, v, out, lse, kv_lengths, q_starts, kv_starts, page_table,
            k_scale, v_scale, workspace, *q_strides, *k_strides, *v_strides, *out_strides, page_table_stride,
            pool_pages, q_tokens, kv_tokens, sinks, prompts,
        )
        status = self._run(
            self._pointer, c_void_p(stream), packed, c_int64(batch), c_int64(q_len), c_int64(kv_len),
        )
        if status:
            check(status)

    def __call__(
        self, q: Array, k: Array, v: Array, *, kv_lengths: Optional[Array] = None,
        page_table: Optional[Array] = None, q_starts: Optional[Array] = None,
        kv_starts: Optional[Array] = None, q_len: Optional[int] = None, kv_len: Optional[int] = None,
        prompts: Optional[int] = None, k_scale: Optional[Array] = None, v_scale: Optional[Array] = None,
        sinks: Optional[Array] = None, scale: Optional[float] = None, softcap: Optional[float] = None,
        out: Optional[Array] = None, lse: Optional[Array] = None, workspace: Optional[Array] = None,
        stream: Any = None,
    ) -> Any:
        """Returns out, or (out, lse) where the operator has an lse.

        q and out are [batch, q_len, heads, head_dim]; k and v [batch, kv_len, kv_heads, head_dim], or pages
        [pool_pages, page_size, kv_heads, head_dim] with a page_table [batch, pages of a sequence]; packed, q
        is [q_tokens, heads, head_dim], k and v are [kv_tokens, kv_heads, head_dim], and sequence b has the
        tokens from q_starts[b] to q_starts[b + 1] and from kv_starts[b] to kv_starts[b + 1], of [batch + 1]
        each; packed with a page_size, k and v are pages, and kv_lengths takes the place of kv_starts. Heads
        are contiguous, everything else may lie apart: [batch, heads, tokens, head_dim] is a transposed view.

        kv_lengths [batch]: keys of each sequence, the call's own tokens included. kv_len: keys of every
        sequence, or the most of any where the lengths are on the device; None: as many as k has room for. Of
        a packed call the most of any, q_len and where there are no pages kv_len, have to be given; prompts:
        over pages, as many sequences at the end have more than one query and all others one or none, where
        the host knows it, which leaves out launches that would find nothing. Lengths, starts and tables are
        int32 on the device; k_scale and v_scale are fp32 [kv_heads], of an fp8 cache; sinks fp32 [heads].
        scale: None is head_dim^-0.5.

        lse is fp32 [batch, heads, q_len], packed [heads, q_tokens], without gaps, in natural logarithms.
        workspace is any memory of workspace_bytes(batch, q_len, kv_len), aligned to 256, that no other call
        uses meanwhile. out, lse and workspace are made by PyTorch where they are not given and q is its
        tensor. stream is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current
        one.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        given = AttentionGiven(
            q, k, v, kv_lengths, page_table, q_starts, kv_starts, q_len, kv_len, prompts, k_scale, v_scale,
            sinks, scale, softcap, out, lse, workspace,
        )
        if type(q) is self._tensor:
            try:
                return self._call_plain(given, stream)
            except NOT_PLAIN:
                pass
        return self._call_checked(given, stream)


class EmbeddingOperator(RowsOperator):
    """A prepared Embedding."""

    CALL = "embedding"
    ARGUMENTS = structs.EmbeddingArgs
    TENSORS = (
        rows("ids", "", dtype="index"),
        fixed("table", "vocabulary hidden", strided=True),
        rows("position_ids", "", when="positions", dtype="index"),
        fixed("position_table", "position_rows hidden", when="positions", strided=True),
        rows("out", "hidden", strided=True, written=True),
    )
    GIVEN = ("ids", "table", "position_ids", "position_table", "out", "scale")
    NUMBERS = ("scale",)

    def run_pointers(
        self, stream: int, tokens: int, ids: int = 0, table: int = 0, position_ids: int = 0,
        position_table: int = 0, out: int = 0, vocabulary: int = 0, position_rows: int = 0,
        table_stride: int = 0, position_table_stride: int = 0, out_stride: int = 0, scale: float = 1.0,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(
            self._bytes, scale, ids, table, position_ids, position_table, out, vocabulary, position_rows,
            table_stride, position_table_stride, out_stride,
        )
        status = self._run(self._pointer, c_void_p(stream), packed, c_int64(tokens))
        if status:
            check(status)

    def __call__(
        self, ids: Array, table: Array, position_ids: Optional[Array] = None,
        position_table: Optional[Array] = None, *, out: Optional[Array] = None, scale: float = 1.0,
        stream: Any = None,
    ) -> Any:
        """Returns out.

        ids: [...], their type is index
        table: [vocabulary, hidden], dtype
        position_ids: [...], their type is index; needed when the operator has positions
        position_table: [position_rows, hidden], dtype; needed when the operator has positions
        out: [..., hidden], dtype

        Leading dimensions, ..., are the same in all tensors and have to collapse into rows of one common
        stride. What is written and not given is made by PyTorch when the first argument is its tensor. stream
        is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current one. A
        captured graph keeps addresses alone: what was given, workspace too, has to live as long as it is
        replayed.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(ids) is self._tensor:
            try:
                return self._plain(ids, table, position_ids, position_table, out, scale, stream)
            except NOT_PLAIN:
                pass
        return self._call_checked((ids, table, position_ids, position_table, out, scale), stream)


class ExpertLinearOperator(RowsOperator):
    """A prepared ExpertLinear."""

    CALL = "expert_linear"
    ARGUMENTS = structs.ExpertLinearArgs
    TENSORS = (
        computed("x"),
        computed("starts", dtype="int32"),
        rows("rows", "top_k", when="maps_rows", dtype="int32"),
        rows("routing_weights", "top_k", when="combine", dtype="fp32"),
        fixed("weight", "experts out_features in_features"),
        fixed("up", "experts out_features in_features", when="gated"),
        fixed("bias", "experts out_features", when="bias"),
        fixed("up_bias", "experts out_features", when="gated_bias"),
        computed("out", written=True),
    )
    GIVEN = ("x", "starts", "weight", "rows", "routing_weights", "up", "bias", "up_bias", "out", "workspace")
    NUMBERS = ()

    def run_pointers(
        self, stream: int, tokens: int, x: int = 0, starts: int = 0, rows: int = 0, routing_weights: int = 0,
        weight: int = 0, up: int = 0, bias: int = 0, up_bias: int = 0, out: int = 0, workspace: int = 0,
        x_stride: int = 0, out_stride: int = 0,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(
            self._bytes, 0, x, starts, rows, routing_weights, weight, up, bias, up_bias, out, workspace,
            x_stride, out_stride,
        )
        status = self._run(self._pointer, c_void_p(stream), packed, c_int64(tokens))
        if status:
            check(status)

    def __call__(
        self, x: Array, starts: Array, weight: Array, rows: Optional[Array] = None,
        routing_weights: Optional[Array] = None, up: Optional[Array] = None, bias: Optional[Array] = None,
        up_bias: Optional[Array] = None, *, out: Optional[Array] = None, workspace: Optional[Array] = None,
        stream: Any = None,
    ) -> Any:
        """Returns out.

        x: [tokens, in] with gather, else [tokens, top_k, in]: tokens * top_k rows by place; dtype
        starts: int32, [experts + 1]: the first place of each expert, and tokens * top_k
        rows: [..., top_k], int32, needed with gather or combine: the pairs by place, token * top_k + slot
        routing_weights: [..., top_k], fp32, needed with combine
        weight: [experts, out_features, in_features], dtype
        up: [experts, out_features, in_features], needed when the operator is gated
        bias: [experts, out_features], dtype; needed when the operator has a bias
        up_bias: [experts, out_features], needed when the operator is gated and has biases
        out: [tokens, out] with combine, else [tokens, top_k, out]: tokens * top_k rows by place; dtype
        workspace: workspace_bytes() bytes, aligned to 256, that no other call uses meanwhile

        Leading dimensions, ..., are the same in all tensors and have to collapse into rows of one common
        stride. What is written and not given is made by PyTorch when the first argument is its tensor. stream
        is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current one. A
        captured graph keeps addresses alone: what was given, workspace too, has to live as long as it is
        replayed.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(x) is self._tensor:
            try:
                return self._plain(
                    x, starts, weight, rows, routing_weights, up, bias, up_bias, out, workspace, stream,
                )
            except NOT_PLAIN:
                pass
        return self._call_checked((
            x, starts, weight, rows, routing_weights, up, bias, up_bias, out, workspace,
        ), stream)


class ExpertRoutingOperator(RowsOperator):
    """A prepared ExpertRouting."""

    CALL = "expert_routing"
    ARGUMENTS = structs.ExpertRoutingArgs
    TENSORS = (
        rows("logits", "experts", strided=True),
        rows("routing_weights", "top_k", dtype="fp32", written=True),
        computed("starts", dtype="int32", written=True),
        rows("rows", "top_k", dtype="int32", written=True),
    )
    GIVEN = ("logits", "routing_weights", "starts", "rows", "workspace")
    NUMBERS = ()

    def run_pointers(
        self, stream: int, tokens: int, logits: int = 0, routing_weights: int = 0, starts: int = 0,
        rows: int = 0, workspace: int = 0, logits_stride: int = 0,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(self._bytes, 0, logits, routing_weights, starts, rows, workspace, logits_stride)
        status = self._run(self._pointer, c_void_p(stream), packed, c_int64(tokens))
        if status:
            check(status)

    def __call__(
        self, logits: Array, *, routing_weights: Optional[Array] = None, starts: Optional[Array] = None,
        rows: Optional[Array] = None, workspace: Optional[Array] = None, stream: Any = None,
    ) -> Any:
        """Returns (routing_weights, starts, rows): those that the operator has.

        logits: [..., experts], dtype
        routing_weights: [..., top_k], fp32, those of slot 0 first, the largest
        starts: int32, [experts + 1]: the first place of each expert's pairs, and tokens * top_k
        rows: [..., top_k], int32, the pairs by place: tokens * top_k numbers, token * top_k + slot
        workspace: workspace_bytes() bytes, aligned to 256, that no other call uses meanwhile

        Leading dimensions, ..., are the same in all tensors and have to collapse into rows of one common
        stride. What is written and not given is made by PyTorch when the first argument is its tensor. stream
        is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current one. A
        captured graph keeps addresses alone: what was given, workspace too, has to live as long as it is
        replayed.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(logits) is self._tensor:
            try:
                return self._plain(logits, routing_weights, starts, rows, workspace, stream)
            except NOT_PLAIN:
                pass
        return self._call_checked((logits, routing_weights, starts, rows, workspace), stream)


class LinearOperator(RowsOperator):
    """A prepared Linear."""

    CALL = "linear"
    ARGUMENTS = structs.LinearArgs
    TENSORS = (
        rows("x", "in_features", strided=True),
        fixed("weight", "out_features in_features", strided=True),
        fixed("bias", "out_features", when="bias"),
        rows("residual", "out_features", when="residual", strided=True),
        rows("out", "out_features", strided=True, written=True),
        fixed("norm_weight", "in_features", when="norm"),
    )
    GIVEN = ("x", "weight", "bias", "residual", "norm_weight", "out", "workspace", "epsilon")
    NUMBERS = ("epsilon",)

    def run_pointers(
        self, stream: int, tokens: int, x: int = 0, weight: int = 0, bias: int = 0, residual: int = 0,
        out: int = 0, workspace: int = 0, x_stride: int = 0, weight_stride: int = 0, residual_stride: int = 0,
        out_stride: int = 0, norm_weight: int = 0, epsilon: float = 1e-5,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(
            self._bytes, epsilon, x, weight, bias, residual, out, workspace, x_stride, weight_stride,
            residual_stride, out_stride, norm_weight,
        )
        status = self._run(self._pointer, c_void_p(stream), packed, c_int64(tokens))
        if status:
            check(status)

    def __call__(
        self, x: Array, weight: Array, bias: Optional[Array] = None, residual: Optional[Array] = None,
        norm_weight: Optional[Array] = None, *, out: Optional[Array] = None,
        workspace: Optional[Array] = None, epsilon: float = 1e-5, stream: Any = None,
    ) -> Any:
        """Returns out.

        x: [..., in_features], dtype
        weight: [out_features, in_features], dtype
        bias: [out_features], dtype; needed when the operator has a bias
        residual: [..., out_features], dtype; needed when the operator has a residual
        out: [..., out_features], dtype
        workspace: workspace_bytes() bytes, aligned to 256, that no other call uses meanwhile
        norm_weight: [in_features], dtype; needed when the operator has a norm

        Leading dimensions, ..., are the same in all tensors and have to collapse into rows of one common
        stride. What is written and not given is made by PyTorch when the first argument is its tensor. stream
        is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current one. A
        captured graph keeps addresses alone: what was given, workspace too, has to live as long as it is
        replayed.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(x) is self._tensor:
            try:
                return self._plain(x, weight, bias, residual, norm_weight, out, workspace, epsilon, stream)
            except NOT_PLAIN:
                pass
        return self._call_checked((x, weight, bias, residual, norm_weight, out, workspace, epsilon), stream)


class FusedFfnOperator(RowsOperator):
    """A prepared FusedFfn."""

    CALL = "fused_ffn"
    ARGUMENTS = structs.FusedFfnArgs
    TENSORS = (
        rows("x", "hidden", strided=True),
        fixed("gate", "intermediate hidden", when="gated"),
        fixed("up", "intermediate hidden"),
        fixed("up_bias", "intermediate", when="bias"),
        fixed("down", "hidden intermediate"),
        fixed("down_bias", "hidden", when="bias"),
        rows("residual", "hidden", when="residual", strided=True),
        rows("out", "hidden", strided=True, written=True),
        fixed("norm_weight", "hidden", when="norm"),
    )
    GIVEN = (
        "x", "gate", "up", "down", "up_bias", "down_bias", "residual", "norm_weight", "out", "workspace",
        "epsilon",
    )
    NUMBERS = ("epsilon",)

    def run_pointers(
        self, stream: int, tokens: int, x: int = 0, gate: int = 0, up: int = 0, up_bias: int = 0,
        down: int = 0, down_bias: int = 0, residual: int = 0, out: int = 0, workspace: int = 0,
        x_stride: int = 0, residual_stride: int = 0, out_stride: int = 0, norm_weight: int = 0,
        epsilon: float = 1e-5,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(
            self._bytes, epsilon, x, gate, up, up_bias, down, down_bias, residual, out, workspace, x_stride,
            residual_stride, out_stride, norm_weight,
        )
        status = self._run(self._pointer, c_void_p(stream), packed, c_int64(tokens))
        if status:
            check(status)

    def __call__(
        self, x: Array, gate: Array, up: Array, down: Array, up_bias: Optional[Array] = None,
        down_bias: Optional[Array] = None, residual: Optional[Array] = None,
        norm_weight: Optional[Array] = None, *, out: Optional[Array] = None,
        workspace: Optional[Array] = None, epsilon: float = 1e-5, stream: Any = None,
    ) -> Any:
        """Returns out.

        x: [..., hidden]
        gate: [intermediate, hidden], needed when the operator is gated
        up: [intermediate, hidden]
        up_bias: [intermediate], needed when the operator has biases
        down: [hidden, intermediate]
        down_bias: [hidden], needed when the operator has biases
        residual: [..., hidden], needed when the operator has a residual
        out: [..., hidden]
        workspace: workspace_bytes() bytes, aligned to 256, that no other call uses meanwhile
        norm_weight: [hidden], needed when the operator has a norm

        Leading dimensions, ..., are the same in all tensors and have to collapse into rows of one common
        stride. What is written and not given is made by PyTorch when the first argument is its tensor. stream
        is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current one. A
        captured graph keeps addresses alone: what was given, workspace too, has to live as long as it is
        replayed.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(x) is self._tensor:
            try:
                return self._plain(
                    x, gate, up, down, up_bias, down_bias, residual, norm_weight, out, workspace, epsilon,
                    stream,
                )
            except NOT_PLAIN:
                pass
        return self._call_checked((
            x, gate, up, down, up_bias, down_bias, residual, norm_weight, out, workspace, epsilon,
        ), stream)


class Norm(RowsOperator):
    """A prepared RmsNorm or LayerNorm."""

    CALL = "norm"
    ARGUMENTS = structs.NormArgs
    TENSORS = (
        rows("x", "hidden", strided=True),
        rows("residual", "hidden", when="residual", strided=True),
        fixed("weight", "hidden"),
        fixed("bias", "hidden", when="bias"),
        rows("out", "hidden", dtype="out_dtype", strided=True, written=True),
        rows("sum", "hidden", when="residual", strided=True, written=True),
        rows("scale", "", when="quantized", dtype="fp32", written=True),
    )
    GIVEN = ("x", "weight", "residual", "bias", "out", "sum", "scale", "epsilon")
    NUMBERS = ("epsilon",)

    def run_pointers(
        self, stream: int, rows: int, x: int = 0, residual: int = 0, weight: int = 0, bias: int = 0,
        out: int = 0, sum: int = 0, scale: int = 0, x_stride: int = 0, residual_stride: int = 0,
        out_stride: int = 0, sum_stride: int = 0, epsilon: float = 1e-5,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(
            self._bytes, epsilon, x, residual, weight, bias, out, sum, scale, x_stride, residual_stride,
            out_stride, sum_stride,
        )
        status = self._run(self._pointer, c_void_p(stream), packed, c_int64(rows))
        if status:
            check(status)

    def __call__(
        self, x: Array, weight: Array, residual: Optional[Array] = None, bias: Optional[Array] = None, *,
        out: Optional[Array] = None, sum: Optional[Array] = None, scale: Optional[Array] = None,
        epsilon: float = 1e-5, stream: Any = None,
    ) -> Any:
        """Returns (out, sum, scale): those that the operator has.

        x: [..., hidden], dtype
        residual: [..., hidden], dtype; needed when the operator has a residual
        weight: [hidden], dtype
        bias: [hidden], dtype; needed when a layer norm has a bias
        out: [..., hidden], dtype or codes of one byte
        sum: [..., hidden], dtype; needed when the operator has a residual
        scale: [...], fp32, needed when the output is quantized

        Leading dimensions, ..., are the same in all tensors and have to collapse into rows of one common
        stride. What is written and not given is made by PyTorch when the first argument is its tensor. stream
        is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current one. A
        captured graph keeps addresses alone: what was given, workspace too, has to live as long as it is
        replayed.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(x) is self._tensor:
            try:
                return self._plain(x, weight, residual, bias, out, sum, scale, epsilon, stream)
            except NOT_PLAIN:
                pass
        return self._call_checked((x, weight, residual, bias, out, sum, scale, epsilon), stream)


class QuantizedExpertLinearOperator(RowsOperator):
    """A prepared QuantizedExpertLinear."""

    CALL = "quantized_expert_linear"
    ARGUMENTS = structs.QuantizedExpertLinearArgs
    TENSORS = (
        computed("x"),
        computed("starts", dtype="int32"),
        rows("rows", "top_k", when="maps_rows", dtype="int32"),
        rows("routing_weights", "top_k", when="combine", dtype="fp32"),
        stored("weight scales zeros", "experts out_features in_features"),
        stored("up up_scales up_zeros", "experts out_features in_features", when="gated"),
        fixed("bias", "experts out_features", when="bias"),
        fixed("up_bias", "experts out_features", when="gated_bias"),
        computed("out", written=True),
    )
    GIVEN = (
        "x", "starts", "weight", "scales", "rows", "routing_weights", "zeros", "up", "up_scales", "up_zeros",
        "bias", "up_bias", "out", "workspace",
    )
    NUMBERS = ()

    def run_pointers(
        self, stream: int, tokens: int, x: int = 0, starts: int = 0, rows: int = 0, routing_weights: int = 0,
        weight: int = 0, scales: int = 0, zeros: int = 0, up: int = 0, up_scales: int = 0, up_zeros: int = 0,
        bias: int = 0, up_bias: int = 0, out: int = 0, workspace: int = 0, x_stride: int = 0,
        out_stride: int = 0,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(
            self._bytes, 0, x, starts, rows, routing_weights, weight, scales, zeros, up, up_scales, up_zeros,
            bias, up_bias, out, workspace, x_stride, out_stride,
        )
        status = self._run(self._pointer, c_void_p(stream), packed, c_int64(tokens))
        if status:
            check(status)

    def __call__(
        self, x: Array, starts: Array, weight: Array, scales: Array, rows: Optional[Array] = None,
        routing_weights: Optional[Array] = None, zeros: Optional[Array] = None, up: Optional[Array] = None,
        up_scales: Optional[Array] = None, up_zeros: Optional[Array] = None, bias: Optional[Array] = None,
        up_bias: Optional[Array] = None, *, out: Optional[Array] = None, workspace: Optional[Array] = None,
        stream: Any = None,
    ) -> Any:
        """Returns out.

        x: [tokens, in] with gather, else [tokens, top_k, in]: tokens * top_k rows by place; dtype
        starts: int32, [experts + 1]: the first place of each expert, and tokens * top_k
        rows: [..., top_k], int32, needed with gather or combine: the pairs by place, token * top_k + slot
        routing_weights: [..., top_k], fp32, needed with combine
        weight, scales, zeros: [experts, out_features, in_features]
        up, up_scales, up_zeros: [experts, out_features, in_features], needed when the operator is gated
        bias: [experts, out_features], dtype; needed when the operator has a bias
        up_bias: [experts, out_features], needed when the operator is gated and has biases
        out: [tokens, out] with combine, else [tokens, top_k, out]: tokens * top_k rows by place; dtype
        workspace: workspace_bytes() bytes, aligned to 256, that no other call uses meanwhile

        Leading dimensions, ..., are the same in all tensors and have to collapse into rows of one common
        stride. What is written and not given is made by PyTorch when the first argument is its tensor. stream
        is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current one. A
        captured graph keeps addresses alone: what was given, workspace too, has to live as long as it is
        replayed.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(x) is self._tensor:
            try:
                return self._plain(
                    x, starts, weight, scales, rows, routing_weights, zeros, up, up_scales, up_zeros, bias,
                    up_bias, out, workspace, stream,
                )
            except NOT_PLAIN:
                pass
        return self._call_checked((
            x, starts, weight, scales, rows, routing_weights, zeros, up, up_scales, up_zeros, bias, up_bias,
            out, workspace,
        ), stream)


class QuantizedLinearOperator(RowsOperator):
    """A prepared QuantizedLinear."""

    CALL = "quantized_linear"
    ARGUMENTS = structs.QuantizedLinearArgs
    TENSORS = (
        rows("x", "in_features", dtype="x_dtype", strided=True),
        computed("x_scales", when="quantized_x", dtype="fp32"),
        stored("weight scales zeros", "out_features in_features", strided=True),
        fixed("bias", "out_features", when="bias"),
        rows("residual", "out_features", when="residual", strided=True),
        rows("out", "out_features", strided=True, written=True),
        fixed("norm_weight", "in_features", when="norm"),
    )
    GIVEN = (
        "x", "weight", "scales", "zeros", "bias", "residual", "x_scales", "norm_weight", "out", "workspace",
        "epsilon",
    )
    NUMBERS = ("epsilon",)

    def run_pointers(
        self, stream: int, tokens: int, x: int = 0, x_scales: int = 0, weight: int = 0, scales: int = 0,
        zeros: int = 0, bias: int = 0, residual: int = 0, out: int = 0, workspace: int = 0, x_stride: int = 0,
        x_scale_stride: int = 0, weight_stride: int = 0, residual_stride: int = 0, out_stride: int = 0,
        norm_weight: int = 0, epsilon: float = 1e-5,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(
            self._bytes, epsilon, x, x_scales, norm_weight, weight, scales, zeros, bias, residual, out,
            workspace, x_stride, x_scale_stride, weight_stride, residual_stride, out_stride,
        )
        status = self._run(self._pointer, c_void_p(stream), packed, c_int64(tokens))
        if status:
            check(status)

    def __call__(
        self, x: Array, weight: Array, scales: Array, zeros: Optional[Array] = None,
        bias: Optional[Array] = None, residual: Optional[Array] = None, x_scales: Optional[Array] = None,
        norm_weight: Optional[Array] = None, *, out: Optional[Array] = None,
        workspace: Optional[Array] = None, epsilon: float = 1e-5, stream: Any = None,
    ) -> Any:
        """Returns out.

        x: [..., in_features], dtype; quantized_x: int8 or E4M3
        x_scales: fp32, quantized_x: [tokens], [tokens, in / 128] in groups, or one
        weight, scales, zeros: [out_features, in_features]
        bias: [out_features], dtype; needed when the operator has a bias
        residual: [..., out_features], dtype; needed when the operator has a residual
        out: [..., out_features], dtype
        workspace: workspace_bytes() bytes, aligned to 256, that no other call uses meanwhile
        norm_weight: [in_features], dtype; needed when the operator has a norm

        Leading dimensions, ..., are the same in all tensors and have to collapse into rows of one common
        stride. What is written and not given is made by PyTorch when the first argument is its tensor. stream
        is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current one. A
        captured graph keeps addresses alone: what was given, workspace too, has to live as long as it is
        replayed.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(x) is self._tensor:
            try:
                return self._plain(
                    x, weight, scales, zeros, bias, residual, x_scales, norm_weight, out, workspace, epsilon,
                    stream,
                )
            except NOT_PLAIN:
                pass
        return self._call_checked((
            x, weight, scales, zeros, bias, residual, x_scales, norm_weight, out, workspace, epsilon,
        ), stream)


class QuantizedFfnOperator(RowsOperator):
    """A prepared QuantizedFfn."""

    CALL = "quantized_ffn"
    ARGUMENTS = structs.QuantizedFfnArgs
    TENSORS = (
        rows("x", "hidden", dtype="x_dtype", strided=True),
        computed("x_scales", when="quantized_x", dtype="fp32"),
        stored("gate gate_scales gate_zeros", "intermediate hidden", when="gated"),
        stored("up up_scales up_zeros", "intermediate hidden"),
        stored("down down_scales down_zeros", "hidden intermediate"),
        fixed("up_bias", "intermediate", when="bias"),
        fixed("down_bias", "hidden", when="bias"),
        rows("residual", "hidden", when="residual", strided=True),
        rows("out", "hidden", strided=True, written=True),
        fixed("norm_weight", "hidden", when="norm"),
    )
    GIVEN = (
        "x", "up", "up_scales", "down", "down_scales", "x_scales", "gate", "gate_scales", "gate_zeros",
        "up_zeros", "down_zeros", "up_bias", "down_bias", "residual", "norm_weight", "out", "workspace",
        "epsilon",
    )
    NUMBERS = ("epsilon",)

    def run_pointers(
        self, stream: int, tokens: int, x: int = 0, x_scales: int = 0, gate: int = 0, gate_scales: int = 0,
        gate_zeros: int = 0, up: int = 0, up_scales: int = 0, up_zeros: int = 0, down: int = 0,
        down_scales: int = 0, down_zeros: int = 0, up_bias: int = 0, down_bias: int = 0, residual: int = 0,
        out: int = 0, workspace: int = 0, x_stride: int = 0, x_scale_stride: int = 0,
        residual_stride: int = 0, out_stride: int = 0, norm_weight: int = 0, epsilon: float = 1e-5,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(
            self._bytes, epsilon, x, x_scales, norm_weight, gate, gate_scales, gate_zeros, up, up_scales,
            up_zeros, down, down_scales, down_zeros, up_bias, down_bias, residual, out, workspace, x_stride,
            x_scale_stride, residual_stride, out_stride,
        )
        status = self._run(self._pointer, c_void_p(stream), packed, c_int64(tokens))
        if status:
            check(status)

    def __call__(
        self, x: Array, up: Array, up_scales: Array, down: Array, down_scales: Array,
        x_scales: Optional[Array] = None, gate: Optional[Array] = None, gate_scales: Optional[Array] = None,
        gate_zeros: Optional[Array] = None, up_zeros: Optional[Array] = None,
        down_zeros: Optional[Array] = None, up_bias: Optional[Array] = None,
        down_bias: Optional[Array] = None, residual: Optional[Array] = None,
        norm_weight: Optional[Array] = None, *, out: Optional[Array] = None,
        workspace: Optional[Array] = None, epsilon: float = 1e-5, stream: Any = None,
    ) -> Any:
        """Returns out.

        x: [..., hidden], dtype; quantized_x: int8 or E4M3
        x_scales: fp32, as in QuantizedLinear.run()
        gate, gate_scales, gate_zeros: [intermediate, hidden], needed when the operator is gated
        up, up_scales, up_zeros: [intermediate, hidden]
        down, down_scales, down_zeros: [hidden, intermediate]
        up_bias: [intermediate], needed when the operator has biases
        down_bias: [hidden], needed when the operator has biases
        residual: [..., hidden], needed when the operator has a residual
        out: [..., hidden]
        workspace: workspace_bytes() bytes, aligned to 256, that no other call uses meanwhile
        norm_weight: [hidden], needed when the operator has a norm

        Leading dimensions, ..., are the same in all tensors and have to collapse into rows of one common
        stride. What is written and not given is made by PyTorch when the first argument is its tensor. stream
        is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current one. A
        captured graph keeps addresses alone: what was given, workspace too, has to live as long as it is
        replayed.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(x) is self._tensor:
            try:
                return self._plain(
                    x, up, up_scales, down, down_scales, x_scales, gate, gate_scales, gate_zeros, up_zeros,
                    down_zeros, up_bias, down_bias, residual, norm_weight, out, workspace, epsilon, stream,
                )
            except NOT_PLAIN:
                pass
        return self._call_checked((
            x, up, up_scales, down, down_scales, x_scales, gate, gate_scales, gate_zeros, up_zeros,
            down_zeros, up_bias, down_bias, residual, norm_weight, out, workspace, epsilon,
        ), stream)


class NormBackward(RowsOperator):
    """A prepared RmsNormBackward."""

    CALL = "rms_norm_backward"
    ARGUMENTS = structs.RmsNormBackwardArgs
    TENSORS = (
        rows("dy", "hidden", strided=True),
        rows("x", "hidden", strided=True),
        fixed("weight", "hidden"),
        rows("dsum", "hidden", when="residual", strided=True),
        rows("dx", "hidden", strided=True, written=True),
        fixed("dweight", "hidden", written=True),
    )
    GIVEN = ("dy", "x", "weight", "dsum", "dx", "dweight", "workspace", "epsilon")
    NUMBERS = ("epsilon",)

    def run_pointers(
        self, stream: int, rows: int, dy: int = 0, x: int = 0, weight: int = 0, dsum: int = 0, dx: int = 0,
        dweight: int = 0, workspace: int = 0, dy_stride: int = 0, x_stride: int = 0, dsum_stride: int = 0,
        dx_stride: int = 0, epsilon: float = 1e-5,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(
            self._bytes, epsilon, dy, x, weight, dsum, dx, dweight, workspace, dy_stride, x_stride,
            dsum_stride, dx_stride,
        )
        status = self._run(self._pointer, c_void_p(stream), packed, c_int64(rows))
        if status:
            check(status)

    def __call__(
        self, dy: Array, x: Array, weight: Array, dsum: Optional[Array] = None, *, dx: Optional[Array] = None,
        dweight: Optional[Array] = None, workspace: Optional[Array] = None, epsilon: float = 1e-5,
        stream: Any = None,
    ) -> Any:
        """Returns (dx, dweight): those that the operator has.

        dy: [..., hidden], dtype
        x: [..., hidden], dtype
        weight: [hidden], dtype
        dsum: [..., hidden], dtype; needed when the operator has a residual
        dx: [..., hidden], dtype
        dweight: [hidden], dtype
        workspace: workspace_bytes() bytes, aligned to 256, that no other call uses meanwhile

        Leading dimensions, ..., are the same in all tensors and have to collapse into rows of one common
        stride. What is written and not given is made by PyTorch when the first argument is its tensor. stream
        is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current one. A
        captured graph keeps addresses alone: what was given, workspace too, has to live as long as it is
        replayed.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(dy) is self._tensor:
            try:
                return self._plain(dy, x, weight, dsum, dx, dweight, workspace, epsilon, stream)
            except NOT_PLAIN:
                pass
        return self._call_checked((dy, x, weight, dsum, dx, dweight, workspace, epsilon), stream)


class RopeKvAppendGiven(NamedTuple):
    """What a call is given, but for its stream."""

    q: Any
    k: Any
    v: Any
    k_cache: Any
    v_cache: Any
    cos: Any
    sin: Any
    kv_lengths: Any
    page_table: Any
    positions: Any
    slots: Any
    k_scale: Any
    v_scale: Any
    q_weight: Any
    k_weight: Any
    epsilon: Any
    out: Any


class RopeKvAppendCall(HeadsOperator):
    """Runs a prepared RopeKvAppend."""

    CALL = "rope_kv_append"
    ARGUMENTS = structs.RopeKvAppendArgs

    def run_pointers(
        self, stream: int, tokens: int, q: int = 0, k: int = 0, v: int = 0, out: int = 0, k_cache: int = 0,
        v_cache: int = 0, cos: int = 0, sin: int = 0, kv_lengths: int = 0, page_table: int = 0,
        positions: int = 0, slots: int = 0, k_scale: int = 0, v_scale: int = 0, q_weight: int = 0,
        k_weight: int = 0, q_strides: Tuple[int, ...] = (0, 0), k_strides: Tuple[int, ...] = (0, 0),
        v_strides: Tuple[int, ...] = (0, 0), out_strides: Tuple[int, ...] = (0, 0),
        cache_strides: Tuple[int, ...] = (0, 0, 0), page_table_stride: int = 0, q_len: int = 1,
        kv_len: int = 0, pool_pages: int = 0, table_rows: int = 0, epsilon: float = 1e-5,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(
            self._bytes, epsilon, q, k, v, out, k_cache, v_cache, cos, sin, kv_lengths, page_table, positions,
            slots, k_scale, v_scale, q_weight, k_weight, *q_strides, *k_strides, *v_strides, *out_strides,
            *cache_strides, page_table_stride, q_len, kv_len, pool_pages, table_rows,
        )
        status = self._run(self._pointer, c_void_p(stream), packed, c_int64(tokens))
        if status:
            check(status)

    def __call__(
        self, q: Array, k: Array, v: Array, k_cache: Array, v_cache: Array, *, cos: Optional[Array] = None,
        sin: Optional[Array] = None, kv_lengths: Optional[Array] = None, page_table: Optional[Array] = None,
        positions: Optional[Array] = None, slots: Optional[Array] = None, k_scale: Optional[Array] = None,
        v_scale: Optional[Array] = None, q_weight: Optional[Array] = None, k_weight: Optional[Array] = None,
        epsilon: float = 1e-5, out: Optional[Array] = None, stream: Any = None,
    ) -> Any:
        """Returns out, the rotated queries, and writes k_cache and v_cache.

        q and out are [batch, q_len, heads, head_dim], k and v [batch, q_len, kv_heads, head_dim]: the last
        q_len of kv_lengths [batch] tokens of each sequence. With slots they are [tokens, heads, head_dim] and
        so on, and each token has its entry in positions and slots [tokens]: page * page_size + place on the
        page, or sequence * room + place; negative: none. Tokens have one common stride, heads are contiguous.

        The caches are [batch, room, kv_heads, head_dim], or pages [pool_pages, page_size, kv_heads, head_dim]
        with, unless there are slots, a page_table [batch, pages of a sequence]; both have the same strides.
        cos and sin are fp32 [positions, rotary_dim / 2] without gaps, as are k_scale and v_scale [kv_heads],
        of an fp8 cache. q_weight and k_weight [head_dim] are the norm's, epsilon is, too. Lengths, tables,
        positions and slots are int32 on the device. out may be q itself; PyTorch makes it where it is not
        given and q is its tensor. stream is an int (CUstream) or an object of PyTorch, CuPy or Numba; None:
        the caller's.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        given = RopeKvAppendGiven(
            q, k, v, k_cache, v_cache, cos, sin, kv_lengths, page_table, positions, slots, k_scale, v_scale,
            q_weight, k_weight, epsilon, out,
        )
        if type(q) is self._tensor:
            try:
                return self._call_plain(given, stream)
            except NOT_PLAIN:
                pass
        return self._call_checked(given, stream)


class SampleOperator(RowsOperator):
    """A prepared Sample."""

    CALL = "sample"
    ARGUMENTS = structs.SampleArgs
    TENSORS = (
        rows("logits", "vocabulary", strided=True),
        rows("temperature", "", dtype="fp32"),
        rows("top_k", "", when="filters", dtype="int32"),
        rows("top_p", "", when="filters", dtype="fp32"),
        rows("min_p", "", when="filters", dtype="fp32"),
        rows("seed", "", dtype="int64"),
        rows("counter", "", dtype="int64"),
        rows("out", "", dtype="int32", written=True),
        rows("log_probability", "", when="log_probability", dtype="fp32", written=True),
    )
    GIVEN = ("logits", "temperature", "seed", "counter", "top_k", "top_p", "min_p", "out", "log_probability")
    NUMBERS = ()

    def run_pointers(
        self, stream: int, rows: int, logits: int = 0, temperature: int = 0, top_k: int = 0, top_p: int = 0,
        min_p: int = 0, seed: int = 0, counter: int = 0, out: int = 0, log_probability: int = 0,
        logits_stride: int = 0,
    ) -> None:
        """Enqueues the operator for device pointers (0: none). Strides are in elements, 0 meaning no gaps.
        Nothing is checked but what the library checks. Raises HoneError."""
        packed = self._pack(
            self._bytes, 0, logits, temperature, top_k, top_p, min_p, seed, counter, out, log_probability,
            logits_stride,
        )
        status = self._run(self._pointer, c_void_p(stream), packed, c_int64(rows))
        if status:
            check(status)

    def __call__(
        self, logits: Array, temperature: Array, seed: Array, counter: Array, top_k: Optional[Array] = None,
        top_p: Optional[Array] = None, min_p: Optional[Array] = None, *, out: Optional[Array] = None,
        log_probability: Optional[Array] = None, stream: Any = None,
    ) -> Any:
        """Returns (out, log_probability): those that the operator has.

        logits: [..., vocabulary], dtype
        temperature: [...], fp32, below 1e-5: the likeliest token
        top_k: [...], int32, needed when the operator has filters; below 1: all
        top_p: [...], fp32, needed when the operator has filters; from 1 on: all
        min_p: [...], fp32, needed when the operator has filters; 0: all
        seed: [...], int64
        counter: [...], int64, another one for each draw with the same seed
        out: [...], int32, the tokens
        log_probability: [...], fp32, needed when the operator has a log_probability; natural, at temperature
        1, of all tokens

        Leading dimensions, ..., are the same in all tensors and have to collapse into rows of one common
        stride. What is written and not given is made by PyTorch when the first argument is its tensor. stream
        is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current one. A
        captured graph keeps addresses alone: what was given, workspace too, has to live as long as it is
        replayed.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        if type(logits) is self._tensor:
            try:
                return self._plain(
                    logits, temperature, seed, counter, top_k, top_p, min_p, out, log_probability, stream,
                )
            except NOT_PLAIN:
                pass
        return self._call_checked((
            logits, temperature, seed, counter, top_k, top_p, min_p, out, log_probability,
        ), stream)


# By description; hand-written ones are in prepare.py.
KINDS = {
    descriptions.Embedding: EmbeddingOperator,
    descriptions.ExpertLinear: ExpertLinearOperator,
    descriptions.ExpertRouting: ExpertRoutingOperator,
    descriptions.Linear: LinearOperator,
    descriptions.FusedFfn: FusedFfnOperator,
    descriptions.RmsNorm: Norm,
    descriptions.LayerNorm: Norm,
    descriptions.QuantizedExpertLinear: QuantizedExpertLinearOperator,
    descriptions.QuantizedLinear: QuantizedLinearOperator,
    descriptions.QuantizedFfn: QuantizedFfnOperator,
    descriptions.RmsNormBackward: NormBackward,
    descriptions.Sample: SampleOperator,
}

"""Prepared attention: hone.prepare() returns it for an Attention. What calls.py says of threads, capture,
gradients and streams holds for it, too."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

from .._native import library
from ..runtime import Runtime
from .arguments import Arguments, check_number, check_presence
from .base import NOT_PLAIN
from .calls import AttentionCall
from .description import CODES
from .plain_arguments import PlainArguments

Reader = Union[Arguments, PlainArguments]
INDICES = ("int32",)
FLOATS = ("fp32",)
_MOST_WORKSPACES = 4096  # that are remembered: lengths change from call to call


class _Given(NamedTuple):
    """What a call has beside q, k and v."""

    kv_lengths: Any
    page_table: Any
    q_starts: Any
    kv_starts: Any
    q_len: Optional[int]
    kv_len: Optional[int]
    k_scale: Any
    v_scale: Any
    scale: Any
    softcap: Any
    out: Any
    lse: Any
    workspace: Any


class AttentionOperator(AttentionCall):
    """A prepared Attention."""

    def __init__(self, description: Any, runtime: Runtime) -> None:
        super().__init__(description, runtime)
        self._dtypes = (description.dtype,)
        self._workspaces: Dict[Any, int] = {}  # bytes by the sizes of a call
        self._kv_dtypes = CODES.get(description.kv_dtype, self._dtypes)
        self._quantized = description.kv_dtype != "same"
        tokens = ("q_tokens",) if description.packed else ("batch", "q_len")
        self._q_shape = (*tokens, description.heads, description.head_dim)
        self._kv_row = (description.kv_heads, description.head_dim)
        packed, quantized = description.packed, self._quantized
        self._options = (  # arguments that a call has or has not
            ("kv_lengths", "lengths=True", description.lengths),
            ("page_table", "a page_size", description.page_size > 0),
            *((name, "packed=True", packed) for name in ("q_starts", "kv_starts", "q_len")),
            *((name, "kv_dtype='fp8'", quantized) for name in ("k_scale", "v_scale")),
            ("softcap", "softcap=True", description.softcap),
        )
        self._limits = tuple(
            (name, f"max_{name}", getattr(description, f"max_{name}")) for name in description.CALL_SIZES
        )

    def workspace_bytes(self, batch: int, q_len: int, kv_len: int) -> int:  # type: ignore[override]
        """Bytes of device memory, aligned to 256, that any call of up to these sizes needs; 0: none."""
        sizes = (batch, q_len, kv_len)
        found = self._workspaces.get(sizes)
        if found is None:
            size = ctypes.c_size_t()
            workspace = library.function("hone_attention_workspace")
            library.check(workspace(self._handle, *sizes, ctypes.byref(size)))
            if len(self._workspaces) >= _MOST_WORKSPACES:
                self._workspaces.clear()
            found = self._workspaces[sizes] = size.value
        return found

    def __call__(
        self, q: Any, k: Any, v: Any, *, kv_lengths: Any = None, page_table: Any = None, q_starts: Any = None,
        kv_starts: Any = None, q_len: Optional[int] = None, kv_len: Optional[int] = None, k_scale: Any = None,
        v_scale: Any = None, scale: Optional[float] = None, softcap: Optional[float] = None, out: Any = None,
        lse: Any = None, workspace: Any = None, stream: Any = None,
    ) -> Any:  # fmt: skip
        """Returns out, or (out, lse) where the operator has an lse.

        q and out are [batch, q_len, heads, head_dim]; k and v [batch, kv_len, kv_heads, head_dim], or pages
        [pool_pages, page_size, kv_heads, head_dim] with a page_table [batch, pages of a sequence]; packed, q
        is [q_tokens, heads, head_dim], k and v are [kv_tokens, kv_heads, head_dim], and sequence b has the
        tokens from q_starts[b] to q_starts[b + 1] and from kv_starts[b] to kv_starts[b + 1], of [batch + 1]
        each. Heads are contiguous, everything else may lie apart: [batch, heads, tokens, head_dim] is a
        transposed view.

        kv_lengths [batch]: keys of each sequence, the call's own tokens included. kv_len: keys of every
        sequence, or the most of any where the lengths are on the device; None: as many as k has room for. Of
        a packed call the most of any, kv_len and q_len, have to be given. Lengths, starts and tables are
        int32 on the device; k_scale and v_scale are fp32 [kv_heads], of an fp8 cache. scale: None is
        head_dim^-0.5.

        lse is fp32 [batch, heads, q_len], packed [heads, q_tokens], without gaps, in natural logarithms.
        workspace is any memory of workspace_bytes(batch, q_len, kv_len), aligned to 256, that no other call
        uses meanwhile. out, lse and workspace are made by PyTorch where they are not given and q is its
        tensor. stream is an int (CUstream) or an object of PyTorch, CuPy or Numba; None: the caller's current
        one.

        Raises TypeError and ValueError naming the argument, and HoneError.
        """
        given = _Given(
            kv_lengths, page_table, q_starts, kv_starts, q_len, kv_len, k_scale, v_scale, scale, softcap, out,
            lse, workspace,
        )  # fmt: skip
        if type(q) is self._tensor:
            try:
                return self._call_plain(q, k, v, given, stream)
            except NOT_PLAIN:
                pass
        return self._call_checked(q, k, v, given, stream)

    def _call_plain(self, q: Any, k: Any, v: Any, given: _Given, stream: Any) -> Any:
        """For torch tensors that fit. Raises one of NOT_PLAIN for others."""
        raw_stream = self._plain_stream(stream)
        sizes, values, results = self._read(self._plain, q, k, v, given)
        workspace = self._plain_workspace(given.workspace, self.workspace_bytes(*sizes), q, stream)
        if workspace is not None:
            values["workspace"] = workspace.data_ptr()
        self.run_pointers(raw_stream, *sizes, **values)
        return results

    def _call_checked(self, q: Any, k: Any, v: Any, given: _Given, stream: Any) -> Any:
        arguments, known_stream = self._begin(q, stream)
        sizes, values, results = self._read(arguments, q, k, v, given)
        needed = self.workspace_bytes(*sizes)
        values["workspace"] = self._checked_workspace(arguments, given.workspace, needed, q)
        arguments.check_writable("out", "lse", "workspace")
        self._run_checked(arguments, known_stream, *sizes, **values)
        return results

    def _bind_torch(self, torch: Any) -> None:
        self._plain = PlainArguments(torch, self.device)
        super()._bind_torch(torch)

    def _read(
        self, arguments: Reader, q: Any, k: Any, v: Any, given: _Given
    ) -> Tuple[Tuple[int, int, int], Dict[str, Any], Any]:
        """(batch, q_len, kv_len), what else run_pointers() takes, and what the call returns."""
        values: Dict[str, Any] = {}
        self._check_presence(given)
        q_shape, values["q"], values["q_strides"] = arguments.heads(q, "q", self._dtypes, self._q_shape)
        k_shape, values["k"], values["k_strides"] = arguments.heads(
            k, "k", self._kv_dtypes, self._k_shape(q_shape)
        )
        _, values["v"], values["v_strides"] = arguments.heads(v, "v", self._kv_dtypes, k_shape)
        read = self._read_packed if self.description.packed else self._read_batch
        sizes = read(arguments, q_shape, k_shape, given, values)
        self._check_sizes(sizes)
        if self._quantized:
            for name in ("k_scale", "v_scale"):
                values[name] = arguments.compact(getattr(given, name), name, FLOATS, self._kv_row[:1])
        values["scale"] = check_number(given.scale, "scale")
        values["softcap"] = check_number(given.softcap, "softcap")
        return sizes, values, self._read_results(arguments, q, q_shape, given, values)

    def _check_presence(self, given: _Given) -> None:
        for name, option, wanted in self._options:
            check_presence(getattr(given, name), name, option, wanted)
        if self.description.packed:
            check_presence(given.kv_len, "kv_len", "packed=True", True)
        if given.lse is not None and not self.description.lse:
            check_presence(given.lse, "lse", "lse=True", False)

    def _k_shape(self, q_shape: Tuple[int, ...]) -> Tuple[Any, ...]:
        if self.description.packed:
            return ("kv_tokens", *self._kv_row)
        page_size = self.description.page_size
        tokens = ("pool_pages", page_size) if page_size else (q_shape[0], "kv_len")
        return (*tokens, *self._kv_row)

    def _read_batch(
        self, arguments: Reader, q_shape: Any, k_shape: Any, given: _Given, values: Dict[str, Any]
    ) -> Tuple[int, int, int]:
        """The sizes of a call that is not packed."""
        batch, room, page_size = q_shape[0], k_shape[1], self.description.page_size
        if self.description.lengths:
            values["kv_lengths"] = arguments.compact(given.kv_lengths, "kv_lengths", INDICES, (batch,))
        if page_size:
            table_shape, values["page_table"], (values["page_table_stride"],) = arguments.heads(
                given.page_table, "page_table", INDICES, (batch, "pages")
            )
            values["pool_pages"], room = k_shape[0], table_shape[1] * page_size
        kv_len = room if given.kv_len is None else given.kv_len
        if kv_len > room:
            raise ValueError(f"kv_len: {kv_len}; allowed are up to {room}, for which there is room")
        return batch, q_shape[1], kv_len

    def _read_packed(
        self, arguments: Reader, q_shape: Any, k_shape: Any, given: _Given, values: Dict[str, Any]
    ) -> Tuple[int, int, int]:
        shape, values["q_starts"], _ = arguments.heads(given.q_starts, "q_starts", INDICES, ("batch + 1",))
        values["kv_starts"] = arguments.compact(given.kv_starts, "kv_starts", INDICES, shape)
        values["q_tokens"], values["kv_tokens"] = q_shape[0], k_shape[0]
        for name in ("q_strides", "k_strides", "v_strides"):
            values[name] = (0, *values[name])
        return max(shape[0] - 1, 0), given.q_len or 0, given.kv_len or 0

    def _check_sizes(self, sizes: Tuple[int, int, int]) -> None:
        for value, (name, most, allowed) in zip(sizes, self._limits):
            if value > allowed:
                raise ValueError(
                    f"{name}: {value}; allowed are up to {allowed}, the {most} that this operator was "
                    f"prepared for"
                )

    def _read_results(
        self, arguments: Reader, q: Any, q_shape: Tuple[int, ...], given: _Given, values: Dict[str, Any]
    ) -> Any:
        """out, or (out, lse), made where they are not given."""
        out, lse = given.out, given.lse
        if out is None:
            out = arguments.allocate("out", self._dtypes[0], q_shape, q)
        _, values["out"], strides = arguments.heads(out, "out", self._dtypes, q_shape)
        values["out_strides"] = (0, *strides) if self.description.packed else strides
        if not self.description.lse:
            return out
        tokens, heads = q_shape[:-2], q_shape[-2]
        shape = (*tokens[:-1], heads, tokens[-1])
        if lse is None:
            lse = arguments.allocate("lse", "fp32", shape, q)
        values["lse"] = arguments.compact(lse, "lse", FLOATS, shape)
        return out, lse

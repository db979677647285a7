"""Prepared attention: hone.prepare() returns it for an Attention. What calls.py says of threads, capture,
gradients and streams holds for it, too."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Tuple

from .. import descriptions
from .._native import library
from ..runtime import Runtime
from .arguments import check_count, check_number, check_presence, check_size
from .calls import AttentionCall, AttentionGiven
from .heads import FLOATS, INDICES, Reader

_MOST_WORKSPACES = 4096  # that are remembered: lengths change from call to call


class AttentionOperator(AttentionCall):
    """A prepared Attention."""

    description: descriptions.Attention
    WRITTEN = ("out", "lse", "workspace")
    WORKS = True

    def __init__(self, description: Any, runtime: Runtime) -> None:
        super().__init__(description, runtime)
        self._workspaces: Dict[Any, int] = {}  # bytes by the sizes of a call
        packed, paged = description.packed, description.page_size > 0
        tokens = ("q_tokens",) if packed else ("batch", "q_len")
        self._q_shape = (*tokens, description.heads, description.head_dim)
        self._packs_keys = packed and not paged
        has_lengths = description.lengths or (packed and paged)
        self._options = (
            ("kv_lengths", "packed=True and a page_size" if packed and paged else "lengths=True", has_lengths),
            ("page_table", "a page_size", paged),
            *((name, "packed=True", packed) for name in ("q_starts", "q_len")),
            ("kv_starts", "packed=True and no page_size" if packed else "packed=True", self._packs_keys),
            *self._scales(),
            ("sinks", "sinks=True", description.sinks),
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
            checked = [check_size(given, name) for given, name in zip(sizes, self.description.CALL_SIZES)]
            library.check(workspace(self._handle, *checked, ctypes.byref(size)))
            if len(self._workspaces) >= _MOST_WORKSPACES:
                self._workspaces.clear()
            found = self._workspaces[sizes] = size.value
        return found

    def _read(self, arguments: Reader, given: AttentionGiven) -> Tuple[Tuple[int, ...], Dict[str, Any], Any]:
        values: Dict[str, Any] = {}
        self._check_presence(given)
        q_shape, values["q"], values["q_strides"] = arguments.heads(
            given.q, "q", self._dtypes, self._q_shape
        )
        k_shape, values["k"], values["k_strides"] = arguments.heads(
            given.k, "k", self._kv_dtypes, self._k_shape(q_shape)
        )
        _, values["v"], values["v_strides"] = arguments.heads(given.v, "v", self._kv_dtypes, k_shape)
        read = self._read_packed if self.description.packed else self._read_batch
        sizes = read(arguments, q_shape, k_shape, given, values)
        self._check_sizes(sizes)
        if self._quantized:
            for name in ("k_scale", "v_scale"):
                values[name] = arguments.compact(getattr(given, name), name, FLOATS, self._kv_row[:1])
        if self.description.sinks:
            values["sinks"] = arguments.compact(given.sinks, "sinks", FLOATS, self._q_shape[-2:-1])
        values["scale"] = check_number(given.scale, "scale")
        values["softcap"] = check_number(given.softcap, "softcap")
        return sizes, values, self._read_results(arguments, q_shape, given, values)

    def _check_presence(self, given: AttentionGiven) -> None:
        super()._check_presence(given)
        if self._packs_keys:
            check_presence(given.kv_len, "kv_len", "packed=True", True)
        if given.prompts is not None and (self._packs_keys or not self.description.packed):
            check_presence(given.prompts, "prompts", "packed=True and a page_size", False)
        if given.lse is not None and not self.description.lse:
            check_presence(given.lse, "lse", "lse=True", False)

    def _k_shape(self, q_shape: Tuple[int, ...]) -> Tuple[Any, ...]:
        if self._packs_keys:
            return ("kv_tokens", *self._kv_row)
        page_size = self.description.page_size
        tokens = ("pool_pages", page_size) if page_size else (q_shape[0], "kv_len")
        return (*tokens, *self._kv_row)

    def _read_batch(
        self, arguments: Reader, q_shape: Any, k_shape: Any, given: AttentionGiven, values: Dict[str, Any]
    ) -> Tuple[int, int, int]:
        """The sizes of a call that is not packed."""
        batch, room = q_shape[0], k_shape[1]
        if self.description.lengths:
            values["kv_lengths"] = arguments.compact(given.kv_lengths, "kv_lengths", INDICES, (batch,))
        if self.description.page_size:
            values["pool_pages"], room = k_shape[0], self._read_table(arguments, given, batch, values)
        return batch, q_shape[1], self._kv_len(given, room)

    @staticmethod
    def _kv_len(given: AttentionGiven, room: int) -> int:
        if given.kv_len is None:
            return room
        return check_count(given.kv_len, "kv_len", room, "for which there is room")

    def _read_packed(
        self, arguments: Reader, q_shape: Any, k_shape: Any, given: AttentionGiven, values: Dict[str, Any]
    ) -> Tuple[int, int, int]:
        shape, values["q_starts"], _ = arguments.heads(given.q_starts, "q_starts", INDICES, ("batch + 1",))
        values["q_tokens"], values["q_strides"] = q_shape[0], (0, *values["q_strides"])
        batch, q_len = max(shape[0] - 1, 0), check_count(given.q_len, "q_len")
        if not self._packs_keys:
            values["prompts"] = check_count(given.prompts, "prompts", batch, "the sequences of this call")
            return batch, q_len, self._read_pages(arguments, batch, k_shape, given, values)
        values["kv_starts"] = arguments.compact(given.kv_starts, "kv_starts", INDICES, shape)
        values["kv_tokens"] = k_shape[0]
        for name in ("k_strides", "v_strides"):
            values[name] = (0, *values[name])
        return batch, q_len, check_count(given.kv_len, "kv_len")

    def _read_pages(
        self, arguments: Reader, batch: int, k_shape: Any, given: AttentionGiven, values: Dict[str, Any]
    ) -> int:
        """kv_len of a packed call over pages."""
        values["kv_lengths"] = arguments.compact(given.kv_lengths, "kv_lengths", INDICES, (batch,))
        values["pool_pages"] = k_shape[0]
        return self._kv_len(given, self._read_table(arguments, given, batch, values))

    def _check_sizes(self, sizes: Tuple[int, int, int]) -> None:
        for value, (name, most, allowed) in zip(sizes, self._limits):
            if value > allowed:
                raise ValueError(
                    f"{name}: {value}; allowed are up to {allowed}, the {most} that this operator was "
                    f"prepared for"
                )

    def _read_results(
        self, arguments: Reader, q_shape: Tuple[int, ...], given: AttentionGiven, values: Dict[str, Any]
    ) -> Any:
        """out, or (out, lse), made where they are not given."""
        out, lse = given.out, given.lse
        if out is None:
            out = arguments.allocate("out", self._dtypes[0], q_shape, given.q)
        _, values["out"], strides = arguments.heads(out, "out", self._dtypes, q_shape)
        values["out_strides"] = (0, *strides) if self.description.packed else strides
        if not self.description.lse:
            return out
        tokens, heads = q_shape[:-2], q_shape[-2]
        shape = (*tokens[:-1], heads, tokens[-1])
        if lse is None:
            lse = arguments.allocate("lse", "fp32", shape, given.q)
        values["lse"] = arguments.compact(lse, "lse", FLOATS, shape)
        return out, lse

"""Prepared attention that appends: hone.prepare() returns it for an AttentionAppend. What calls.py says of threads,
capture, gradients and streams holds for it, too."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Tuple

from .. import descriptions
from .._native import library
from ..runtime import Runtime
from .arguments import check_count, check_is_number, check_number, check_size
from .calls import AttentionAppendCall, AttentionAppendGiven
from .heads import FLOATS, INDICES, Reader


class AttentionAppendOperator(AttentionAppendCall):
    """A prepared AttentionAppend."""

    description: descriptions.AttentionAppend
    WRITTEN = ("out", "k_cache", "v_cache", "workspace")
    WORKS = True

    def __init__(self, description: Any, runtime: Runtime) -> None:
        super().__init__(description, runtime)
        turns = description.rotary_dim > 0
        self._tables = ("cos", "sin") if turns else ()
        self._weights = ("q_weight", "k_weight") if description.norm else ()
        self._options = (
            ("page_table", "a page_size", description.page_size > 0),
            *((name, "a rotary_dim above 0", turns) for name in ("cos", "sin")),
            *((name, "norm=True", description.norm) for name in ("q_weight", "k_weight")),
            ("softcap", "softcap=True", description.softcap),
        )

    def workspace_bytes(self, batch: int, kv_len: int) -> int:  # type: ignore[override]
        """Bytes of device memory, aligned to 256, that any call of up to these sizes needs; 0: none."""
        size = ctypes.c_size_t()
        workspace = library.function("hone_attention_append_workspace")
        checked = [check_size(given, name) for given, name in ((batch, "batch"), (kv_len, "kv_len"))]
        library.check(workspace(self._handle, *checked, ctypes.byref(size)))
        return size.value

    def _read(
        self, arguments: Reader, given: AttentionAppendGiven
    ) -> Tuple[Tuple[int, ...], Dict[str, Any], Any]:
        description = self.description
        self._check_presence(given)
        check_is_number(given.epsilon, "epsilon")
        values: Dict[str, Any] = {"epsilon": given.epsilon}
        row = (description.heads, description.head_dim)
        shape, values["q"], values["q_strides"] = arguments.heads(given.q, "q", self._dtypes, ("batch", *row))
        batch = shape[0]
        for name in ("k", "v"):
            _, values[name], values[f"{name}_strides"] = arguments.heads(
                getattr(given, name), name, self._dtypes, (batch, *self._kv_row)
            )
        room = self._read_caches(arguments, batch, given, values)
        kv_len = room if given.kv_len is None else check_count(given.kv_len, "kv_len", room, "for which there is room")
        self._read_vectors(arguments, batch, given, values)
        out = given.out
        if out is None:
            out = arguments.allocate("out", self._dtypes[0], shape, given.q)
        _, values["out"], values["out_strides"] = arguments.heads(out, "out", self._dtypes, shape)
        values["scale"] = check_number(given.scale, "scale")
        values["softcap"] = check_number(given.softcap, "softcap")
        for name, size, most in (
            ("batch", batch, description.max_batch), ("kv_len", kv_len, description.max_kv_len)
        ):
            if size > most:
                raise ValueError(
                    f"{name}: {size}; allowed are up to {most}, the max_{name} that this operator was prepared "
                    f"for"
                )
        return (batch, kv_len), values, out

    def _read_caches(
        self, arguments: Reader, batch: int, given: AttentionAppendGiven, values: Dict[str, Any]
    ) -> int:
        """Returns the keys that a sequence has room for."""
        page_size = self.description.page_size
        outer: Any = "pool_pages" if page_size else batch
        shape, values["k_cache"], values["cache_strides"] = arguments.heads(
            given.k_cache, "k_cache", self._kv_dtypes, (outer, page_size or "room", *self._kv_row)
        )
        _, values["v_cache"], strides = arguments.heads(given.v_cache, "v_cache", self._kv_dtypes, shape)
        if strides != values["cache_strides"]:
            raise ValueError(f"v_cache: its strides are {list(strides)}; allowed are those of k_cache")
        values["pool_pages"] = shape[0]
        return self._read_table(arguments, given, batch, values) if page_size else shape[1]

    def _read_vectors(
        self, arguments: Reader, batch: int, given: AttentionAppendGiven, values: Dict[str, Any]
    ) -> None:
        """What has no gaps."""
        table: Tuple[Any, ...] = ("positions", self.description.rotary_dim // 2)
        for name in self._tables:
            table, _, _ = arguments.heads(getattr(given, name), name, FLOATS, table)
            values[name] = arguments.compact(getattr(given, name), name, FLOATS, table)
            values["table_rows"] = table[0]
        values["kv_lengths"] = arguments.compact(given.kv_lengths, "kv_lengths", INDICES, (batch,))
        for name in self._weights:
            values[name] = arguments.compact(getattr(given, name), name, self._dtypes, self._kv_row[1:])

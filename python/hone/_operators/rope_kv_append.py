"""Prepared rotary embeddings with the append to a KV cache: hone.prepare() returns one for a RopeKvAppend.
What calls.py says of threads, capture, gradients and streams holds for them, too."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from .. import descriptions
from .._native.arrays import row_distance
from ..runtime import Runtime
from .arguments import check_is_number
from .calls import RopeKvAppendCall, RopeKvAppendGiven
from .heads import FLOATS, INDICES, Reader


class RopeKvAppendOperator(RopeKvAppendCall):
    """A prepared RopeKvAppend."""

    description: descriptions.RopeKvAppend
    WRITTEN = ("out", "k_cache", "v_cache")

    def __init__(self, description: Any, runtime: Runtime) -> None:
        super().__init__(description, runtime)
        turns, slots = description.rotary_dim > 0, description.slots
        self._tables = ("cos", "sin") if turns else ()
        self._options = (
            *((name, "a rotary_dim above 0", turns) for name in ("cos", "sin")),
            ("kv_lengths", "slots=False", not slots),
            ("page_table", "slots=False and a page_size", not slots and description.page_size > 0),
            ("slots", "slots=True", slots),
            ("positions", "slots=True and a rotary_dim above 0", slots and turns),
            *self._scales(),
            *((name, "norm=True", description.norm) for name in ("q_weight", "k_weight")),
        )

    def _read(
        self, arguments: Reader, given: RopeKvAppendGiven
    ) -> Tuple[Tuple[int, ...], Dict[str, Any], Any]:
        description = self.description
        self._check_presence(given)
        check_is_number(given.epsilon, "epsilon")
        values: Dict[str, Any] = {"epsilon": given.epsilon}
        leading: Tuple[Any, ...] = ("tokens",) if description.slots else ("batch", "q_len")
        row = (description.heads, description.head_dim)
        shape = self._tokens(arguments, given.q, "q", (*leading, *row), values)
        leading = shape[:-2]
        self._tokens(arguments, given.k, "k", (*leading, *self._kv_row), values)
        self._tokens(arguments, given.v, "v", (*leading, *self._kv_row), values)
        self._read_caches(arguments, leading, given, values)
        self._read_vectors(arguments, leading, given, values)
        out = given.out
        if out is None:
            out = arguments.allocate("out", self._dtypes[0], shape, given.q)
        self._tokens(arguments, out, "out", shape, values)
        tokens = leading[0] if description.slots else leading[0] * leading[1]
        if tokens > description.max_tokens:
            raise ValueError(
                f"q: it has {tokens} tokens; allowed are up to {description.max_tokens}, the max_tokens that "
                f"this operator was prepared for"
            )
        return (tokens,), values, out

    def _tokens(
        self, arguments: Reader, value: Any, name: str, shape: Tuple[Any, ...], values: Dict[str, Any]
    ) -> Tuple[int, ...]:
        """Reads q, k, v or out; returns its shape."""
        found, values[name], strides = arguments.heads(value, name, self._dtypes, shape)
        *steps, head = strides
        distance = row_distance((*found[:-2], 0), (*steps, 1))  # 0 for a single token
        if distance is None and 0 not in found:
            raise ValueError(
                f"{name}: its strides are {[*strides, 1]} for shape {list(found)}; allowed are tokens that "
                f"have one common stride: make it contiguous first"
            )
        values[f"{name}_strides"] = (distance or 0, head)
        return found

    def _read_caches(
        self, arguments: Reader, leading: Tuple[int, ...], given: RopeKvAppendGiven, values: Dict[str, Any]
    ) -> None:
        page_size, slots = self.description.page_size, self.description.slots
        outer: Any = "pool_pages" if page_size else "sequences" if slots else leading[0]
        shape, values["k_cache"], values["cache_strides"] = arguments.heads(
            given.k_cache, "k_cache", self._kv_dtypes, (outer, page_size or "room", *self._kv_row)
        )
        _, values["v_cache"], strides = arguments.heads(given.v_cache, "v_cache", self._kv_dtypes, shape)
        if strides != values["cache_strides"]:
            raise ValueError(f"v_cache: its strides are {list(strides)}; allowed are those of k_cache")
        values["pool_pages"], values["kv_len"] = shape[0], shape[1]
        if page_size and not slots:
            values["kv_len"] = self._read_table(arguments, given, leading[0], values)

    def _read_vectors(
        self, arguments: Reader, leading: Tuple[int, ...], given: RopeKvAppendGiven, values: Dict[str, Any]
    ) -> None:
        """What has no gaps."""
        description = self.description
        table: Tuple[Any, ...] = ("positions", description.rotary_dim // 2)
        for name in self._tables:
            table, _, _ = arguments.heads(getattr(given, name), name, FLOATS, table)
            values[name] = arguments.compact(getattr(given, name), name, FLOATS, table)
            values["table_rows"] = table[0]
        if not description.slots:
            values["q_len"] = leading[1]
        for name, dtypes, shape in (
            ("kv_lengths", INDICES, leading[:1]),
            ("positions", INDICES, leading),
            ("slots", INDICES, leading),
            ("k_scale", FLOATS, self._kv_row[:1]),
            ("v_scale", FLOATS, self._kv_row[:1]),
            ("q_weight", self._dtypes, self._kv_row[1:]),
            ("k_weight", self._dtypes, self._kv_row[1:]),
        ):
            value = getattr(given, name)
            if value is not None:
                values[name] = arguments.compact(value, name, dtypes, shape)

"""Prepared rotary embeddings with the append to a KV cache: hone.prepare() returns one for a RopeKvAppend.
What calls.py says of threads, capture, gradients and streams holds for them, too."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Tuple

from .._native.arrays import row_distance
from ..runtime import Runtime
from .arguments import check_is_number, check_presence
from .attention import FLOATS, INDICES, Reader
from .base import NOT_PLAIN
from .calls import RopeKvAppendCall
from .description import CODES
from .plain_arguments import PlainArguments


class _Given(NamedTuple):
    """What a call has beside q, k, v and the caches."""

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
    epsilon: float
    out: Any


class RopeKvAppendOperator(RopeKvAppendCall):
    """A prepared RopeKvAppend."""

    def __init__(self, description: Any, runtime: Runtime) -> None:
        super().__init__(description, runtime)
        self._dtypes = (description.dtype,)
        self._kv_dtypes = CODES.get(description.kv_dtype, self._dtypes)
        self._kv_row = (description.kv_heads, description.head_dim)
        turns, slots = description.rotary_dim > 0, description.slots
        self._tables = ("cos", "sin") if turns else ()
        self._options = (  # arguments that a call has or has not
            *((name, "a rotary_dim above 0", turns) for name in ("cos", "sin")),
            ("kv_lengths", "slots=False", not slots),
            ("page_table", "slots=False and a page_size", not slots and description.page_size > 0),
            ("slots", "slots=True", slots),
            ("positions", "slots=True and a rotary_dim above 0", slots and turns),
            *((name, "kv_dtype='fp8'", description.kv_dtype != "same") for name in ("k_scale", "v_scale")),
            *((name, "norm=True", description.norm) for name in ("q_weight", "k_weight")),
        )

    def __call__(
        self, q: Any, k: Any, v: Any, k_cache: Any, v_cache: Any, *, cos: Any = None, sin: Any = None,
        kv_lengths: Any = None, page_table: Any = None, positions: Any = None, slots: Any = None,
        k_scale: Any = None, v_scale: Any = None, q_weight: Any = None, k_weight: Any = None,
        epsilon: float = 1e-5, out: Any = None, stream: Any = None,
    ) -> Any:  # fmt: skip
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
        given = _Given(
            cos, sin, kv_lengths, page_table, positions, slots, k_scale, v_scale, q_weight, k_weight, epsilon,
            out,
        )  # fmt: skip
        if type(q) is self._tensor:
            try:
                raw_stream = self._plain_stream(stream)
                tokens, values, out = self._read(self._plain, q, k, v, (k_cache, v_cache), given)
                self.run_pointers(raw_stream, tokens, **values)
                return out
            except NOT_PLAIN:
                pass
        arguments, known_stream = self._begin(q, stream)
        tokens, values, out = self._read(arguments, q, k, v, (k_cache, v_cache), given)
        arguments.check_writable("out", "k_cache", "v_cache")
        self._run_checked(arguments, known_stream, tokens, **values)
        return out

    def _bind_torch(self, torch: Any) -> None:
        self._plain = PlainArguments(torch, self.device)
        super()._bind_torch(torch)

    def _read(
        self, arguments: Reader, q: Any, k: Any, v: Any, caches: Tuple[Any, Any], given: _Given
    ) -> Tuple[int, Dict[str, Any], Any]:
        """The number of tokens, what else run_pointers() takes, and what the call returns."""
        description = self.description
        for name, option, wanted in self._options:
            check_presence(getattr(given, name), name, option, wanted)
        check_is_number(given.epsilon, "epsilon")
        values: Dict[str, Any] = {"epsilon": given.epsilon}
        leading: Tuple[Any, ...] = ("tokens",) if description.slots else ("batch", "q_len")
        row = (description.heads, description.head_dim)
        shape = self._tokens(arguments, q, "q", (*leading, *row), values)
        leading = shape[:-2]
        for name, value in (("k", k), ("v", v)):
            self._tokens(arguments, value, name, (*leading, *self._kv_row), values)
        self._read_caches(arguments, caches, leading, given, values)
        self._read_vectors(arguments, leading, given, values)
        out = given.out
        if out is None:
            out = arguments.allocate("out", self._dtypes[0], shape, q)
        self._tokens(arguments, out, "out", shape, values)
        tokens = leading[0] if description.slots else leading[0] * leading[1]
        if tokens > description.max_tokens:
            raise ValueError(
                f"q: it has {tokens} tokens; allowed are up to {description.max_tokens}, the max_tokens that "
                f"this operator was prepared for"
            )
        return tokens, values, out

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
        self, arguments: Reader, caches: Tuple[Any, Any], leading: Tuple[int, ...], given: _Given,
        values: Dict[str, Any],
    ) -> None:  # fmt: skip
        page_size, slots = self.description.page_size, self.description.slots
        outer: Any = "pool_pages" if page_size else "sequences" if slots else leading[0]
        shape, values["k_cache"], values["cache_strides"] = arguments.heads(
            caches[0], "k_cache", self._kv_dtypes, (outer, page_size or "room", *self._kv_row)
        )
        _, values["v_cache"], strides = arguments.heads(caches[1], "v_cache", self._kv_dtypes, shape)
        if strides != values["cache_strides"]:
            raise ValueError(f"v_cache: its strides are {list(strides)}; allowed are those of k_cache")
        values["pool_pages"], values["kv_len"] = shape[0], shape[1]
        if page_size and not slots:
            table_shape, values["page_table"], (values["page_table_stride"],) = arguments.heads(
                given.page_table, "page_table", INDICES, (leading[0], "pages")
            )
            values["kv_len"] = table_shape[1] * page_size

    def _read_vectors(
        self, arguments: Reader, leading: Tuple[int, ...], given: _Given, values: Dict[str, Any]
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
            value: Optional[Any] = getattr(given, name)
            if value is not None:
                values[name] = arguments.compact(value, name, dtypes, shape)

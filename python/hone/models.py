"""The operators of a model: the `hone` program knows what a model is made of, this prepares it."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Tuple, Type, Union

from . import descriptions
from ._operators.base import Operator
from ._operators.description import MOST_DECODED, Description
from ._operators.model_names import operator_names
from ._operators.prepare import prepare_operators
from .descriptions import Attention, FusedFfn, QuantizedFfn, RopeKvAppend
from .program import tune

_SEQUENCES = 512  # that decode together at most
_CACHE = 8192  # tokens of a sequence that attention is prepared for at least
_PROMPT = MOST_DECODED + 1  # tokens of the shortest

# The descriptions that are one family's problem each, by its name.
_BY_FAMILY: Dict[str, Type[Description]] = {
    kind.FAMILY: kind
    for kind in (getattr(descriptions, name) for name in descriptions.__all__)
    if kind.FAMILY
}


class ModelOperators(Mapping[str, Operator]):
    """Prepared operators by name: the kernel family, or "fused_ffn", "quantized_ffn" and "attention" for
    what has several, with what the operator has beyond its defaults: "rmsnorm", "layernorm_int8_residual",
    "linear_bias", "attention_decode_lengths_paged"; where a model has one kind in several sizes, with the
    elements of a row, "rmsnorm_4096", or those of x and out, "linear_4096_14336".

    Attention over a prompt is prepared for as many queries as max_rows says, that over one token for as many
    sequences (up to 512), both for caches of up to 8192 tokens; what has a row for each sequence, as the draw
    of its next token, for as many rows (up to 512).

    ``roles`` says which name does what: {"query, key, value projection": "linear_4096_6144", ...}.
    ``without_family`` lists what else the model does, and Hone has no operator for yet: dicts of `role`,
    `family`, `shape` and `count`. str() names both.
    """

    def __init__(
        self, name: str, operators: Dict[str, Operator], roles: Dict[str, str],
        without_family: List[Dict[str, Any]],
    ) -> None:  # fmt: skip
        self.name = name
        self.roles = roles
        self.without_family = without_family
        self._operators = operators

    def __getitem__(self, name: str) -> Operator:
        return self._operators[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._operators)

    def __len__(self) -> int:
        return len(self._operators)

    def __str__(self) -> str:
        missing = sorted({entry["family"] for entry in self.without_family})
        text = f"{self.name}: {', '.join(self) or 'no operator'}"
        return f"{text}; no kernel yet for {', '.join(missing)}" if missing else text

    def __repr__(self) -> str:
        return f"<hone operators of {self}>"


def prepare_model(model: str, device: int, max_rows: int, options: Dict[str, Any]) -> ModelOperators:
    """Prepares every operator of a model that Hone has; `options` are those of hone.tune() that say which
    these are, None: not given. Raises as hone.prepare()."""
    tokens = [1, _PROMPT] if max_rows >= _PROMPT else [1]
    given = {name: value for name, value in options.items() if value is not None}
    data = tune(model, tokens=tokens, dry_run=True, quiet=True, **given)
    of_engines = [entry for entry in data["operators"] if not entry["of_steps"]]
    by_role = descriptions_by_role(of_engines, max_rows)
    distinct = list(dict.fromkeys(by_role.values()))
    names = dict(zip(distinct, operator_names(distinct)))
    operators = dict(zip(names.values(), prepare_operators(list(names), device, stacklevel=4)))
    roles = {role: names[description] for role, description in by_role.items()}
    return ModelOperators(data["name"], operators, roles, data["without_family"])


def descriptions_by_role(operators: List[Dict[str, Any]], max_rows: int) -> Dict[str, Description]:
    """The descriptions of the program's list, whose entries have `role` and `problem`. The halves of a
    feed-forward network, which are tuned apart and stand one after the other, are one operator here."""
    found: Dict[str, Description] = {}
    first: Dict[str, str] = {}
    for entry in operators:
        role, _, half = entry["role"].partition(", ")
        if half == "first half":
            first = _fields(entry["problem"])
        elif half == "second half":
            found[role] = _ffn_of(first, _fields(entry["problem"]), max_rows)
        else:
            found[entry["role"]] = description_of(entry["problem"], max_rows)
    return found


def description_of(problem: str, max_rows: int) -> Description:
    """The description of "rmsnorm dtype=bf16 output=same residual=no hidden=4096 rows=1", say: of every
    problem but the first half of a gated feed-forward network."""
    family = problem.split()[0]
    fields = _fields(problem)
    if family in ("attention_prefill", "attention_decode"):
        return _attention_of(family, fields, max_rows)
    if family == "rope_kv_append":
        return _rope_of(fields, max_rows)
    kind = _BY_FAMILY[family]
    return kind.of_problem(fields, min(max_rows, _SEQUENCES) if kind.ROWS_ARE_SEQUENCES else max_rows)


def _fields(problem: str) -> Dict[str, str]:
    return dict(word.split("=", 1) for word in problem.split()[1:])


def _ffn_of(first: Dict[str, str], second: Dict[str, str], max_tokens: int) -> Union[FusedFfn, QuantizedFfn]:
    """The network of two halves: the first has everything but the residual. Whether there is one scale for
    all of a quantized tensor is a call's affair, not a problem's."""
    common: Dict[str, Any] = {
        "hidden": int(first["in"]),
        "intermediate": int(first["out"]),
        "max_tokens": max_tokens,
        "dtype": first["dtype"],
        "activation": first["activation"],
        "residual": second["residual"] == "yes",
    }
    common.update((name, first[name] == "yes") for name in ("gated", "bias", "norm"))
    if "format" not in first:
        return FusedFfn(**common)
    quantized: Dict[str, Any] = {name: first[name] == "yes" for name in ("zeros", "quantized_x")}
    return QuantizedFfn(**common, format=first["format"], group=int(first["group"]), **quantized)


def _attention_of(family: str, fields: Dict[str, str], max_rows: int) -> Attention:
    """One of a prompt has queries for rows, one of a cache sequences."""
    lengths = fields["lengths"]
    sizes: Dict[str, Any]
    if family == "attention_prefill":
        longest, packed = max(max_rows, _CACHE), lengths in ("cumulative", "paged")
        sizes = {"max_q_len": max_rows, "max_kv_len": longest, "packed": packed}
        sizes["page_size"] = int(fields.get("page_size", 0))  # said only where there are pages
    else:
        sizes = {
            "max_batch": min(max_rows, _SEQUENCES),
            "max_q_len": int(fields["q_tokens"]),
            "max_kv_len": _CACHE,
            "page_size": int(fields["page_size"]),
        }
    return Attention(
        *_heads(fields),
        **sizes,
        kv_dtype=_kv_dtype(fields),
        dtype=fields["dtype"],
        causal=fields["causal"] == "yes",
        window=int(fields["window"]),
        softcap=fields["softcap"] == "yes",
        lse=fields["lse"] == "yes",
        sinks=fields.get("sinks") == "yes",  # said only where there are some
        lengths=lengths in ("yes", "kv"),
    )


def _rope_of(fields: Dict[str, str], max_rows: int) -> RopeKvAppend:
    return RopeKvAppend(
        *_heads(fields),
        rotary_dim=int(fields["rotary_dim"]),
        max_tokens=max_rows,
        dtype=fields["dtype"],
        kv_dtype=_kv_dtype(fields),
        style=fields["style"],
        norm=fields["norm"] == "yes",
        slots=fields["slots"] == "yes",
        page_size=int(fields["page_size"]),
    )


def _heads(fields: Dict[str, str]) -> Tuple[int, int, int]:
    return int(fields["heads"]), int(fields["kv_heads"]), int(fields["head_dim"])


def _kv_dtype(fields: Dict[str, str]) -> str:
    return "fp8" if fields.get("kv_dtype") == "fp8_e4m3" else "same"

"""The operators of a model: the `hone` program knows what a model is made of, this prepares it."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping

from ._operator import Operator
from .descriptions import Description, FusedFfn, LayerNorm, Linear, RmsNorm, dtype_name
from .program import run_json


class ModelOperators(Mapping[str, Operator]):
    """Prepared operators by name: "rmsnorm", "rmsnorm_residual", "layernorm_int8_residual", "linear_bias",
    "fused_ffn"; where a model has one kind in several sizes, with the elements of a row, "rmsnorm_4096", or
    those of x and out, "linear_4096_14336".

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


def prepare_model(model: str, device: int, *, dtype: Any, tp: int, max_rows: int) -> ModelOperators:
    """Prepares every operator of a model that Hone has. Raises as hone.prepare()."""
    from ._prepare import prepare_operator

    arguments = ["tune", "--dry-run", "--json", "--tokens=1", f"--tp={tp}"]
    if dtype is not None:
        arguments.append(f"--dtype={dtype_name(dtype)}")
    data = run_json([*arguments, "--", model], quiet=True)
    by_role = descriptions_by_role(data["operators"], max_rows)
    distinct = list(dict.fromkeys(by_role.values()))
    names = dict(zip(distinct, _names(distinct)))
    operators = {}
    for description, name in names.items():
        operators[name] = prepare_operator(description, device, stacklevel=4)
    roles = {role: names[description] for role, description in by_role.items()}
    return ModelOperators(data["name"], operators, roles, data["without_family"])


def descriptions_by_role(operators: List[Dict[str, Any]], max_rows: int) -> Dict[str, Description]:
    """Of the program's list, each with `role` and `problem`. The halves of a feed-forward network, which are
    tuned apart and stand one after the other, are one operator here."""
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
    """Of "rmsnorm dtype=bf16 output=same residual=no hidden=4096 rows=1", say; of every problem but the first
    half of a gated feed-forward network."""
    family = problem.split()[0]
    fields = _fields(problem)
    if family == "linear":
        return Linear(
            int(fields["in"]),
            int(fields["out"]),
            max_tokens=max_rows,
            dtype=fields["dtype"],
            activation=fields["activation"],
            bias=fields["bias"] == "yes",
            residual=fields["residual"] == "yes",
            norm=fields["norm"] == "yes",
        )
    common: Dict[str, Any] = {
        "hidden": int(fields["hidden"]),
        "max_rows": max_rows,
        "dtype": fields["dtype"],
        "output": fields["output"],
        "residual": fields["residual"] == "yes",
    }
    if family == "rmsnorm":
        return RmsNorm(**common)
    return LayerNorm(**common, bias=fields["bias"] == "yes")


def _fields(problem: str) -> Dict[str, str]:
    return dict(word.split("=", 1) for word in problem.split()[1:])


def _ffn_of(first: Dict[str, str], second: Dict[str, str], max_tokens: int) -> FusedFfn:
    return FusedFfn(
        int(first["in"]),
        int(first["out"]),
        max_tokens=max_tokens,
        dtype=first["dtype"],
        activation=first["activation"],
        gated=first["gated"] == "yes",
        bias=first["bias"] == "yes",
        residual=second["residual"] == "yes",
        norm=first["norm"] == "yes",
    )


def _names(descriptions: List[Any]) -> List[str]:
    short = [_short_name(description) for description in descriptions]
    return [
        name if short.count(name) == 1 else f"{name}_{_size(description)}"
        for name, description in zip(short, descriptions)
    ]


def _size(description: Any) -> str:
    """Its sizes but for the rows of a call."""
    return "_".join(str(getattr(description, field)) for field in description.SIZES[:-1])


def _short_name(description: Any) -> str:
    if isinstance(description, FusedFfn):
        return "fused_ffn"
    if isinstance(description, Linear):
        words = ["linear", description.activation if description.activation != "none" else ""]
        words += [option for option in ("norm", "bias", "residual") if getattr(description, option)]
        return "_".join(filter(None, words))
    words = ["rmsnorm" if isinstance(description, RmsNorm) else "layernorm"]
    if description.output != "same":
        words.append(description.output)
    if description.residual:
        words.append("residual")
    if not getattr(description, "bias", True):
        words.append("without_bias")
    return "_".join(words)

"""The operators of a model: the `hone` program knows what a model is made of, this prepares it."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Optional

from ._operator import Operator
from .descriptions import Description, LayerNorm, Linear, RmsNorm, dtype_name
from .program import run_json


class ModelOperators(Mapping[str, Operator]):
    """Prepared operators by name: "rmsnorm", "rmsnorm_residual", "layernorm_int8_residual", "linear_bias";
    where a model has one kind in several sizes, with the elements of a row, "rmsnorm_4096", or those of x and
    out, "linear_4096_14336".

    ``without_family`` lists what else the model does, and Hone has no operator for yet, or, like the halves
    of a gated feed-forward network, none that stands alone: dicts of `role`, `family`, `shape` and `count`.
    str() names both.
    """

    def __init__(
        self, name: str, operators: Dict[str, Operator], without_family: List[Dict[str, Any]]
    ) -> None:
        self.name = name
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
    """Prepares every operator of a model that this package knows. Raises as hone.prepare()."""
    from ._prepare import prepare_operator

    arguments = ["tune", "--dry-run", "--json", "--tokens=1", f"--tp={tp}"]
    if dtype is not None:
        arguments.append(f"--dtype={dtype_name(dtype)}")
    data = run_json([*arguments, "--", model], quiet=True)
    missing = list(data["without_family"])
    found: List[Description] = []
    for problem in (entry["problem"] for entry in data["problems"]):
        description = description_of(problem, max_rows)
        if description is None:
            missing.append({"role": problem, "family": problem.split()[0], "shape": "", "count": 0})
        else:
            found.append(description)
    operators = {}
    for name, description in zip(_names(found), found):
        operators[name] = prepare_operator(description, device, stacklevel=4)
    return ModelOperators(data["name"], operators, missing)


def description_of(problem: str, max_rows: int) -> Optional[Description]:
    """Of "rmsnorm dtype=bf16 output=same residual=no hidden=4096 rows=1", say; None for what this package has
    no operator for: other families, and the first half of a gated feed-forward network."""
    family, *words = problem.split()
    fields = dict(word.split("=", 1) for word in words)
    if family == "linear":
        return _linear_of(fields, max_rows)
    if family not in ("rmsnorm", "layernorm"):
        return None
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


def _linear_of(fields: Dict[str, str], max_tokens: int) -> Optional[Linear]:
    if fields["gated"] == "yes":
        return None
    return Linear(
        int(fields["in"]),
        int(fields["out"]),
        max_tokens=max_tokens,
        dtype=fields["dtype"],
        activation=fields["activation"],
        bias=fields["bias"] == "yes",
        residual=fields["residual"] == "yes",
        norm=fields["norm"] == "yes",
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

"""PyTorch's operators with quantized weights: on CUDA tensors, and on fake ones that have only shapes. As
rows.py, but for their checks: weights say with their tensors how they are stored."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from torch import Tensor

from .declared import DECLARED, Declared
from .prepared import FIRST_ROWS, KnownCalls, PreparedBySize, known_call, on, run_on_any
from .quantized_checks import (
    RESULTS,
    Weight,
    check_norm,
    check_size,
    check_tensor,
    check_weight,
    check_words,
    check_x,
    has_one_scale,
)

Values = Dict[str, Any]


class QuantizedCall:
    """One operator of torch.ops.hone: `implementation` is its CUDA kernel, `fake` says what that would return."""

    SIZE: str  # the argument that is a size, beside the columns of x
    COLUMNS: str  # what those are called

    def __init__(self, name: str) -> None:
        declared = next(declared for declared in DECLARED if declared.name == name)
        self._names, self._description = declared.names, declared.description
        self._known = KnownCalls(declared.names)
        self._prepared = PreparedBySize(name, self._describe, (FIRST_ROWS,))
        self.known = known_call(declared, _key(declared), self._known, self._with_care)
        self._key, self.implementation = self.known.key_of, self.known.implementation

    def _describe(self, fields: Tuple[Tuple[str, Any], ...], most: Tuple[int, ...]) -> Any:
        return self._description(**dict(fields), max_tokens=most[0])

    def fake(self, x: Tensor, *options: Any) -> Tensor:
        values = self._values(x, *options)
        return self._made(x, values, self._check(x, values))

    def _values(self, *arguments: Any) -> Values:
        return dict(zip(self._names, (*arguments, *[None] * (len(self._names) - len(arguments)))))

    def _made(self, x: Tensor, values: Values, fields: Values) -> Tensor:
        return x.new_empty(self._shapes(x, values)["residual"], dtype=RESULTS[fields["dtype"]])

    def _with_care(self, x: Tensor, *options: Any) -> Tensor:
        """On any tensors: checks, prepares, copies what kernels cannot read."""
        values = self._values(x, *options)
        fields = self._check(x, values)
        out = self._made(x, values, fields)
        if not x.numel() or x.is_meta:
            return out
        tokens, device = x.numel() // x.shape[-1], x.get_device()
        with on(device):
            operator = self._prepared.for_call(tuple(fields.items()), device, (tokens,))
            # A scale for all of x looks like that of a single token, and is always looked at.
            if not fields["one_x_scale"]:
                self._known.learn(self._key(x, *options), operator)
            run_on_any(operator, tokens, x, values, {"out": out})
        return out

    def _check(self, x: Tensor, given: Values) -> Values:
        """The fields of the description, but for the most tokens. Raises TypeError or ValueError."""
        format, group = given["format"], given["group"]
        check_words(format, group, given["activation"])
        check_size(self.SIZE, given[self.SIZE])
        self._check_presence(given)
        source = check_x(x, self.COLUMNS, format, group, given["x_scales"], given["dtype"])
        weights = self._weights(x, given)
        one_scale = has_one_scale(format, group, *weights)
        for weight in weights:
            check_weight(x, weight, format, group, one_scale, source.dtype)
        for name, shape in self._shapes(x, given).items():
            if given[name] is not None:
                check_tensor(x, name, given[name], shape, RESULTS[source.dtype])
        check_norm(x, given["norm_weight"], given["epsilon"], source)
        return {
            **self._fields(x, given), "format": format, "group": group, "dtype": source.dtype,
            "zeros": weights[-1].zeros is not None, "one_scale": one_scale, "quantized_x": source.quantized,
            "one_x_scale": source.one_scale, "activation": given["activation"],
            "residual": given["residual"] is not None, "norm": given["norm_weight"] is not None,
        }  # fmt: skip

    # What is an operator's own.

    def _check_presence(self, given: Values) -> None:
        """What goes only with something else, or not without it."""

    def _weights(self, x: Tensor, given: Values) -> List[Weight]:
        raise NotImplementedError

    def _shapes(self, x: Tensor, given: Values) -> Dict[str, Tuple[int, ...]]:
        """The shapes of the residual and of biases."""
        raise NotImplementedError

    def _fields(self, x: Tensor, given: Values) -> Values:
        """Those that not every description has."""
        raise NotImplementedError


def _key(declared: Declared) -> List[str]:
    """What says, with the shapes of the constants, which operator a call runs."""
    parts = ["x.dtype", "x.shape[-1:]", "x.get_device()"]
    for kind, name in declared.arguments:
        if kind == "Tensor?":
            parts.append(f"{name} is None")
        elif kind == "Tensor" and name.endswith("scales"):
            parts.append(f"{name}.shape")
        elif kind in ("str", "str?", "int"):
            parts.append(name)
    return parts


class _Linear(QuantizedCall):
    SIZE, COLUMNS = "out_features", "in"

    def _weights(self, x: Tensor, given: Values) -> List[Weight]:
        tensors = (given[name] for name in ("weight", "scales", "zeros"))
        return [Weight(given["out_features"], x.shape[-1], *tensors)]

    def _shapes(self, x: Tensor, given: Values) -> Dict[str, Tuple[int, ...]]:
        out = given["out_features"]
        return {"bias": (out,), "residual": (*x.shape[:-1], out)}

    def _fields(self, x: Tensor, given: Values) -> Values:
        sizes = {"in_features": x.shape[-1], "out_features": given["out_features"]}
        return {**sizes, "bias": given["bias"] is not None}


class _Ffn(QuantizedCall):
    SIZE, COLUMNS = "intermediate", "hidden"

    def _check_presence(self, given: Values) -> None:
        has = {name: value is not None for name, value in given.items()}
        if has["gate"] and given["activation"] == "none":
            raise ValueError("activation: 'none'; allowed with a gate are all others")
        if has["gate"] and (has["up_bias"] or has["down_bias"]):
            name = "up_bias" if has["up_bias"] else "down_bias"
            raise ValueError(f"{name}: it is given; allowed is None with a gate")
        for name, wanted, partner in (
            ("gate_scales", has["gate"], "gate"),
            ("gate_zeros", has["gate"] and has["up_zeros"], "gate and up_zeros"),
            ("down_zeros", has["up_zeros"], "up_zeros"),
            ("down_bias", has["up_bias"], "up_bias"),
        ):
            if has[name] != wanted:
                raise ValueError(f"{name}: it is {'missing' if wanted else 'given'}; it goes with {partner}")

    def _weights(self, x: Tensor, given: Values) -> List[Weight]:
        hidden, between = x.shape[-1], given["intermediate"]
        shapes = {"gate": (between, hidden), "up": (between, hidden), "down": (hidden, between)}
        found = []
        for name, (rows, columns) in shapes.items():
            names = (name, f"{name}_scales", f"{name}_zeros")
            if given[name] is not None:
                codes, scales, zeros = (given[part] for part in names)
                found.append(Weight(rows, columns, codes, scales, zeros, names))
        return found

    def _shapes(self, x: Tensor, given: Values) -> Dict[str, Tuple[int, ...]]:
        return {"up_bias": (given["intermediate"],), "down_bias": x.shape[-1:], "residual": x.shape}

    def _fields(self, x: Tensor, given: Values) -> Values:
        sizes = {"hidden": x.shape[-1], "intermediate": given["intermediate"]}
        return {**sizes, "gated": given["gate"] is not None, "bias": given["up_bias"] is not None}


quantized_linear = _Linear("quantized_linear")
quantized_ffn = _Ffn("quantized_ffn")

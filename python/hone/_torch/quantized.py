"""What PyTorch's quantized linear layer of Hone does: on CUDA tensors, and on fake ones that have only
shapes. As rows.py."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

from torch import Tensor

from .. import descriptions
from .._operators.base import NOT_PLAIN
from .declared import DECLARED
from .prepared import (
    FIRST_ROWS,
    KnownCalls,
    PreparedBySize,
    on,
    run_on_any,
)
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


class _Kind(NamedTuple):
    """What a QuantizedLinear is but for the tokens of its calls."""

    in_features: int
    out_features: int
    format: str
    group: int
    dtype: str
    zeros: bool
    one_scale: bool
    quantized_x: bool
    one_x_scale: bool
    activation: str
    bias: bool
    residual: bool
    norm: bool


def _describe(kind: _Kind, most: Tuple[int, ...]) -> descriptions.QuantizedLinear:
    return descriptions.QuantizedLinear(**kind._asdict(), max_tokens=most[0])


_PREPARED = PreparedBySize("quantized_linear", _describe, (FIRST_ROWS,))


class _Options(NamedTuple):
    """The arguments of quantized_linear after its first three."""

    format: str
    group: int
    out_features: int
    activation: str
    zeros: Optional[Tensor] = None
    bias: Optional[Tensor] = None
    residual: Optional[Tensor] = None
    x_scales: Optional[Tensor] = None
    norm_weight: Optional[Tensor] = None
    epsilon: Optional[float] = None
    out_dtype: Optional[str] = None


_NAMES = next(declared.names for declared in DECLARED if declared.name == "quantized_linear")
# The fast way of calls by the key that quantized_linear() makes of their arguments.
_KNOWN = KnownCalls(_NAMES)


def quantized_linear(
    x: Tensor, codes: Tensor, scales: Tensor, format: str, group: int, out_features: int, activation: str,
    zeros: Optional[Tensor] = None, bias: Optional[Tensor] = None, residual: Optional[Tensor] = None,
    x_scales: Optional[Tensor] = None, norm_weight: Optional[Tensor] = None, epsilon: Optional[float] = None,
    out_dtype: Optional[str] = None,
) -> Tensor:  # fmt: skip
    """x [..., in] of bf16, fp16 or codes; codes, scales and zeros as a QuantizedLinear stores them; bias
    [out], residual [..., out], norm_weight [in] -> [..., out]."""
    key = (
        x.dtype, x.shape[-1:], x.get_device(), scales.shape, format, group, out_features, activation,
        out_dtype, zeros is None, bias is None, residual is None, x_scales is None, norm_weight is None,
    )  # fmt: skip
    plain = _KNOWN.get(key)
    if plain is not None:
        try:
            return plain(
                x, codes, scales, format, group, out_features, activation, zeros, bias, residual, x_scales,
                norm_weight, epsilon, out_dtype,
            )  # fmt: skip
        except NOT_PLAIN:
            pass
    given = _Options(
        format, group, out_features, activation, zeros, bias, residual, x_scales, norm_weight, epsilon,
        out_dtype,
    )  # fmt: skip
    return _with_care(key, x, codes, scales, given)


def _with_care(key: tuple, x: Tensor, codes: Tensor, scales: Tensor, given: _Options) -> Tensor:
    """On any tensors: checks, prepares, copies what kernels cannot read."""
    kind = _check(x, codes, scales, given)
    out = x.new_empty((*x.shape[:-1], kind.out_features), dtype=RESULTS[kind.dtype])
    if not x.numel() or x.is_meta:
        return out
    tokens, device = x.numel() // kind.in_features, x.get_device()
    values = dict(zip(_NAMES, (x, codes, scales, *given)))
    with on(device):
        operator = _known_operator(key, kind, device, tokens)
        run_on_any(operator, tokens, x, values, {"out": out})
    return out


def _known_operator(key: tuple, kind: _Kind, device: int, tokens: int) -> Any:
    """The operator of a call that was checked, which the next one like it need not be. A scale for all of x
    looks like that of a single token, and is always looked at."""
    operator = _PREPARED.for_call(kind, device, (tokens,))
    if not kind.one_x_scale:
        _KNOWN.learn(key, operator)
    return operator


def quantized_linear_fake(x: Tensor, codes: Tensor, scales: Tensor, *options: Any) -> Tensor:
    kind = _check(x, codes, scales, _Options(*options))
    return x.new_empty((*x.shape[:-1], kind.out_features), dtype=RESULTS[kind.dtype])


def _check(x: Tensor, codes: Tensor, scales: Tensor, given: _Options) -> _Kind:
    """What the call asks for. Raises TypeError or ValueError."""
    out, group = given.out_features, given.group
    check_words(given.format, group, given.activation)
    check_size("out_features", out)
    source = check_x(x, "in", given.format, group, given.x_scales, given.out_dtype)
    weight = Weight(out, x.shape[-1], codes, scales, given.zeros)
    one_scale = has_one_scale(given.format, group, weight)
    check_weight(x, weight, given.format, group, one_scale, source.dtype)
    for name, tensor, shape in (
        ("bias", given.bias, (out,)),
        ("residual", given.residual, (*x.shape[:-1], out)),
    ):
        if tensor is not None:
            check_tensor(x, name, tensor, shape, RESULTS[source.dtype])
    check_norm(x, given.norm_weight, given.epsilon, source)
    return _Kind(
        x.shape[-1], out, given.format, group, source.dtype, given.zeros is not None, one_scale,
        source.quantized, source.one_scale, given.activation, given.bias is not None,
        given.residual is not None, given.norm_weight is not None,
    )  # fmt: skip

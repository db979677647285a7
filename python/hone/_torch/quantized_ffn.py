"""What PyTorch's quantized feed-forward network of Hone does: on CUDA tensors, and on fake ones that have
only shapes. As rows.py."""

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
    Source,
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
    """What a QuantizedFfn is but for the tokens of its calls."""

    hidden: int
    intermediate: int
    format: str
    group: int
    dtype: str
    zeros: bool
    one_scale: bool
    quantized_x: bool
    one_x_scale: bool
    activation: str
    gated: bool
    bias: bool
    residual: bool
    norm: bool


def _describe(kind: _Kind, most: Tuple[int, ...]) -> descriptions.QuantizedFfn:
    return descriptions.QuantizedFfn(**kind._asdict(), max_tokens=most[0])


_PREPARED = PreparedBySize("quantized_ffn", _describe, (FIRST_ROWS,))


class _Options(NamedTuple):
    """The arguments of quantized_ffn after x."""

    gate: Optional[Tensor]
    gate_scales: Optional[Tensor]
    up: Tensor
    up_scales: Tensor
    down: Tensor
    down_scales: Tensor
    format: str
    group: int
    intermediate: int
    activation: str
    gate_zeros: Optional[Tensor] = None
    up_zeros: Optional[Tensor] = None
    down_zeros: Optional[Tensor] = None
    up_bias: Optional[Tensor] = None
    down_bias: Optional[Tensor] = None
    residual: Optional[Tensor] = None
    x_scales: Optional[Tensor] = None
    norm_weight: Optional[Tensor] = None
    epsilon: Optional[float] = None
    out_dtype: Optional[str] = None


_NAMES = next(declared.names for declared in DECLARED if declared.name == "quantized_ffn")
# The fast way of calls by the key that _key() makes of their arguments.
_KNOWN = KnownCalls(_NAMES)


def _key(x: Tensor, given: _Options) -> tuple:
    """What says, with the shapes of the constants, which operator a call runs."""
    return (
        x.dtype, x.shape[-1:], x.get_device(), given.format, given.group, given.intermediate,
        given.activation, given.out_dtype, given.residual is None, given.x_scales is None,
        given.up_scales.shape, given.down_scales.shape, given.gate is None, given.up_zeros is None,
        given.up_bias is None, given.norm_weight is None,
    )  # fmt: skip


def quantized_ffn(x: Tensor, *options: Any) -> Tensor:
    """x [..., hidden] of bf16, fp16 or codes, residual [..., hidden]; gate and up, weights [intermediate,
    hidden], and down, [hidden, intermediate], as a QuantizedLinear stores them; up_bias [intermediate],
    down_bias and norm_weight [hidden] -> [..., hidden]."""
    given = _Options(*options)
    key = _key(x, given)
    plain = _KNOWN.get(key)
    if plain is not None:
        try:
            return plain(x, *given)
        except NOT_PLAIN:
            pass
    return _with_care(key, x, given)


def _with_care(key: tuple, x: Tensor, given: _Options) -> Tensor:
    """On any tensors: checks, prepares, copies what kernels cannot read."""
    kind = _check(x, given)
    out = x.new_empty(x.shape, dtype=RESULTS[kind.dtype])
    if not x.numel() or x.is_meta:
        return out
    tokens, device = x.numel() // kind.hidden, x.get_device()
    with on(device):
        operator = _known_operator(key, kind, device, tokens)
        run_on_any(operator, tokens, x, dict(zip(_NAMES, (x, *given))), {"out": out})
    return out


def _known_operator(key: tuple, kind: _Kind, device: int, tokens: int) -> Any:
    """As that of quantized.py."""
    operator = _PREPARED.for_call(kind, device, (tokens,))
    if not kind.one_x_scale:
        _KNOWN.learn(key, operator)
    return operator


def quantized_ffn_fake(x: Tensor, *options: Any) -> Tensor:
    return x.new_empty(x.shape, dtype=RESULTS[_check(x, _Options(*options)).dtype])


# Checks, of fake tensors, too: they raise TypeError or ValueError.


def _check(x: Tensor, given: _Options) -> _Kind:
    """What the call asks for."""
    check_words(given.format, given.group, given.activation)
    check_size("intermediate", given.intermediate)
    _check_presence(given)
    source = check_x(x, "hidden", given.format, given.group, given.x_scales, given.out_dtype)
    one_scale = _check_weights(x, given, source)
    hidden, between = x.shape[-1], given.intermediate
    for name, tensor, shape in (
        ("up_bias", given.up_bias, (between,)),
        ("down_bias", given.down_bias, (hidden,)),
        ("residual", given.residual, x.shape),
    ):
        if tensor is not None:
            check_tensor(x, name, tensor, shape, RESULTS[source.dtype])
    check_norm(x, given.norm_weight, given.epsilon, source)
    return _Kind(
        hidden, between, given.format, given.group, source.dtype, given.up_zeros is not None, one_scale,
        source.quantized, source.one_scale, given.activation, given.gate is not None,
        given.up_bias is not None, given.residual is not None, given.norm_weight is not None,
    )  # fmt: skip


def _check_presence(given: _Options) -> None:
    """What goes only with something else, or not without it."""
    gated, zeros, bias = given.gate is not None, given.up_zeros is not None, given.up_bias is not None
    if gated and given.activation == "none":
        raise ValueError("activation: 'none'; allowed with a gate are all others")
    if gated and (bias or given.down_bias is not None):
        raise ValueError(f"{'up_bias' if bias else 'down_bias'}: it is given; allowed is None with a gate")
    for name, tensor, wanted, partner in (
        ("gate_scales", given.gate_scales, gated, "gate"),
        ("gate_zeros", given.gate_zeros, gated and zeros, "gate and up_zeros"),
        ("down_zeros", given.down_zeros, zeros, "up_zeros"),
        ("down_bias", given.down_bias, bias, "up_bias"),
    ):
        if (tensor is not None) != wanted:
            found = "missing" if wanted else "given"
            raise ValueError(f"{name}: it is {found}; it goes with {partner}")


def _check_weights(x: Tensor, given: _Options, source: Source) -> bool:
    """Whether each has one scale."""
    hidden, between = x.shape[-1], given.intermediate
    up = Weight(between, hidden, given.up, given.up_scales, given.up_zeros, _names("up"))
    down = Weight(hidden, between, given.down, given.down_scales, given.down_zeros, _names("down"))
    weights = [up, down]
    if given.gate is not None:
        assert given.gate_scales is not None
        gate = Weight(between, hidden, given.gate, given.gate_scales, given.gate_zeros, _names("gate"))
        weights.insert(0, gate)
    one_scale = has_one_scale(given.format, given.group, *weights)
    for weight in weights:
        check_weight(x, weight, given.format, given.group, one_scale, source.dtype)
    return one_scale


def _names(weight: str) -> Tuple[str, str, str]:
    return weight, f"{weight}_scales", f"{weight}_zeros"

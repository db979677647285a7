"""What bench/compare_torch.py compares: for each operator its inputs, PyTorch's ways to do it, the truth, and
the work.

A new family is one entry of FAMILIES, and one of PEERS in torch_peers.py. What a case is says
torch_cases.py.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import torch
from torch import Tensor
from torch.nn import functional

import torch_attention
import torch_quantized
import torch_tokens
from torch_cases import Call, Case, Family, Inputs, as_tuple, compiled, dtype_of, randn, wide

EPSILON = 1e-5

# Norms: rows, hidden.


def _norm_inputs(case: Case) -> Inputs:
    rows, hidden, dtype = case["rows"], case["hidden"], dtype_of(case)
    inputs = {"x": randn(rows, hidden, dtype=dtype), "weight": randn(hidden, dtype=dtype)}
    if case["op"].startswith("layernorm"):
        inputs["bias"] = randn(hidden, dtype=dtype)
    if case["op"].endswith("residual"):
        inputs["residual"] = randn(rows, hidden, dtype=dtype)
    return inputs


def _norm_function(case: Case) -> Tuple[Callable[..., Any], Tuple[str, ...]]:
    """The norm in PyTorch's terms, and the names of its arguments."""
    shape = (case["hidden"],)
    if case["op"].startswith("layernorm"):
        names: Tuple[str, ...] = ("x", "weight", "bias")

        def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
            return functional.layer_norm(x, shape, weight, bias, EPSILON)
    else:
        names = ("x", "weight")

        def norm(x: Tensor, weight: Tensor) -> Tensor:
            return functional.rms_norm(x, shape, weight, EPSILON)

    if not case["op"].endswith("residual"):
        return norm, names

    def with_residual(residual: Tensor, x: Tensor, *parameters: Tensor) -> Tuple[Tensor, Tensor]:
        total = x + residual
        return norm(total, *parameters), total

    return with_residual, ("residual", *names)


def _norm_peers(case: Case) -> Dict[str, Call]:
    function, names = _norm_function(case)
    return {
        "torch eager": lambda inputs: function(*(inputs[name] for name in names)),
        "inductor": compiled(function, *names),
    }


def _norm_reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
    function, names = _norm_function(case)
    widened = wide(case, inputs)
    return as_tuple(function(*(widened[name] for name in names)))


def _norm_work(case: Case) -> Tuple[int, int]:
    elements = case["rows"] * case["hidden"]
    passes = 4 if case["op"].endswith("residual") else 2
    return passes * elements * dtype_of(case).itemsize, 4 * elements


# Gradients of RMSNorm: rows, hidden. PyTorch's forward saves rstd for them, Hone's recomputes it.


def _backward_inputs(case: Case) -> Inputs:
    rows, hidden, dtype = case["rows"], case["hidden"], dtype_of(case)
    x = randn(rows, hidden, dtype=dtype)
    rstd = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + EPSILON)
    dy, weight = randn(rows, hidden, dtype=dtype), randn(hidden, dtype=dtype)
    return {"dy": dy, "x": x, "weight": weight, "rstd": rstd}


def _backward_formula(dy: Tensor, x: Tensor, weight: Tensor, rstd: Tensor) -> Tuple[Tensor, Tensor]:
    """(dx, dweight) as a compiler sees it: in rstd's dtype, rounded at the end."""
    normalized, gradient = x.to(rstd.dtype) * rstd, dy.to(rstd.dtype)
    scaled = gradient * weight
    dx = rstd * (scaled - normalized * (normalized * scaled).mean(-1, keepdim=True))
    return dx.to(x.dtype), (gradient * normalized).sum(0).to(weight.dtype)


def _backward_peers(case: Case) -> Dict[str, Call]:
    names, shape = ("dy", "x", "weight", "rstd"), (case["hidden"],)
    found = {"inductor": compiled(_backward_formula, *names)}
    fused = getattr(torch.ops.aten, "_fused_rms_norm_backward", None)  # from 2.9 on
    if fused is not None:
        found["torch eager"] = lambda t: fused(t["dy"], t["x"], shape, t["rstd"], t["weight"], [True, True])
    return found


def _backward_reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
    widened = wide(case, inputs)
    rstd = torch.rsqrt(widened["x"].square().mean(-1, keepdim=True) + EPSILON)
    return _backward_formula(widened["dy"], widened["x"], widened["weight"], rstd)


def _backward_work(case: Case) -> Tuple[int, int]:
    elements = case["rows"] * case["hidden"]
    return 3 * elements * dtype_of(case).itemsize, 11 * elements


# Linear layers: tokens, out, in. The feed-forward network of a layer: tokens, hidden, intermediate; gated by
# SiLU without biases (ffn_swiglu), or GELU with them (ffn_gelu). Weights are scaled so that results are about
# as large as x.


def _weight(out: int, columns: int, dtype: torch.dtype) -> Tensor:
    return randn(out, columns, dtype=dtype) * columns**-0.5


def _linear_inputs(case: Case) -> Inputs:
    dtype = dtype_of(case)
    x = randn(case["tokens"], case["in"], dtype=dtype)
    return {"x": x, "w": _weight(case["out"], case["in"], dtype)}


def _linear_function(inputs: Inputs) -> Tensor:
    return functional.linear(inputs["x"], inputs["w"])


def _linear_reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
    return (_linear_function(wide(case, inputs)),)


def _linear_work(case: Case) -> Tuple[int, int]:
    tokens, out, columns = case["tokens"], case["out"], case["in"]
    elements = out * columns + tokens * (out + columns)
    return elements * dtype_of(case).itemsize, 2 * tokens * out * columns


def _ffn_inputs(case: Case) -> Inputs:
    dtype, hidden, intermediate = dtype_of(case), case["hidden"], case["intermediate"]
    inputs = {"x": randn(case["tokens"], hidden, dtype=dtype), "down": _weight(hidden, intermediate, dtype)}
    if case["op"] == "ffn_swiglu":
        packed = _weight(2 * intermediate, hidden, dtype)  # once in memory, for those who read it at once
        return {**inputs, "gate": packed[:intermediate], "up": packed[intermediate:], "gate_up": packed}
    biases = {"up_bias": randn(intermediate, dtype=dtype), "down_bias": randn(hidden, dtype=dtype)}
    return {**inputs, "up": _weight(intermediate, hidden, dtype), **biases}


def _swiglu(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return functional.linear(functional.silu(functional.linear(x, gate)) * functional.linear(x, up), down)


def _swiglu_packed(x: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
    gate, up = functional.linear(x, gate_up).chunk(2, dim=-1)
    return functional.linear(functional.silu(gate) * up, down)


def _gelu(x: Tensor, up: Tensor, up_bias: Tensor, down: Tensor, down_bias: Tensor) -> Tensor:
    between = functional.gelu(functional.linear(x, up, up_bias), approximate="tanh")
    return functional.linear(between, down, down_bias)


_FFN_NAMES = {
    _swiglu: ("x", "gate", "up", "down"),
    _swiglu_packed: ("x", "gate_up", "down"),
    _gelu: ("x", "up", "up_bias", "down", "down_bias"),
}


def _ffn_call(function: Callable[..., Tensor]) -> Call:
    return lambda inputs: function(*(inputs[name] for name in _FFN_NAMES[function]))


def _ffn_peers(case: Case) -> Dict[str, Call]:
    if case["op"] == "ffn_gelu":
        return {"torch eager": _ffn_call(_gelu), "inductor": compiled(_gelu, *_FFN_NAMES[_gelu])}
    return {
        "torch eager": _ffn_call(_swiglu),
        "torch packed": _ffn_call(_swiglu_packed),
        "inductor packed": compiled(_swiglu_packed, *_FFN_NAMES[_swiglu_packed]),
    }


def _ffn_reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
    function = _swiglu if case["op"] == "ffn_swiglu" else _gelu
    widened = wide(case, {name: inputs[name] for name in _FFN_NAMES[function]})
    return (_ffn_call(function)(widened),)


def _ffn_work(case: Case) -> Tuple[int, int]:
    tokens, hidden, intermediate = case["tokens"], case["hidden"], case["intermediate"]
    weights = (3 if case["op"] == "ffn_swiglu" else 2) * hidden * intermediate
    return (weights + 2 * tokens * hidden) * dtype_of(case).itemsize, 2 * tokens * weights


_NORM = Family(_norm_inputs, _norm_peers, _norm_reference, _norm_work)
_FFN = Family(_ffn_inputs, _ffn_peers, _ffn_reference, _ffn_work)

FAMILIES: Dict[str, Family] = {
    "rmsnorm": _NORM,
    "rmsnorm_residual": _NORM,
    "layernorm": _NORM,
    "layernorm_residual": _NORM,
    "rmsnorm_backward": Family(_backward_inputs, _backward_peers, _backward_reference, _backward_work),
    "linear": Family(_linear_inputs, lambda _: {"cuBLAS": _linear_function}, _linear_reference, _linear_work),
    "ffn_swiglu": _FFN,
    "ffn_gelu": _FFN,
    **torch_quantized.FAMILIES,
    "attention": torch_attention.FAMILY,
    "attention_paged": torch_attention.FAMILY,
    **torch_tokens.FAMILIES,
}

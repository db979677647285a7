"""Norms and their gradients: rows, hidden. PyTorch's forward saves rstd for the gradients, Hone's kernels
compute it again."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import torch
from torch import Tensor
from torch.nn import functional

import hone
from torch_cases import (
    Call,
    Case,
    Family,
    Input,
    Inputs,
    as_tuple,
    compiled,
    dtype_of,
    eager_and_compiled,
    normal,
    table,
    wide,
)
from torch_hone import Ours

EPSILON = 1e-5


def _norm_inputs(case: Case) -> Dict[str, Input]:
    rows, hidden, dtype = case["rows"], case["hidden"], dtype_of(case)
    inputs = {"x": normal(rows, hidden, dtype=dtype), "weight": normal(hidden, dtype=dtype)}
    if case["op"].startswith("layernorm"):
        inputs["bias"] = normal(hidden, dtype=dtype)
    if case["op"].endswith("residual"):
        inputs["residual"] = normal(rows, hidden, dtype=dtype)
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
    return eager_and_compiled(function, *names)


def _norm_reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
    function, names = _norm_function(case)
    widened = wide(case, inputs)
    return as_tuple(function(*(widened[name] for name in names)))


def _norm_work(case: Case) -> Tuple[int, int]:
    elements = case["rows"] * case["hidden"]
    passes = 4 if case["op"].endswith("residual") else 2
    return passes * elements * dtype_of(case).itemsize, 4 * elements


# Gradients of RMSNorm.


def _backward_inputs(case: Case) -> Dict[str, Input]:
    rows, hidden, dtype = case["rows"], case["hidden"], dtype_of(case)
    return {
        "dy": normal(rows, hidden, dtype=dtype),
        "x": normal(rows, hidden, dtype=dtype),
        "weight": normal(hidden, dtype=dtype),
        "rstd": Input((rows, 1), torch.float32, lambda t: _rstd(t["x"].float())),
    }


def _rstd(x: Tensor) -> Tensor:
    return torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON)


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
    return _backward_formula(widened["dy"], widened["x"], widened["weight"], _rstd(widened["x"]))


def _backward_work(case: Case) -> Tuple[int, int]:
    elements = case["rows"] * case["hidden"]
    return 3 * elements * dtype_of(case).itemsize, 11 * elements


def _norm(description: type) -> Family:
    return Family(
        inputs=_norm_inputs,
        out=_shape,
        peers=_norm_peers,
        hone=Ours(description, numbers={"epsilon": EPSILON}),
        reference=_norm_reference,
        work=_norm_work,
    )


def _shape(case: Case) -> Tuple[int, ...]:
    return case["rows"], case["hidden"]


_BACKWARD = Family(
    inputs=_backward_inputs,
    out=_shape,
    peers=_backward_peers,
    hone=Ours(hone.RmsNormBackward, numbers={"epsilon": EPSILON}),
    reference=_backward_reference,
    work=_backward_work,
)
FAMILIES = {
    "rmsnorm": _norm(hone.RmsNorm),
    "rmsnorm_residual": _norm(hone.RmsNorm),
    "layernorm": _norm(hone.LayerNorm),
    "layernorm_residual": _norm(hone.LayerNorm),
    "rmsnorm_backward": _BACKWARD,
}

CASES = {
    "norms": table(
        "op rows hidden dtype",
        """
        rmsnorm 1 4096 bf16
        rmsnorm 4 4096 bf16
        rmsnorm 8 4096 bf16
        rmsnorm 128 4096 bf16
        rmsnorm 4096 4096 bf16
        rmsnorm 16384 4096 bf16
        rmsnorm 16384 8192 bf16
        rmsnorm 4096 16384 bf16
        rmsnorm 65536 1024 bf16
        rmsnorm_residual 1 4096 bf16
        rmsnorm_residual 4 4096 bf16
        rmsnorm_residual 8 4096 bf16
        rmsnorm_residual 128 4096 bf16
        rmsnorm_residual 4096 4096 bf16
        rmsnorm_residual 16384 4096 bf16
        rmsnorm_residual 16384 8192 bf16
        rmsnorm_residual 4096 16384 bf16
        rmsnorm_residual 65536 1024 bf16
        rmsnorm 4096 4096 fp32
        rmsnorm 3 4096 bf16
        rmsnorm 77 5120 bf16
        rmsnorm 333 3584 bf16
        rmsnorm 1000 4096 fp16
        rmsnorm 2048 4096 bf16
        rmsnorm 65536 128 bf16
        rmsnorm 16384 4097 bf16
        rmsnorm 512 8192 fp32
        rmsnorm_residual 17 5120 bf16
        rmsnorm_residual 1000 3584 bf16
        rmsnorm_residual 2048 4096 bf16
        rmsnorm_residual 333 18944 bf16
        layernorm 1 4096 bf16
        layernorm 128 4096 bf16
        layernorm 4096 4096 bf16
        layernorm 16384 1024 bf16
        layernorm_residual 8 4096 bf16
        layernorm_residual 4096 4096 bf16
        rmsnorm_backward 128 4096 bf16
        rmsnorm_backward 4096 4096 bf16
        rmsnorm_backward 16384 8192 bf16
        """,
    ),
}

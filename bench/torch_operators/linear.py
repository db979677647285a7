"""Linear layers: tokens, out, in. The feed-forward network of a layer: tokens, hidden, intermediate; gated by
SiLU without biases (ffn_swiglu), or GELU with them (ffn_gelu).
"""

from __future__ import annotations

from typing import Callable, Dict, List, Tuple

from torch import Tensor
from torch.nn import functional

import hone
from torch_cases import (
    Call,
    Case,
    Family,
    Input,
    Inputs,
    compiled,
    dtype_of,
    normal,
    table,
    weight,
    wide,
)
from torch_hone import Ours, Problem


def _linear_inputs(case: Case) -> Dict[str, Input]:
    dtype = dtype_of(case)
    x = normal(case["tokens"], case["in"], dtype=dtype)
    return {"x": x, "w": weight(case["out"], case["in"], dtype)}


def _linear_function(inputs: Inputs) -> Tensor:
    return functional.linear(inputs["x"], inputs["w"])


def _linear_reference(case: Case, inputs: Inputs) -> Tuple[Tensor, ...]:
    return (_linear_function(wide(case, inputs)),)


def _linear_work(case: Case) -> Tuple[int, int]:
    tokens, out, columns = case["tokens"], case["out"], case["in"]
    elements = out * columns + tokens * (out + columns)
    return elements * dtype_of(case).itemsize, 2 * tokens * out * columns


# The network.


def _ffn_inputs(case: Case) -> Dict[str, Input]:
    dtype, hidden, intermediate = dtype_of(case), case["hidden"], case["intermediate"]
    inputs = {"x": normal(case["tokens"], hidden, dtype=dtype), "down": weight(hidden, intermediate, dtype)}
    if case["op"] == "ffn_gelu":
        inputs["up"] = weight(intermediate, hidden, dtype)
        inputs["up_bias"] = normal(intermediate, dtype=dtype)
        inputs["down_bias"] = normal(hidden, dtype=dtype)
        return inputs
    # Gate and up are once in memory, for those who read them at once.
    inputs["gate_up"] = weight(2 * intermediate, hidden, dtype)
    inputs["gate"] = Input((intermediate, hidden), dtype, lambda t: t["gate_up"][:intermediate])
    inputs["up"] = Input((intermediate, hidden), dtype, lambda t: t["gate_up"][intermediate:])
    return inputs


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


def _ffn_problems(case: Case) -> List[Problem]:
    """The two halves."""
    gated, hidden, intermediate = case["op"] == "ffn_swiglu", case["hidden"], case["intermediate"]
    common = {"dtype": case.get("dtype", "bf16"), "bias": not gated}
    first = {**common, "activation": _activation(case), "gated": gated, "in": hidden, "out": intermediate}
    return [("linear", first), ("linear", {**common, "in": intermediate, "out": hidden})]


def _activation(case: Case) -> str:
    return "silu" if case["op"] == "ffn_swiglu" else "gelu_tanh"


_LINEAR = Family(
    inputs=_linear_inputs,
    out=lambda case: (case["tokens"], case["out"]),
    peers=lambda _: {"cuBLAS": _linear_function},
    hone=Ours(hone.Linear, names=lambda _: {"weight": "w"}),
    reference=_linear_reference,
    work=_linear_work,
)
_FFN = Family(
    inputs=_ffn_inputs,
    out=lambda case: (case["tokens"], case["hidden"]),
    peers=_ffn_peers,
    hone=Ours(
        hone.FusedFfn, fields=lambda case: {"activation": _activation(case)}, problems=_ffn_problems
    ),
    reference=_ffn_reference,
    work=_ffn_work,
)
FAMILIES = {"linear": _LINEAR, "ffn_swiglu": _FFN, "ffn_gelu": _FFN}

CASES = {
    "linear": table(
        "op tokens out in dtype",
        """
        linear 1 4096 4096 bf16
        linear 16 4096 4096 bf16
        linear 64 4096 4096 bf16
        linear 128 4096 4096 bf16
        linear 512 4096 4096 bf16
        linear 2048 4096 4096 bf16
        linear 1 28672 4096 bf16
        linear 16 28672 4096 bf16
        linear 64 28672 4096 bf16
        linear 128 28672 4096 bf16
        linear 512 28672 4096 bf16
        linear 2048 28672 4096 bf16
        linear 1 4096 14336 bf16
        linear 16 4096 14336 bf16
        linear 64 4096 14336 bf16
        linear 128 4096 14336 bf16
        linear 512 4096 14336 bf16
        linear 2048 4096 14336 bf16
        linear 1 57344 8192 bf16
        linear 16 57344 8192 bf16
        linear 128 57344 8192 bf16
        linear 2048 57344 8192 bf16
        linear 2048 4096 4096 fp32
        linear 3 4096 4096 bf16
        linear 17 28672 4096 bf16
        linear 77 5120 5120 bf16
        linear 333 4096 14336 bf16
        linear 1000 4096 4096 bf16
        linear 1 3584 18944 bf16
        linear 3 18944 3584 bf16
        linear 333 18944 3584 bf16
        linear 17 5120 13824 bf16
        linear 1000 13824 5120 bf16
        linear 1 4096 4096 fp16
        linear 512 4096 4096 fp16
        linear 128 4096 4096 fp32
        """,
    ),
    "ffn": table(
        "op tokens hidden intermediate dtype",
        """
        ffn_swiglu 1 4096 14336 bf16
        ffn_swiglu 4 4096 14336 bf16
        ffn_swiglu 16 4096 14336 bf16
        ffn_swiglu 64 4096 14336 bf16
        ffn_swiglu 128 4096 14336 bf16
        ffn_swiglu 512 4096 14336 bf16
        ffn_swiglu 2048 4096 14336 bf16
        ffn_swiglu 8192 4096 14336 bf16
        ffn_swiglu 1 4096 11008 bf16
        ffn_swiglu 16 4096 11008 bf16
        ffn_swiglu 512 4096 11008 bf16
        ffn_swiglu 1024 4096 11008 bf16
        ffn_swiglu 2048 4096 11008 bf16
        ffn_swiglu 4096 4096 11008 bf16
        ffn_swiglu 1 8192 28672 bf16
        ffn_swiglu 16 8192 28672 bf16
        ffn_swiglu 128 8192 28672 bf16
        ffn_swiglu 2048 8192 28672 bf16
        ffn_gelu 128 4096 11008 fp16
        ffn_gelu 512 4096 11008 fp16
        ffn_gelu 1024 4096 11008 fp16
        ffn_gelu 2048 4096 11008 fp16
        ffn_gelu 4096 4096 11008 fp16
        ffn_gelu 512 4096 11008 fp32
        ffn_gelu 1024 4096 11008 fp32
        ffn_gelu 2048 4096 11008 fp32
        ffn_gelu 4096 4096 11008 fp32
        ffn_swiglu 3 4096 14336 bf16
        ffn_swiglu 17 4096 14336 bf16
        ffn_swiglu 77 4096 14336 bf16
        ffn_swiglu 1000 4096 14336 bf16
        ffn_swiglu 1 3584 18944 bf16
        ffn_swiglu 333 3584 18944 bf16
        ffn_swiglu 3 5120 13824 bf16
        ffn_swiglu 77 5120 13824 bf16
        ffn_swiglu 1000 5120 13824 bf16
        ffn_swiglu 16 4096 14336 fp16
        ffn_gelu 1 4096 11008 fp16
        ffn_gelu 77 5120 13824 fp16
        ffn_gelu 1000 4096 11008 bf16
        """,
    ),
}

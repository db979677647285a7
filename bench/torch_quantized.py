"""Linear layers with quantized weights in bench/compare_torch.py: tokens, out, in; with 4 bits also `group`. The
gated feed-forward network with 4 bits: tokens, hidden, intermediate, group.

Weights and, for linear_w8a8 and linear_fp8, x come as plain codes with scales; every peer packs them as it
needs them, once, into the input set. The unquantized product by cuBLAS is what a user would run otherwise.
"""

from __future__ import annotations

from typing import Dict, Tuple

import torch
from torch import Tensor
from torch.nn import functional

from torch_cases import Call, Case, Family, Inputs, dtype_of, randn


def _inputs(case: Case) -> Inputs:
    rows, columns, dtype = case["out"], case["in"], dtype_of(case)
    weight = randn(rows, columns, dtype=dtype) * columns**-0.5
    inputs = {"x": randn(case["tokens"], columns, dtype=dtype), "w": weight}
    if case["op"] == "linear_w4a16":
        return {**inputs, **_four_bit(weight, case["group"])}
    inputs["codes"], inputs["scales"] = _eight_bit(case, weight)
    if case["op"] != "linear_w8a16":
        inputs["x_codes"], inputs["x_scales"] = _eight_bit(case, inputs["x"])
    return inputs


def _four_bit(weight: Tensor, group: int) -> Inputs:
    """codes uint8 [out, in], 8 more than their values; scales [out, in / group]."""
    parts = weight.float().unflatten(1, (-1, group))
    scales = parts.abs().amax(-1, keepdim=True) / 7
    codes = (torch.round(parts / scales).clamp_(-8, 7) + 8).to(torch.uint8)
    return {"codes": codes.flatten(1), "scales": scales.squeeze(-1).to(weight.dtype)}


def _eight_bit(case: Case, values: Tensor) -> Tuple[Tensor, Tensor]:
    """Codes [rows, in] of int8 or E4M3; scales [rows], float32."""
    largest = 448 if case["op"] == "linear_fp8" else 127
    scales = values.float().abs().amax(-1) / largest
    codes = values.float() / scales[:, None]
    if case["op"] == "linear_fp8":
        return codes.to(torch.float8_e4m3fn), scales
    return torch.round(codes).to(torch.int8), scales


def _peers(case: Case) -> Dict[str, Call]:
    found: Dict[str, Call] = {"cuBLAS": lambda t: functional.linear(t["x"], t["w"])}
    if case["op"] == "linear_w4a16":
        found["torch tinygemm"] = lambda t: _tinygemm(t, case["group"])
    if case["op"] == "linear_w8a8" and case["tokens"] > 16:  # as many rows as torch._int_mm needs
        found["torch _int_mm"] = _int_mm
    if case["op"] == "linear_fp8":
        found["torch _scaled_mm"] = _scaled_mm
    return found


def _tinygemm(t: Inputs, group: int) -> Tensor:
    if "tinygemm" not in t:
        pairs = (t["codes"][:, ::2] << 4 | t["codes"][:, 1::2]).contiguous()
        t["tinygemm"] = torch.ops.aten._convert_weight_to_int4pack(pairs, 8)
        scales = t["scales"].T
        t["tinygemm_scales"] = torch.stack([scales, torch.zeros_like(scales)], -1).contiguous()
    return torch.ops.aten._weight_int4pack_mm(t["x"], t["tinygemm"], group, t["tinygemm_scales"])


def _int_mm(t: Inputs) -> Tensor:
    sums = torch._int_mm(t["x_codes"], t["codes"].T).float()
    return (sums * t["x_scales"][:, None] * t["scales"]).to(t["x"].dtype)


def _scaled_mm(t: Inputs) -> Tensor:
    return torch._scaled_mm(
        t["x_codes"], t["codes"].T, t["x_scales"][:, None], t["scales"][None], out_dtype=t["x"].dtype
    )


def _of_four_bits(codes: Tensor, scales: Tensor) -> Tensor:
    parts = (codes.float() - 8).unflatten(1, (scales.shape[1], -1))
    return (parts * scales.float()[..., None]).flatten(1)


def _reference(case: Case, t: Inputs) -> Tuple[Tensor, ...]:
    """On the numbers that the codes stand for."""
    if case["op"] == "linear_w4a16":
        weight = _of_four_bits(t["codes"], t["scales"])
    else:
        weight = t["codes"].float() * t["scales"][:, None]
    x = t["x_codes"].float() * t["x_scales"][:, None] if "x_codes" in t else t["x"].float()
    return (x @ weight.T,)


def _work(case: Case) -> Tuple[int, int]:
    tokens, rows, columns = case["tokens"], case["out"], case["in"]
    bits = 4 + 16 / case["group"] if case["op"] == "linear_w4a16" else 8
    x_bytes = 1 if case["op"] in ("linear_w8a8", "linear_fp8") else dtype_of(case).itemsize
    moved = rows * columns * bits / 8 + tokens * (columns * x_bytes + rows * dtype_of(case).itemsize)
    return int(moved), 2 * tokens * rows * columns


# The network: gate, up and down, each with codes and scales.
_MATRICES = ("gate", "up", "down")


def _ffn_inputs(case: Case) -> Inputs:
    hidden, intermediate, dtype = case["hidden"], case["intermediate"], dtype_of(case)
    inputs = {"x": randn(case["tokens"], hidden, dtype=dtype)}
    for name in _MATRICES:
        rows, columns = (hidden, intermediate) if name == "down" else (intermediate, hidden)
        inputs[name] = randn(rows, columns, dtype=dtype) * columns**-0.5
        for part, tensor in _four_bit(inputs[name], case["group"]).items():
            inputs[f"{name}_{part}"] = tensor
    return inputs


def _swiglu(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    between = functional.silu(functional.linear(x, gate)) * functional.linear(x, up)
    return functional.linear(between, down)


def _ffn_reference(case: Case, t: Inputs) -> Tuple[Tensor, ...]:
    weights = (_of_four_bits(t[f"{name}_codes"], t[f"{name}_scales"]) for name in _MATRICES)
    return (_swiglu(t["x"].float(), *weights),)


def _ffn_work(case: Case) -> Tuple[int, int]:
    elements = 3 * case["hidden"] * case["intermediate"]
    moved = elements * (4 + 16 / case["group"]) / 8
    moved += 2 * case["tokens"] * case["hidden"] * dtype_of(case).itemsize
    return int(moved), 2 * case["tokens"] * elements


_LINEAR = Family(_inputs, _peers, _reference, _work)
_FFN = Family(
    _ffn_inputs,
    lambda _: {"cuBLAS": lambda t: _swiglu(t["x"], *(t[name] for name in _MATRICES))},
    _ffn_reference,
    _ffn_work,
)
FAMILIES: Dict[str, Family] = {
    **{f"linear_{name}": _LINEAR for name in ("w4a16", "w8a16", "w8a8", "fp8")},
    "ffn_swiglu_w4a16": _FFN,
}

"""Linear layers with quantized weights: tokens, out, in; with 4 bits also `group`. The
gated feed-forward network with 4 bits: tokens, hidden, intermediate, group.

Weights and, for linear_w8a8 and linear_fp8, x come as plain codes with scales; every peer packs them as it
needs them, once, into the input set. The unquantized product by cuBLAS is what a user would run otherwise.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import torch
from torch import Tensor
from torch.nn import functional

import hone
from hone._operators.stored import StoredWeight
from hone._weights import packing
from torch_cases import (
    Call,
    Case,
    Family,
    Input,
    Inputs,
    dtype_of,
    normal,
    table,
    weight,
)
from torch_hone import Ours, Problem


def _inputs(case: Case) -> Dict[str, Input]:
    rows, columns, dtype = case["out"], case["in"], dtype_of(case)
    inputs = {"x": normal(case["tokens"], columns, dtype=dtype), "w": weight(rows, columns, dtype)}
    if case["op"] == "linear_w4a16":
        return {**inputs, **_four_bits("w", "", rows, columns, _group(case), dtype)}
    inputs.update(_eight_bits(case, "w", "", rows, columns))
    if case["op"] != "linear_w8a16":
        inputs.update(_eight_bits(case, "x", "x_", case["tokens"], columns))
    return inputs


def _group(case: Case) -> int:
    return case.get("group", 128) if "w4a16" in case["op"] else 0


def _four_bits(
    of: str, lead: str, rows: int, columns: int, group: int, dtype: torch.dtype
) -> Dict[str, Input]:
    """<lead>codes uint8 [rows, columns], 8 more than their values, and <lead>scales [rows, columns / group],
    of the tensor `of`."""

    def groups(t: Inputs) -> Tuple[Tensor, Tensor]:
        parts = t[of].float().unflatten(1, (-1, group))
        return parts, parts.abs().amax(-1, keepdim=True) / 7

    def codes(t: Inputs) -> Tensor:
        parts, scales = groups(t)
        return (torch.round(parts / scales).clamp_(-8, 7) + 8).to(torch.uint8).flatten(1)

    def scales(t: Inputs) -> Tensor:
        return groups(t)[1].squeeze(-1).to(dtype)

    return {
        f"{lead}codes": Input((rows, columns), torch.uint8, codes),
        f"{lead}scales": Input((rows, columns // group), dtype, scales),
    }


def _eight_bits(case: Case, of: str, lead: str, rows: int, columns: int) -> Dict[str, Input]:
    """<lead>codes [rows, columns] of int8 or E4M3, and <lead>scales [rows], float32, of the tensor `of`."""
    fp8 = case["op"] == "linear_fp8"
    largest, dtype = (448, torch.float8_e4m3fn) if fp8 else (127, torch.int8)

    def scales(t: Inputs) -> Tensor:
        return t[of].float().abs().amax(-1) / largest

    def codes(t: Inputs) -> Tensor:
        found = t[of].float() / t[f"{lead}scales"][:, None]
        return (found if fp8 else torch.round(found)).to(dtype)

    return {
        f"{lead}scales": Input((rows,), torch.float32, scales),
        f"{lead}codes": Input((rows, columns), dtype, codes),
    }


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


def _matrices(case: Case) -> Dict[str, Tuple[int, int]]:
    """Rows and columns."""
    hidden, intermediate = case["hidden"], case["intermediate"]
    up = (intermediate, hidden)
    return {"gate": up, "up": up, "down": (hidden, intermediate)}


def _ffn_inputs(case: Case) -> Dict[str, Input]:
    dtype = dtype_of(case)
    inputs = {"x": normal(case["tokens"], case["hidden"], dtype=dtype)}
    for name, (rows, columns) in _matrices(case).items():
        inputs[name] = weight(rows, columns, dtype)
        inputs.update(_four_bits(name, f"{name}_", rows, columns, _group(case), dtype))
    return inputs


def _swiglu(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    between = functional.silu(functional.linear(x, gate)) * functional.linear(x, up)
    return functional.linear(between, down)


def _ffn_reference(case: Case, t: Inputs) -> Tuple[Tensor, ...]:
    weights = (_of_four_bits(t[f"{name}_codes"], t[f"{name}_scales"]) for name in _matrices(case))
    return (_swiglu(t["x"].float(), *weights),)


def _ffn_work(case: Case) -> Tuple[int, int]:
    elements = 3 * case["hidden"] * case["intermediate"]
    moved = elements * (4 + 16 / case["group"]) / 8
    moved += 2 * case["tokens"] * case["hidden"] * dtype_of(case).itemsize
    return int(moved), 2 * case["tokens"] * elements


# Hone's way: weights of w4a16 and w8a16 in blocks.


def _format(case: Case) -> str:
    return case["op"].removeprefix("linear_")


def _fields(case: Case) -> Dict[str, Any]:
    return {"format": _format(case), "group": _group(case)}


def _packed(lead: str, stored: StoredWeight, dtype: torch.dtype) -> Dict[str, Input]:
    """The codes and scales of a weight of 4 bits, hone_<lead>packed and hone_<lead>packed_scales."""

    def scales(t: Inputs) -> Tensor:
        return packing.pack_scales(t[f"{lead}scales"], stored.scales_shape[1])

    return {
        f"hone_{lead}packed": Input(
            stored.codes_shape, torch.uint8, lambda t: packing.pack_w4(t[f"{lead}codes"])
        ),
        f"hone_{lead}packed_scales": Input(stored.scales_shape, dtype, scales),
    }


def _kept(case: Case) -> Dict[str, Input]:
    stored = StoredWeight(case["out"], case["in"], _format(case), _group(case))
    if _format(case) == "w4a16":
        return _packed("", stored, dtype_of(case))
    if _format(case) == "w8a16":
        return {"hone_packed": Input(stored.codes_shape, torch.uint8, lambda t: packing.pack_w8(t["codes"]))}
    return {}


def _names(case: Case) -> Dict[str, str]:
    if _format(case) == "w4a16":
        return {"weight": "hone_packed", "scales": "hone_packed_scales"}
    return {"weight": "hone_packed"} if _format(case) == "w8a16" else {"x": "x_codes", "weight": "codes"}


def _ffn_kept(case: Case) -> Dict[str, Input]:
    kept: Dict[str, Input] = {}
    for name, shape in _matrices(case).items():
        kept.update(_packed(f"{name}_", StoredWeight(*shape, "w4a16", _group(case)), dtype_of(case)))
    return kept


def _ffn_problems(case: Case) -> List[Problem]:
    """The two halves."""
    hidden, intermediate = case["hidden"], case["intermediate"]
    common = {"dtype": case.get("dtype", "bf16"), "format": "w4a16", "group": _group(case)}
    first = {**common, "activation": "silu", "gated": True, "in": hidden, "out": intermediate}
    return [
        ("quantized_linear", first),
        ("quantized_linear", {**common, "in": intermediate, "out": hidden}),
    ]


_LINEAR = Family(
    inputs=_inputs,
    out=lambda case: (case["tokens"], case["out"]),
    peers=_peers,
    hone=Ours(hone.QuantizedLinear, fields=_fields, names=_names, kept=_kept),
    reference=_reference,
    work=_work,
)
_FFN = Family(
    inputs=_ffn_inputs,
    out=lambda case: (case["tokens"], case["hidden"]),
    peers=lambda case: {"cuBLAS": lambda t: _swiglu(t["x"], *(t[name] for name in _matrices(case)))},
    hone=Ours(
        hone.QuantizedFfn,
        fields=lambda case: {"group": _group(case)},
        names=lambda case: {
            name + part: f"hone_{name}_packed{part}" for name in _matrices(case) for part in ("", "_scales")
        },
        kept=_ffn_kept,
        problems=_ffn_problems,
    ),
    reference=_ffn_reference,
    work=_ffn_work,
)
FAMILIES = {
    **{f"linear_{name}": _LINEAR for name in ("w4a16", "w8a16", "w8a8", "fp8")},
    "ffn_swiglu_w4a16": _FFN,
}

_SIZES = table(
    "tokens out in dtype",
    """
    1 4096 4096 bf16
    16 4096 4096 bf16
    64 4096 4096 bf16
    128 4096 4096 bf16
    512 4096 4096 bf16
    2048 4096 4096 bf16
    1 28672 4096 bf16
    16 28672 4096 bf16
    64 28672 4096 bf16
    128 28672 4096 bf16
    512 28672 4096 bf16
    2048 28672 4096 bf16
    1 4096 14336 bf16
    16 4096 14336 bf16
    64 4096 14336 bf16
    128 4096 14336 bf16
    512 4096 14336 bf16
    2048 4096 14336 bf16
    1 57344 8192 bf16
    16 57344 8192 bf16
    128 57344 8192 bf16
    2048 57344 8192 bf16
    """,
)
_FORMATS = ("w4a16", "w8a16", "w8a8", "fp8")
_LAYERS = [{"op": f"linear_{format}", **size} for format in _FORMATS for size in _SIZES]
_NETWORKS = table(
    "op tokens hidden intermediate dtype",
    """
    ffn_swiglu_w4a16 1 4096 14336 bf16
    ffn_swiglu_w4a16 16 4096 14336 bf16
    ffn_swiglu_w4a16 128 4096 14336 bf16
    ffn_swiglu_w4a16 2048 4096 14336 bf16
    """,
)
CASES = {
    "quantized": [
        {**case, "group": 128} if case["op"].endswith("w4a16") else case for case in _LAYERS + _NETWORKS
    ],
}

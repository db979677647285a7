"""Hone as a peer of PyTorch's kernels, in one process: its prepared operators, on the current stream.

`peers(op, case, inputs)` returns callables by name; each takes one input set (a dict of tensors) and returns
the output tensors. What a callable makes once for an input set it keeps there, under names that begin with
`hone_`: other peers keep theirs beside it. bench/compare_torch.py calls it, and any program that takes such a plugin. A new family is
one function in PEERS. Winners come from the usual cache; a case without an exact one is named on stderr, with
the command that would tune it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))  # where hone is not installed

import torch  # noqa: E402

import hone  # noqa: E402
from hone._weights import packing  # noqa: E402
from hone._operators.description import MOST_DECODED  # noqa: E402

Call = Callable[[Dict[str, Any]], Any]
Problems = List[Tuple[str, Dict[str, Any]]]

EPSILON = 1e-5


def peers(op: str, case: Dict[str, Any], inputs: Dict[str, Any]) -> Dict[str, Call]:
    """{"hone": callable} for an operator that Hone has, else {}. Prepares at the first call."""
    make = PEERS.get(op)
    if make is None:
        return {}
    made: List[Call] = []

    def call(inputs: Dict[str, Any]) -> Any:
        if not made:
            made.append(make(case, inputs))
        return made[0](inputs)

    return {"hone": call}


def _prepare(description: Any, sizes: Any) -> Any:
    """The operator; says when a kernel of it for a call of so many rows, or these sizes, is not a winner of
    this very problem."""
    told = hone.explain(description, sizes)
    for half in told.get("parts", [told]):
        if half["origin"] != "exact":
            hint = half.get("tune_command") or "no command would tune it"
            print(f"{description}, {sizes}: {half['origin']}, not exact; {hint}", file=sys.stderr)
    return hone.prepare(description)


def _norm(case: Dict[str, Any], _: Any) -> Call:
    kind = hone.LayerNorm if case["op"].startswith("layernorm") else hone.RmsNorm
    norm = _prepare(
        kind(
            case["hidden"],
            max_rows=case["rows"],
            dtype=case.get("dtype", "bf16"),
            residual=case["op"].endswith("residual"),
        ),
        case["rows"],
    )
    return lambda t: norm(t["x"], t["weight"], t.get("residual"), t.get("bias"), epsilon=EPSILON)


def _norm_backward(case: Dict[str, Any], _: Any) -> Call:
    backward = _prepare(
        hone.RmsNormBackward(case["hidden"], max_rows=case["rows"], dtype=case.get("dtype", "bf16")),
        case["rows"],
    )
    return lambda t: backward(t["dy"], t["x"], t["weight"], epsilon=EPSILON)


def _workspace(operator: Any, likeness: Any, *sizes: int) -> Any:
    """Taken once: calls that follow one another on a stream share it, those of a captured graph as well."""
    size = operator.workspace_bytes(*sizes)
    return likeness.new_empty((size,), dtype=torch.uint8) if size else None


def _linear(case: Dict[str, Any], inputs: Dict[str, Any]) -> Call:
    tokens = case["tokens"]
    description = hone.Linear(
        case["in"], case["out"], max_tokens=tokens, dtype=case.get("dtype", "bf16")
    )
    linear = _prepare(description, tokens)
    workspace = _workspace(linear, inputs["x"], tokens)
    return lambda t: linear(t["x"], t["w"], workspace=workspace)


def _ffn(case: Dict[str, Any], inputs: Dict[str, Any]) -> Call:
    gated, tokens = case["op"] == "ffn_swiglu", case["tokens"]
    description = hone.FusedFfn(
        case["hidden"],
        case["intermediate"],
        max_tokens=tokens,
        dtype=case.get("dtype", "bf16"),
        activation="silu" if gated else "gelu_tanh",
        gated=gated,
        bias=not gated,
    )
    ffn = _prepare(description, tokens)
    workspace = _workspace(ffn, inputs["x"], tokens)
    return lambda t: ffn(
        t["x"], t.get("gate"), t["up"], t["down"], t.get("up_bias"), t.get("down_bias"), workspace=workspace
    )


def _four_bits(t: Dict[str, Any], name: str = "") -> Tuple[Any, Any]:
    """Packed codes and scales of a weight of 4 bits, made once for an input set."""
    codes, packed_scales = f"hone_{name}packed", f"hone_{name}packed_scales"
    if codes not in t:
        scales = t[f"{name}scales"]
        t[codes] = packing.pack_w4(t[f"{name}codes"])
        t[packed_scales] = packing.pack_scales(scales, scales.shape[1])
    return t[codes], t[packed_scales]


def _eight_bits(t: Dict[str, Any]) -> Any:
    if "hone_packed" not in t:
        t["hone_packed"] = packing.pack_w8(t["codes"])
    return t["hone_packed"]


def _group(case: Dict[str, Any]) -> int:
    return case.get("group", 128) if "w4a16" in case["op"] else 0


def _quantized_linear(case: Dict[str, Any], inputs: Dict[str, Any]) -> Call:
    tokens, format = case["tokens"], case["op"].removeprefix("linear_")
    linear = _prepare(
        hone.QuantizedLinear(
            case["in"],
            case["out"],
            format=format,
            group=_group(case),
            max_tokens=tokens,
            dtype=case.get("dtype", "bf16"),
            quantized_x="x_codes" in inputs,
        ),
        tokens,
    )
    workspace = _workspace(linear, inputs["x"], tokens)
    if format == "w4a16":
        return lambda t: linear(t["x"], *_four_bits(t), workspace=workspace)
    if format == "w8a16":
        return lambda t: linear(t["x"], _eight_bits(t), t["scales"], workspace=workspace)
    return lambda t: linear(
        t["x_codes"], t["codes"], t["scales"], x_scales=t["x_scales"], workspace=workspace
    )


def _quantized_ffn(case: Dict[str, Any], inputs: Dict[str, Any]) -> Call:
    tokens = case["tokens"]
    ffn = _prepare(
        hone.QuantizedFfn(
            case["hidden"],
            case["intermediate"],
            group=_group(case),
            max_tokens=tokens,
            dtype=case.get("dtype", "bf16"),
        ),
        tokens,
    )
    workspace = _workspace(ffn, inputs["x"], tokens)

    def call(t: Dict[str, Any]) -> Any:
        (gate, gate_scales), (up, up_scales), (down, down_scales) = (
            _four_bits(t, f"{name}_") for name in ("gate", "up", "down")
        )
        return ffn(
            t["x"], gate=gate, gate_scales=gate_scales, up=up, up_scales=up_scales, down=down,
            down_scales=down_scales, workspace=workspace,
        )  # fmt: skip

    return call


def _attention(case: Dict[str, Any], inputs: Dict[str, Any]) -> Call:
    """q, and k and v that are not in pages, are [batch, heads, tokens, head_dim]."""
    sizes = case["batch"], case["q_len"], case["kv_len"]
    description = hone.Attention(
        case["heads"],
        case["kv_heads"],
        case["head_dim"],
        *sizes,
        dtype=case.get("dtype", "bf16"),
        causal=case["causal"],
        page_size=case.get("page_size", 0),
    )
    attention = _prepare(description, sizes)
    workspace = _workspace(attention, inputs["q"], *sizes)
    if "page_size" in case:
        return lambda t: attention(
            t["q"].transpose(1, 2),
            t["k_pages"],
            t["v_pages"],
            page_table=t["page_table"],
            workspace=workspace,
        ).transpose(1, 2)
    return lambda t: attention(
        *(t[name].transpose(1, 2) for name in ("q", "k", "v")), workspace=workspace
    ).transpose(1, 2)


def _embedding(case: Dict[str, Any], _: Any) -> Call:
    description = hone.Embedding(
        case["hidden"],
        max_tokens=case["tokens"],
        dtype=case.get("dtype", "bf16"),
        index="int64",
        positions="position_rows" in case,
    )
    embedding = _prepare(description, case["tokens"])
    return lambda t: embedding(t["ids"], t["table"], t.get("position_ids"), t.get("position_table"))


def _sample(case: Dict[str, Any], _: Any) -> Call:
    description = hone.Sample(
        case["vocabulary"],
        max_rows=case["rows"],
        dtype=case.get("dtype", "bf16"),
        filters=case["op"] == "sample_filters",
    )
    sample = _prepare(description, case["rows"])
    names = ("logits", "temperature", "seed", "counter", "top_k", "top_p", "min_p")
    return lambda t: sample(*(t.get(name) for name in names))


# What makes a callable from a case and one of its input sets.
PEERS: Dict[str, Callable[[Dict[str, Any], Dict[str, Any]], Call]] = {
    "rmsnorm": _norm,
    "rmsnorm_residual": _norm,
    "layernorm": _norm,
    "layernorm_residual": _norm,
    "rmsnorm_backward": _norm_backward,
    "linear": _linear,
    "ffn_swiglu": _ffn,
    "ffn_gelu": _ffn,
    **{f"linear_{format}": _quantized_linear for format in ("w4a16", "w8a16", "w8a8", "fp8")},
    "ffn_swiglu_w4a16": _quantized_ffn,
    "attention": _attention,
    "attention_paged": _attention,
    **{op: _embedding for op in ("embedding", "embedding_positions")},
    **{op: _sample for op in ("sample", "sample_greedy", "sample_filters")},
}


def tune(cases: List[Dict[str, Any]]) -> None:
    """Tunes what the cases call, in child processes: before anything is prepared here."""
    found: Dict[tuple, set] = {}
    for case in cases:
        for family, fields in TUNE_FIELDS.get(case["op"], lambda _: [])(case):
            rows = case.get("rows", case.get("tokens"))  # None: the fields have all sizes
            found.setdefault((family, tuple(fields.items())), set()).update([] if rows is None else [rows])
    for (family, fields), rows in found.items():
        hone.tune(op=family, fields=dict(fields), tokens=sorted(rows) or None)


def _norm_fields(case: Dict[str, Any]) -> Problems:
    family = case["op"].replace("_residual", "")
    fields = {"dtype": case.get("dtype", "bf16"), "hidden": case["hidden"]}
    return [(family, {**fields, "residual": case["op"].endswith("residual")})]


def _linear_fields(case: Dict[str, Any]) -> Problems:
    return [("linear", {"dtype": case.get("dtype", "bf16"), "in": case["in"], "out": case["out"]})]


def _ffn_fields(case: Dict[str, Any]) -> Problems:
    """The two halves."""
    gated, hidden, intermediate = case["op"] == "ffn_swiglu", case["hidden"], case["intermediate"]
    common = {"dtype": case.get("dtype", "bf16"), "bias": not gated}
    activation = "silu" if gated else "gelu_tanh"
    return [
        ("linear", {**common, "activation": activation, "gated": gated, "in": hidden, "out": intermediate}),
        ("linear", {**common, "in": intermediate, "out": hidden}),
    ]


def _quantized_fields(case: Dict[str, Any]) -> Problems:
    format = case["op"].removeprefix("linear_")
    sizes = {"group": _group(case), "in": case["in"], "out": case["out"]}
    given = {"format": format, "quantized_x": format in ("w8a8", "fp8")}
    return [("quantized_linear", {"dtype": case.get("dtype", "bf16"), **given, **sizes})]


def _quantized_ffn_fields(case: Dict[str, Any]) -> Problems:
    """The two halves."""
    hidden, intermediate = case["hidden"], case["intermediate"]
    common = {"dtype": case.get("dtype", "bf16"), "format": "w4a16", "group": _group(case)}
    first = {**common, "activation": "silu", "gated": True, "in": hidden, "out": intermediate}
    return [
        ("quantized_linear", first),
        ("quantized_linear", {**common, "in": intermediate, "out": hidden}),
    ]


def _attention_fields(case: Dict[str, Any]) -> Problems:
    """The problem of a cache where the queries are as few as its kernels take."""
    names = ("causal", "heads", "kv_heads", "head_dim", "batch", "kv_len", "q_len")
    fields = {"dtype": case.get("dtype", "bf16"), **{name: case[name] for name in names}}
    if case["q_len"] > MOST_DECODED:
        return [("attention_prefill", fields)]
    room = 1 << (case["q_len"] - 1).bit_length()
    return [("attention_decode", {**fields, "q_tokens": room, "page_size": case.get("page_size", 0)})]


def _embedding_fields(case: Dict[str, Any]) -> Problems:
    fields = {"dtype": case.get("dtype", "bf16"), "index": "int64", "hidden": case["hidden"]}
    return [("embedding", {**fields, "positions": "position_rows" in case})]


def _sample_fields(case: Dict[str, Any]) -> Problems:
    fields = {"dtype": case.get("dtype", "bf16"), "vocabulary": case["vocabulary"]}
    return [("sample", {**fields, "filters": case["op"] == "sample_filters"})]


# The problems of `hone tune --op` behind a case: each the family's name and its static fields.
TUNE_FIELDS: Dict[str, Callable[[Dict[str, Any]], Problems]] = {
    **{op: _norm_fields for op in PEERS if "norm" in op},
    "linear": _linear_fields,
    "ffn_swiglu": _ffn_fields,
    "ffn_gelu": _ffn_fields,
    **{f"linear_{format}": _quantized_fields for format in ("w4a16", "w8a16", "w8a8", "fp8")},
    "ffn_swiglu_w4a16": _quantized_ffn_fields,
    "attention": _attention_fields,
    "attention_paged": _attention_fields,
    **{op: _embedding_fields for op in ("embedding", "embedding_positions")},
    **{op: _sample_fields for op in ("sample", "sample_greedy", "sample_filters")},
}

"""PyTorch's operators: their schemas, and of which descriptions they are.

Generated from kernel_templates/*/operators.py by `./hone generate`.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Tuple

from .. import descriptions


class Declared(NamedTuple):
    """An operator of torch.ops.hone."""

    schema: str
    description: Any
    names: Tuple[str, ...]  # of its arguments, as prepared operators call them
    fixed: Dict[str, Any]  # fields of the description
    instead: str  # what has a gradient; empty: it has one
    says: str = ""  # what is PyTorch's affair alone

    @property
    def name(self) -> str:
        return self.schema.partition("(")[0]

    @property
    def arguments(self) -> Tuple[Tuple[str, str], ...]:
        """Their types and names."""
        pieces = (piece.split(" ") for piece in self._pieces())
        return tuple((kind, name.partition("=")[0]) for kind, name in pieces)

    @property
    def parameters(self) -> str:
        """Names and defaults, as those of a function in Python."""
        return ", ".join(piece.rpartition(" ")[2] for piece in self._pieces())

    def _pieces(self) -> List[str]:
        return self.schema.partition("(")[2].partition(") ->")[0].split(", ")


DECLARED = (
    Declared(
        "embedding(Tensor ids, Tensor table, float? scale=None, Tensor? position_ids=None, Tensor? "
        "position_table=None) -> Tensor",
        descriptions.Embedding,
        ("ids", "table", "scale", "position_ids", "position_table"),
        {},
        "train with torch.nn.functional.embedding",
    ),
    Declared(
        "expert_linear(Tensor x, Tensor starts, Tensor weight, Tensor? rows, int top_k, str activation, "
        "bool gather, Tensor? up=None, Tensor? bias=None, Tensor? up_bias=None, Tensor? "
        "routing_weights=None) -> Tensor",
        descriptions.ExpertLinear,
        (
            "x", "starts", "weight", "rows", "top_k", "activation", "gather", "up", "bias", "up_bias",
            "routing_weights",
        ),
        {},
        "train with PyTorch's own functions",
        "The operator combines where there are routing_weights, and is gated where there is an up.",
    ),
    Declared(
        "linear(Tensor x, Tensor weight, Tensor? bias, Tensor? residual, str activation, Tensor? "
        "norm_weight=None, float? epsilon=None) -> Tensor",
        descriptions.Linear,
        ("x", "weight", "bias", "residual", "activation", "norm_weight", "epsilon"),
        {},
        "train with torch.nn.functional.linear",
    ),
    Declared(
        "fused_ffn(Tensor x, Tensor? gate, Tensor up, Tensor down, Tensor? up_bias, Tensor? down_bias, "
        "Tensor? residual, str activation, Tensor? norm_weight=None, float? epsilon=None) -> Tensor",
        descriptions.FusedFfn,
        (
            "x", "gate", "up", "down", "up_bias", "down_bias", "residual", "activation", "norm_weight",
            "epsilon",
        ),
        {},
        "train with torch.nn.functional.linear",
    ),
    Declared(
        "rms_norm(Tensor x, Tensor weight, float epsilon) -> Tensor",
        descriptions.RmsNorm,
        ("x", "weight", "epsilon"),
        {},
        "",
    ),
    Declared(
        "rms_norm_residual(Tensor x, Tensor residual, Tensor weight, float epsilon) -> (Tensor, Tensor)",
        descriptions.RmsNorm,
        ("x", "residual", "weight", "epsilon"),
        {"residual": True},
        "",
    ),
    Declared(
        "rms_norm_offset(Tensor x, Tensor weight, float epsilon) -> Tensor",
        descriptions.RmsNorm,
        ("x", "weight", "epsilon"),
        {"unit_offset": True},
        "train with torch.nn.functional.rms_norm and 1 + weight",
        "The operator has unit_offset.",
    ),
    Declared(
        "rms_norm_residual_offset(Tensor x, Tensor residual, Tensor weight, float epsilon) -> (Tensor, "
        "Tensor)",
        descriptions.RmsNorm,
        ("x", "residual", "weight", "epsilon"),
        {"residual": True, "unit_offset": True},
        "train with torch.nn.functional.rms_norm and 1 + weight",
        "The operator has unit_offset.",
    ),
    Declared(
        "rms_norm_quantized(Tensor x, Tensor weight, float epsilon, str output) -> (Tensor, Tensor)",
        descriptions.RmsNorm,
        ("x", "weight", "epsilon", "output"),
        {},
        "train with hone::rms_norm",
    ),
    Declared(
        "rms_norm_residual_quantized(Tensor x, Tensor residual, Tensor weight, float epsilon, str "
        "output) -> (Tensor, Tensor, Tensor)",
        descriptions.RmsNorm,
        ("x", "residual", "weight", "epsilon", "output"),
        {"residual": True},
        "train with hone::rms_norm_residual",
    ),
    Declared(
        "layer_norm(Tensor x, Tensor weight, Tensor? bias, float epsilon) -> Tensor",
        descriptions.LayerNorm,
        ("x", "weight", "bias", "epsilon"),
        {},
        "train with torch.nn.functional.layer_norm",
    ),
    Declared(
        "layer_norm_residual(Tensor x, Tensor residual, Tensor weight, Tensor? bias, float epsilon) -> "
        "(Tensor, Tensor)",
        descriptions.LayerNorm,
        ("x", "residual", "weight", "bias", "epsilon"),
        {"residual": True},
        "train with torch.nn.functional.layer_norm",
    ),
    Declared(
        "quantized_expert_linear(Tensor x, Tensor starts, Tensor codes, Tensor scales, Tensor? rows, str "
        "format, int group, int out_features, int top_k, str activation, bool gather, Tensor? "
        "zeros=None, Tensor? up=None, Tensor? up_scales=None, Tensor? up_zeros=None, Tensor? bias=None, "
        "Tensor? up_bias=None, Tensor? routing_weights=None) -> Tensor",
        descriptions.QuantizedExpertLinear,
        (
            "x", "starts", "weight", "scales", "rows", "format", "group", "out_features", "top_k",
            "activation", "gather", "zeros", "up", "up_scales", "up_zeros", "bias", "up_bias",
            "routing_weights",
        ),
        {},
        "train with PyTorch's own functions",
        "The operator combines where there are routing_weights, and is gated where there is an up.",
    ),
    Declared(
        "quantized_linear(Tensor x, Tensor codes, Tensor scales, str format, int group, int "
        "out_features, str activation, Tensor? zeros=None, Tensor? bias=None, Tensor? residual=None, "
        "Tensor? x_scales=None, Tensor? norm_weight=None, float? epsilon=None, str? out_dtype=None) -> "
        "Tensor",
        descriptions.QuantizedLinear,
        (
            "x", "weight", "scales", "format", "group", "out_features", "activation", "zeros", "bias",
            "residual", "x_scales", "norm_weight", "epsilon", "dtype",
        ),
        {},
        "train with torch.nn.functional.linear",
    ),
    Declared(
        "quantized_ffn(Tensor x, Tensor? gate, Tensor? gate_scales, Tensor up, Tensor up_scales, Tensor "
        "down, Tensor down_scales, str format, int group, int intermediate, str activation, Tensor? "
        "gate_zeros=None, Tensor? up_zeros=None, Tensor? down_zeros=None, Tensor? up_bias=None, Tensor? "
        "down_bias=None, Tensor? residual=None, Tensor? x_scales=None, Tensor? norm_weight=None, float? "
        "epsilon=None, str? out_dtype=None) -> Tensor",
        descriptions.QuantizedFfn,
        (
            "x", "gate", "gate_scales", "up", "up_scales", "down", "down_scales", "format", "group",
            "intermediate", "activation", "gate_zeros", "up_zeros", "down_zeros", "up_bias", "down_bias",
            "residual", "x_scales", "norm_weight", "epsilon", "dtype",
        ),
        {},
        "train with torch.nn.functional.linear",
    ),
    Declared(
        "rms_norm_backward(Tensor dy, Tensor x, Tensor weight, Tensor? dsum, float epsilon) -> (Tensor, "
        "Tensor)",
        descriptions.RmsNormBackward,
        ("dy", "x", "weight", "dsum", "epsilon"),
        {},
        "second derivatives need torch.nn.functional.rms_norm",
    ),
    Declared(
        "rope_kv_append(Tensor q, Tensor k, Tensor v, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor? "
        "cos, Tensor? sin, str style, Tensor? kv_lengths=None, Tensor? page_table=None, Tensor? "
        "positions=None, Tensor? slots=None, Tensor? k_scale=None, Tensor? v_scale=None, Tensor? "
        "q_weight=None, Tensor? k_weight=None, float? epsilon=None) -> Tensor",
        descriptions.RopeKvAppend,
        (
            "q", "k", "v", "k_cache", "v_cache", "cos", "sin", "style", "kv_lengths", "page_table",
            "positions", "slots", "k_scale", "v_scale", "q_weight", "k_weight", "epsilon",
        ),
        {},
        "train with PyTorch's own functions",
    ),
    Declared(
        "sample(Tensor logits, Tensor temperature, Tensor seed, Tensor counter, Tensor? top_k=None, "
        "Tensor? top_p=None, Tensor? min_p=None) -> Tensor",
        descriptions.Sample,
        ("logits", "temperature", "seed", "counter", "top_k", "top_p", "min_p"),
        {},
        "train with torch.nn.functional.log_softmax",
        "PyTorch's generators have no part in it: a captured CUDA graph draws anew where a counter has "
        "changed in place.",
    ),
    Declared(
        "sample_log_probability(Tensor logits, Tensor temperature, Tensor seed, Tensor counter, Tensor? "
        "top_k=None, Tensor? top_p=None, Tensor? min_p=None) -> (Tensor, Tensor)",
        descriptions.Sample,
        ("logits", "temperature", "seed", "counter", "top_k", "top_p", "min_p"),
        {"log_probability": True},
        "train with torch.nn.functional.log_softmax",
        "As sample, with the log-probabilities of its tokens: those of log_softmax(logits).",
    ),
)

"""Mixtures of experts on CUDA tensors of PyTorch: prepared routings and layers of experts, by what is alike in calls. They are
no operators of torch.ops, and record no gradients. Called by _accelerated; may be called from any thread.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

from torch import Tensor

from .. import descriptions
from .prepared import DTYPES, FIRST_ROWS, PreparedBySize, on


class _Routing(NamedTuple):
    experts: int
    top_k: int
    dtype: str
    renormalize: bool


class _Layer(NamedTuple):
    in_features: int
    out_features: int
    experts: int
    top_k: int
    dtype: str
    activation: str
    gated: bool
    gather: bool
    combine: bool


def _describe_routing(kind: Any, most: Tuple[int, ...]) -> Any:
    return descriptions.ExpertRouting(**kind._asdict(), max_tokens=most[0])


def _describe_layer(kind: Any, most: Tuple[int, ...]) -> Any:
    return descriptions.ExpertLinear(**kind._asdict(), max_tokens=most[0])


_ROUTINGS = PreparedBySize("expert_routing", _describe_routing, (FIRST_ROWS,))
_LAYERS = PreparedBySize("expert_linear", _describe_layer, (FIRST_ROWS,))


def expert_routing(logits: Tensor, top_k: int, renormalize: bool) -> Tuple[Tensor, Tensor, Tensor]:
    """logits [tokens, experts] -> weights [tokens, top_k] of float32, starts [experts + 1] and rows [tokens, top_k] of int32,
    as hone.ExpertRouting has them."""
    kind = _Routing(logits.shape[1], top_k, DTYPES[logits.dtype], renormalize)
    device = logits.get_device()
    with on(device):
        found: Tuple[Tensor, Tensor, Tensor] = _ROUTINGS.for_call(kind, device, (logits.shape[0],))(logits)
        return found


def expert_linear(
    x: Tensor, starts: Tensor, weight: Tensor, rows: Tensor, routing_weights: Optional[Tensor] = None,
    up: Optional[Tensor] = None, activation: str = "none",
) -> Tensor:  # fmt: skip
    """Without routing_weights x [tokens, in] -> [tokens, top_k, out], rows gathered by expert; with them x [tokens, top_k, in]
    -> [tokens, out], each token's experts added up. weight and up [experts, out, in], as hone.ExpertLinear has them."""
    experts, out_features, in_features = weight.shape
    combine = routing_weights is not None
    kind = _Layer(
        in_features, out_features, experts, rows.shape[1], DTYPES[x.dtype], activation, up is not None, not combine, combine
    )
    device = x.get_device()
    with on(device):
        layer = _LAYERS.for_call(kind, device, (rows.shape[0],))
        found: Tensor = layer(x, starts, weight, rows, routing_weights, up)
        return found

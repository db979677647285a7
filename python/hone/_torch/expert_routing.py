"""Which experts tokens go to, on CUDA tensors of PyTorch, by prepared operators. It is no operator of torch.ops, and records no
gradients. Called by _accelerated; may be called from any thread.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Tuple

from torch import Tensor

from .. import descriptions
from .prepared import DTYPES, FIRST_ROWS, PreparedBySize, on


class _Routing(NamedTuple):
    experts: int
    top_k: int
    dtype: str
    renormalize: bool


def _describe(kind: Any, most: Tuple[int, ...]) -> Any:
    return descriptions.ExpertRouting(**kind._asdict(), max_tokens=most[0])


_ROUTINGS = PreparedBySize("expert_routing", _describe, (FIRST_ROWS,))


def expert_routing(logits: Tensor, top_k: int, renormalize: bool) -> Tuple[Tensor, Tensor, Tensor]:
    """logits [tokens, experts] -> weights [tokens, top_k] of float32, starts [experts + 1] and rows [tokens, top_k] of int32,
    as hone.ExpertRouting has them."""
    kind = _Routing(logits.shape[1], top_k, DTYPES[logits.dtype], renormalize)
    device = logits.get_device()
    with on(device):
        found: Tuple[Tensor, Tensor, Tensor] = _ROUTINGS.for_call(kind, device, (logits.shape[0],))(logits)
        return found

"""The attention of a transformer's layer as a module, for nn.py: what stands between its projections."""

from __future__ import annotations

import math
from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional

from .._torch.registered import calls
from .._torch.prepared import DTYPES


class Attention(torch.nn.Module):
    """softmax(scale * q k^T + mask) v for each head. It has no parameters.

    causal: a query sees no later key, the last query all; with a window, of those only the latest `window`,
    itself included (0: all). softcap: scores become softcap * tanh(score / softcap) (0: they do not).
    kv_heads (None: heads) divides heads: so many queries share a head of k and v. scale: None is
    head_dim^-0.5.
    """

    def __init__(
        self, heads: int, head_dim: int, kv_heads: Optional[int] = None, *, causal: bool = True,
        window: int = 0, softcap: float = 0.0, scale: Optional[float] = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.heads, self.head_dim = heads, head_dim
        self.kv_heads = heads if kv_heads is None else kv_heads
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads: {kv_heads}; allowed are divisors of heads, {heads}")
        if window and not causal:
            raise ValueError(f"window: {window}; allowed is 0 where causal is False")
        self.causal, self.window, self.softcap = causal, window, softcap
        self.scale = head_dim**-0.5 if scale is None else scale

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What the projections give, q [batch, tokens, heads * head_dim], k and v [batch, kv_tokens, kv_heads
        * head_dim], or parts of what one projection gives -> like q."""
        q, k, v = (tensor.unflatten(-1, (-1, self.head_dim)) for tensor in (q, k, v))
        if self._runs_natively(q, k, v):
            out = calls.attention_with_cache(
                q, k, v, None, None, self.causal, self.window, self.softcap, self.scale
            )
        else:
            out = self._formula(q, k, v)
        return out.flatten(-2)

    def extra_repr(self) -> str:
        options = {"window": self.window, "softcap": self.softcap}
        said = "".join(f", {name}={value}" for name, value in options.items() if value)
        return f"{self.heads}, {self.head_dim}, kv_heads={self.kv_heads}, causal={self.causal}{said}"

    def _runs_natively(self, *tensors: Tensor) -> bool:
        dtype = tensors[0].dtype
        return (
            dtype in DTYPES
            and all(tensor.is_cuda and tensor.dtype == dtype for tensor in tensors)
            and not torch.is_autocast_enabled()  # that is, for CUDA
            and not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors))
        )

    def _formula(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """PyTorch's, [batch, tokens, heads, head_dim] -> the same."""
        group = self.heads // self.kv_heads
        q, k, v = q.transpose(1, 2), *(t.transpose(1, 2).repeat_interleave(group, 1) for t in (k, v))
        if not self.softcap:
            out = functional.scaled_dot_product_attention(q, k, v, self._mask(q, k), scale=self.scale)
            return out.transpose(1, 2)
        scores = self.softcap * torch.tanh(q @ k.transpose(2, 3) * (self.scale / self.softcap))
        mask = self._mask(q, k)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2)

    def _mask(self, q: Tensor, k: Tensor) -> Optional[Tensor]:
        """[tokens, kv_tokens]: what a query sees; None: all."""
        if not self.causal:
            return None
        behind = k.shape[2] - q.shape[2]
        seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(behind)
        return seen.triu(behind - self.window + 1) if self.window else seen

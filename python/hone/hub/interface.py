"""Hone as an attention implementation of transformers, without the `kernels` package."""

from __future__ import annotations

import functools
from typing import Any, Optional, Set, Tuple

import torch
from torch import Tensor

from .._nn.common import needs_gradient
from .._torch.prepared import DTYPES
from .._torch.registered import calls
from .paged import paged_attention_forward


def register_attention(name: str = "hone") -> None:
    """From now on models take attn_implementation=`name`, and model.set_attn_implementation(name).

    Hone's kernels run where no mask is needed but causality: prompts of one length, and decoding behind them. Where
    transformers makes a mask (padding, a window that the cache exceeds, a static cache), where a gradient is needed
    and on the CPU, PyTorch's attention runs, as with "sdpa". Continuous batching, generate_batch(), takes
    `paged|name`, which is registered, too: over pages in steps of one token a sequence, else over packed sequences.
    Raises ImportError where there is no transformers.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    AttentionInterface.register(name, attention_forward)
    AttentionInterface.register(f"paged|{name}", paged_attention_forward)
    AttentionMaskInterface.register(name, ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])
    _names.add(name)
    _offer_pages()


_names: Set[str] = set()  # under which it is registered


def _offer_pages() -> None:
    """Lets continuous batching hand tables of pages to ours in steps of one token a sequence. transformers asks which
    implementations take them by a list of names, which is not public; where a version has another one, sequences stay
    packed."""
    try:
        from transformers.generation.continuous_batching import initialization
    except ImportError:
        return
    ensure: Any = getattr(initialization, "ensure_decode_fast_path_is_available", None)
    if ensure is None or hasattr(ensure, "hone_original"):
        return

    @functools.wraps(ensure)
    def ensure_decode_fast_path_is_available(config: Any, *others: Any, **named: Any) -> None:
        ours = str(getattr(config, "_attn_implementation", "")).rpartition("|")[2] in _names
        if not (ours and torch.cuda.is_available()):
            ensure(config, *others, **named)

    ensure_decode_fast_path_is_available.hone_original = ensure  # type: ignore[attr-defined]
    initialization.ensure_decode_fast_path_is_available = ensure_decode_fast_path_is_available


def attention_forward(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Optional[Tensor],
    dropout: float = 0.0, scaling: Optional[float] = None, softcap: Optional[float] = None,
    is_causal: Optional[bool] = None, **others: Any,
) -> Tuple[Tensor, None]:  # fmt: skip
    """query [batch, heads, q_len, head_dim], key and value [batch, kv_heads, kv_len, head_dim] -> [batch, q_len,
    heads, head_dim]. A mask of None means that a window, if there is one, leaves nothing out."""
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = bool(causal) and query.shape[2] > 1
    sinks = others.get("s_aux")
    refused = attention_mask is not None or dropout or needs_gradient(sinks) or others.get("output_attentions")
    if refused or (causal and query.shape[2] > key.shape[2]) or not _runs_natively(query, key, value):
        return _by_pytorch(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, softcap=softcap,
            is_causal=is_causal, **others,
        )  # fmt: skip
    if causal:  # as PyTorch's, aligned at the beginning: nobody sees later keys
        key, value = key[:, :, : query.shape[2]], value[:, :, : query.shape[2]]
    q, k, v = (tensor.transpose(1, 2) for tensor in (query, key, value))
    sinks = None if sinks is None else sinks.float().contiguous()
    return calls.attention_with_cache(q, k, v, None, None, causal, 0, softcap or 0.0, scaling, sinks=sinks), None


def _runs_natively(*tensors: Tensor) -> bool:
    first = tensors[0]
    return (
        first.dtype in DTYPES
        and all(tensor.is_cuda and tensor.dtype == first.dtype for tensor in tensors)
        and not torch.is_autocast_enabled()  # that is, for CUDA
        and not needs_gradient(*tensors)
    )


def _by_pytorch(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, **others: Any) -> Any:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if others.get("s_aux") is not None:  # which it would leave out without a word
        raise ValueError(
            "s_aux: PyTorch's attention, which takes this call of attn_implementation='hone', knows none; allowed is "
            "attn_implementation='eager'"
        )
    if others.get("softcap") or others.get("output_attentions"):
        return _by_formula(module, query, key, value, mask, **others)
    return sdpa_attention_forward(module, query, key, value, mask, **others)


def _by_formula(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], *, dropout: float,
    scaling: Optional[float], softcap: Optional[float], is_causal: Optional[bool], **_: Any,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """What scaled_dot_product_attention has not: a softcap, and the weights, which are returned beside the output."""
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if mask is None and causal and query.shape[2] > 1:  # aligned at the beginning, as PyTorch's
        mask = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    elif mask is not None:
        scores = scores + mask
    weights = scores.softmax(-1, dtype=torch.float32).to(query.dtype)
    weights = torch.nn.functional.dropout(weights, dropout, getattr(module, "training", False))
    return (weights @ value).transpose(1, 2).contiguous(), weights

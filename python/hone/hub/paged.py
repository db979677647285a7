"""Attention for transformers' continuous batching (generate_batch): sequences packed one behind another, keys and values in
pages, with the functions of flash.py."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch
from torch import Tensor

from .flash import flash_attn_varlen_func, flash_attn_with_kvcache


def paged_attention_forward(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Optional[Tensor], *, cache: Any,
    cu_seq_lens_q: Tensor, cu_seq_lens_k: Any, max_seqlen_q: Any, max_seqlen_k: Any,
    block_table: Optional[Tensor] = None, scaling: Optional[float] = None, softcap: Optional[float] = None,
    dropout: float = 0.0, s_aux: Optional[Tensor] = None, read_index: Any = None, write_index: Any = None, **_: Any,
) -> Tuple[Tensor, None]:  # fmt: skip
    """query [1, heads, tokens, head_dim], key and value [1, kv_heads, tokens, head_dim] of all sequences -> [tokens, heads,
    head_dim], with a block_table [tokens, heads, head_dim], too: a token of each. Lengths of keys may differ by kinds of
    layers."""
    window = getattr(module, "sliding_window", None) or 0
    if isinstance(cu_seq_lens_k, dict):
        kind = "sliding_attention" if window else "full_attention"
        cu_seq_lens_k, max_seqlen_k = cu_seq_lens_k[kind], max_seqlen_k[kind]
    options: Dict[str, Any] = {
        "softmax_scale": scaling, "causal": True, "window_size": (window - 1, 0) if window else (-1, -1),
        "softcap": softcap or 0.0, "s_aux": s_aux,
    }  # fmt: skip
    if block_table is None:
        key, value = cache.update(
            key_states=key, value_states=value, layer_idx=module.layer_idx, read_index=read_index, write_index=write_index
        )
        q = query.transpose(1, 2).squeeze(0)
        starts = (cu_seq_lens_q.to(torch.int32), cu_seq_lens_k.to(torch.int32))
        out = flash_attn_varlen_func(q, key, value, *starts, max_seqlen_q, max_seqlen_k, dropout, **options)
        return out, None
    group, index = cache.layer_index_to_group_indices[module.layer_idx]
    pages = (-1, cache.block_size, cache.num_key_value_heads, cache.head_dim)
    k_cache, v_cache = cache.key_cache[index].view(pages), cache.value_cache[index].view(pages)
    q, k, v = (tensor.permute(2, 0, 1, 3).contiguous() for tensor in (query, key, value))
    lengths = (cu_seq_lens_k[1 : len(k) + 1] - cu_seq_lens_k[: len(k)] - 1).to(torch.int32)
    out = flash_attn_with_kvcache(q, k_cache, v_cache, k, v, lengths, block_table[group], **options)
    return out.squeeze(1), None

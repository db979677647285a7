"""Hone's attention for SGLang: prompts behind any prefix, and decoding, also in CUDA graphs, over SGLang's pool of keys
and values. Refused by NotImplementedError: speculation, codes in the pool, latent attention, encoders."""

from __future__ import annotations

from typing import Any, Optional

import torch
from sglang.srt.layers.attention.base_attn_backend import AttentionBackend
from torch import Tensor

from .._serving import operators
from .._serving.operators import Heads
from .._torch.prepared import DTYPES
from .batch import Step, decode_step, limits_of, paged, pages_of, prompt_step


class HoneAttnBackend(AttentionBackend):
    """For one model runner. Calls come from one thread."""

    def __init__(self, runner: Any) -> None:
        super().__init__()
        self.places = runner.req_to_token_pool.req_to_token  # [requests, tokens of the longest]
        self.page_size = runner.page_size
        context_len = runner.model_config.context_len
        self.limits = limits_of(runner.server_args, self.places.shape[0], context_len, self.page_size)
        self.step: Optional[Step] = None
        self._table = self._lengths = torch.empty(0, dtype=torch.int32)

    def init_forward_metadata(self, forward_batch: Any) -> None:
        """Before the layers of a step."""
        _refuse_speculation(forward_batch.spec_info)
        lengths = forward_batch.seq_lens
        if not lengths.numel():  # a process without work beside others that have some
            self.step = None
            return
        on_host = forward_batch.seq_lens_cpu
        longest = int((lengths if on_host is None else on_host).max())
        given = (self.places, forward_batch.req_pool_indices, lengths, longest, self.page_size)
        if forward_batch.forward_mode.is_decode_or_idle():
            self.step = decode_step(*given)
        else:
            self.step = prompt_step(*given, forward_batch.extend_seq_lens_cpu)

    # CUDA graphs: decoding, with lengths and pages in memory that stays where it is.

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int) -> None:
        device = self.places.device
        pages = -(-self.limits.kv_len // self.page_size)
        self._table = torch.zeros(max_bs, pages, dtype=torch.int32, device=device)
        self._lengths = torch.ones(max_bs, dtype=torch.int32, device=device)

    def init_forward_metadata_capture_cuda_graph(
        self, bs: int, num_tokens: int, req_pool_indices: Tensor, seq_lens: Tensor, encoder_lens: Optional[Tensor],
        forward_mode: Any, spec_info: Any,
    ) -> None:  # fmt: skip
        _refuse_speculation(spec_info)
        if not forward_mode.is_decode_or_idle():
            raise NotImplementedError("forward_mode: Hone's attention in SGLang has graphs of decoding alone")
        self._fill(bs, req_pool_indices, seq_lens)
        self.step = Step(self.limits.kv_len, self._lengths[:bs], self._table[:bs])

    def init_forward_metadata_replay_cuda_graph(
        self, bs: int, req_pool_indices: Tensor, seq_lens: Tensor, seq_lens_sum: int,
        encoder_lens: Optional[Tensor], forward_mode: Any, spec_info: Any, seq_lens_cpu: Optional[Tensor],
    ) -> None:  # fmt: skip
        self._fill(bs, req_pool_indices, seq_lens)

    def get_cuda_graph_seq_len_fill_value(self) -> int:
        return 1

    def _fill(self, bs: int, requests: Tensor, lengths: Tensor) -> None:
        self._lengths[:bs].copy_(lengths[:bs])
        pages = pages_of(self.places[requests[:bs], : self.limits.kv_len], self.page_size)
        self._table[:bs, : pages.shape[1]].copy_(pages)

    # Layers.

    def forward_decode(
        self, q: Tensor, k: Optional[Tensor], v: Optional[Tensor], layer: Any, forward_batch: Any,
        save_kv_cache: bool = True, **others: Any,
    ) -> Tensor:  # fmt: skip
        """q [requests, heads * head_dim] -> the same."""
        return self._forward(False, q, k, v, layer, forward_batch, save_kv_cache, others)

    def forward_extend(
        self, q: Tensor, k: Optional[Tensor], v: Optional[Tensor], layer: Any, forward_batch: Any,
        save_kv_cache: bool = True, **others: Any,
    ) -> Tensor:  # fmt: skip
        """q [tokens, heads * head_dim], one prompt after another -> the same."""
        return self._forward(True, q, k, v, layer, forward_batch, save_kv_cache, others)

    def _forward(
        self, prompts: bool, q: Tensor, k: Any, v: Any, layer: Any, forward_batch: Any, saves: bool, others: Any
    ) -> Tensor:
        pool, step = forward_batch.token_to_kv_pool, self.step
        if step is None:
            raise ValueError("init_forward_metadata() has not been called")
        sinks = others.pop("sinks", None)
        _refuse(layer, others)
        if saves and k is not None:
            pool.set_kv_buffer(layer, forward_batch.out_cache_loc, k, v)
        caches = [paged(cache, self.page_size) for cache in pool.get_kv_buffer(layer.layer_id)]
        if caches[0].dtype != q.dtype:
            raise NotImplementedError(f"kv cache: its dtype is {caches[0].dtype}; allowed is the queries', {q.dtype}")
        queries = q.view(-1, layer.tp_q_head_num, layer.head_dim)
        given = {"kv_lengths": step.kv_lengths, "page_table": step.page_table, "kv_len": self._kv_len(step)}
        numbers = {"scale": layer.scaling, "softcap": layer.logit_cap or None}
        if sinks is not None:
            numbers["sinks"] = sinks.float()
        describe = operators.packed_description if prompts else operators.decode_description
        operator = operators.prepared(describe(_heads(layer, q.dtype, sinks is not None), self.limits), q.get_device())
        if prompts:
            found = operator(queries, *caches, **given, **numbers, q_starts=step.q_starts, q_len=step.q_len)
        else:
            found = operator(queries.unsqueeze(1), *caches, **given, **numbers)
        return found.reshape(-1, layer.tp_q_head_num * layer.head_dim)

    def _kv_len(self, step: Step) -> int:
        return min(step.kv_len, step.page_table.shape[1] * self.page_size)


def _heads(layer: Any, dtype: torch.dtype, sinks: bool) -> Heads:
    """SGLang's window leaves a query's own key out of its count, -1 is none."""
    window = getattr(layer, "sliding_window_size", -1)
    window = 0 if window is None or window < 0 else window + 1
    return Heads(
        layer.tp_q_head_num, layer.tp_k_head_num, layer.head_dim, DTYPES[dtype], "same", window,
        bool(layer.logit_cap), sinks,
    )  # fmt: skip


def _refuse(layer: Any, others: Any) -> None:
    """Raises NotImplementedError for what no operator does."""
    kind = str(getattr(getattr(layer, "attn_type", None), "value", "decoder"))
    if kind != "decoder" or layer.is_cross_attention:
        raise NotImplementedError(f"attention: it is {kind}; Hone's attention in SGLang takes 'decoder'")
    if layer.v_head_dim != layer.head_dim or layer.qk_head_dim != layer.head_dim:
        raise NotImplementedError("v_head_dim: it is not head_dim; Hone's attention in SGLang needs them alike")
    for name, value in others.items():
        if value is not None:
            raise NotImplementedError(f"{name}: it is given; Hone's attention in SGLang knows none")


def _refuse_speculation(spec_info: Any) -> None:
    if spec_info is not None:
        raise NotImplementedError("spec_info: it is given; Hone's attention in SGLang knows no speculation")

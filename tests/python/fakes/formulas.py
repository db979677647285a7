"""What Hone's operators compute, as formulas of PyTorch that run on the CPU: they stand in for the kernels where a test asks
what is called with which tensors. `called` counts the calls of each."""

from __future__ import annotations

import collections
import math
from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional

from hone._nn.common import ACTIVATIONS
from hone._operators.stored import StoredWeight
from hone._weights import packing


class Formulas:
    """The functions of hone._torch.registered.calls, by their names."""

    def __init__(self) -> None:
        self.called: collections.Counter = collections.Counter()
        self.attended: list = []  # options of the calls of attention

    def embedding(self, ids, table, scale=None, position_ids=None, position_table=None):
        self.called["embedding"] += 1
        x = table[ids.long()]
        x = x if scale is None else (x.float() * scale).to(table.dtype)
        return x if position_table is None else x + position_table[position_ids.long()]

    def rms_norm(self, x, weight, epsilon):
        self.called["rms_norm"] += 1
        return functional.rms_norm(x, (x.shape[-1],), weight, epsilon)

    def rms_norm_residual(self, x, residual, weight, epsilon):
        self.called["rms_norm_residual"] += 1
        return functional.rms_norm(x + residual, (x.shape[-1],), weight, epsilon), x + residual

    def rms_norm_offset(self, x, weight, epsilon):
        self.called["rms_norm_offset"] += 1
        y = functional.rms_norm(x.float(), (x.shape[-1],), 1.0 + weight.float(), epsilon)
        return y.to(x.dtype)

    def rms_norm_residual_offset(self, x, residual, weight, epsilon):
        self.called["rms_norm_residual_offset"] += 1
        total = x + residual
        y = functional.rms_norm(total.float(), (x.shape[-1],), 1.0 + weight.float(), epsilon)
        return y.to(x.dtype), total

    def layer_norm(self, x, weight, bias, epsilon):
        self.called["layer_norm"] += 1
        return functional.layer_norm(x, (x.shape[-1],), weight, bias, epsilon)

    def layer_norm_residual(self, x, residual, weight, bias, epsilon):
        self.called["layer_norm_residual"] += 1
        return functional.layer_norm(x + residual, (x.shape[-1],), weight, bias, epsilon), x + residual

    def linear(self, x, weight, bias, residual, activation, norm_weight=None, epsilon=None):
        self.called["linear"] += 1
        if not weight.is_contiguous():
            raise AssertionError("a weight has gaps")
        y = functional.linear(_normed(x, norm_weight, epsilon), weight, bias)
        y = ACTIVATIONS[activation](y)
        return y if residual is None else y + residual

    def fused_ffn(
        self, x, gate, up, down, up_bias, down_bias, residual, activation, norm_weight=None, epsilon=None
    ):  # fmt: skip
        self.called["fused_ffn"] += 1
        x = _normed(x, norm_weight, epsilon)
        between = ACTIVATIONS[activation](functional.linear(x, up if gate is None else gate, up_bias))
        between = between if gate is None else between * functional.linear(x, up)
        y = functional.linear(between, down, down_bias)
        return y if residual is None else y + residual

    def quantized_linear(
        self, x, codes, scales, format, group, out_features, activation, zeros=None, bias=None, residual=None,
        x_scales=None, norm_weight=None, epsilon=None, out_dtype=None,
    ):  # fmt: skip
        self.called[f"quantized_linear {format}"] += 1
        if x_scales is not None or out_dtype is not None:
            raise AssertionError("no such call is expected")
        weight = _numbers(x, codes, scales, zeros, format, group, out_features)
        y = ACTIVATIONS[activation](functional.linear(_normed(x, norm_weight, epsilon), weight, bias))
        return y if residual is None else y + residual

    def quantized_ffn(
        self, x, gate, gate_scales, up, up_scales, down, down_scales, format, group, intermediate, activation,
        gate_zeros=None, up_zeros=None, down_zeros=None, up_bias=None, down_bias=None, residual=None, x_scales=None,
        norm_weight=None, epsilon=None, out_dtype=None,
    ):  # fmt: skip
        self.called[f"quantized_ffn {format}"] += 1
        normed, hidden = _normed(x, norm_weight, epsilon), x.shape[-1]
        wide = functional.linear(normed, _numbers(x, up, up_scales, up_zeros, format, group, intermediate), up_bias)
        if gate is None:
            between = ACTIVATIONS[activation](wide)
        else:
            weight = _numbers(x, gate, gate_scales, gate_zeros, format, group, intermediate)
            between = ACTIVATIONS[activation](functional.linear(normed, weight)) * wide
        y = functional.linear(between, _numbers(between, down, down_scales, down_zeros, format, group, hidden), down_bias)
        return y if residual is None else y + residual

    def expert_routing(self, logits, top_k, renormalize):
        self.called["expert_routing"] += 1
        best, chosen = logits.float().softmax(-1).topk(top_k, -1)
        best = best / best.sum(-1, keepdim=True) if renormalize else best
        flat = chosen.flatten()
        starts = torch.cat((flat.new_zeros(1), flat.bincount(minlength=logits.shape[1]).cumsum(0))).int()
        return best, starts, flat.argsort(stable=True).int().view(chosen.shape)

    def expert_linear(
        self, x, starts, weight, rows, top_k, activation, gather, up=None, bias=None, up_bias=None, routing_weights=None
    ):  # fmt: skip
        self.called["expert_linear"] += 1
        if gather != (routing_weights is None) or bias is not None or up_bias is not None or rows.shape[1] != top_k:
            raise AssertionError("no such call is expected")
        if len(starts) != len(weight) + 1 or not weight.is_contiguous() or (up is not None and not up.is_contiguous()):
            raise AssertionError("weights have gaps, or starts are not theirs")
        pairs = rows.flatten().long()
        gathered = x[pairs // top_k] if routing_weights is None else x.flatten(0, 1)
        out = x.new_full((len(pairs), weight.shape[1]), math.nan)
        for expert, (begin, end) in enumerate(zip(starts.tolist(), starts.tolist()[1:])):
            part = gathered[begin:end]
            made = ACTIVATIONS[activation](functional.linear(part, weight[expert]))
            out[begin:end] = made if up is None else made * functional.linear(part, up[expert])
        if routing_weights is None:
            return out.view(*rows.shape, -1)
        weighted = torch.zeros_like(out, dtype=torch.float32)
        weighted[pairs] = out.float() * routing_weights.flatten()[pairs][:, None]
        return weighted.view(*rows.shape, -1).sum(1).to(x.dtype)

    def rope_kv_append(
        self, q, k, v, k_cache, v_cache, cos, sin, style, kv_lengths=None, page_table=None, positions=None, slots=None,
        k_scale=None, v_scale=None, q_weight=None, k_weight=None, epsilon=None,
    ):  # fmt: skip
        self.called["rope_kv_append"] += 1
        if style != "half" or any(value is not None for value in (k_scale, v_scale)):
            raise AssertionError("no such call is expected")
        if slots is not None:  # each token to its own place
            k_cache.flatten(0, 1)[slots.long()] = _turned(k, cos, sin, positions.long())
            v_cache.flatten(0, 1)[slots.long()] = v
            return _turned(q, cos, sin, positions.long())
        tokens = q.shape[1]
        place = kv_lengths.long()[:, None] - tokens + torch.arange(tokens)[None, :]  # [sequences, tokens]
        out = torch.zeros_like(q)
        room = k_cache.shape[1] * (1 if page_table is None else page_table.shape[1])
        row, column = (place >= 0).nonzero().unbind(1)
        at = place[row, column]
        one_q, one_k = q[row, column], k[row, column]
        if q_weight is not None:
            one_q, one_k = _normed(one_q, q_weight, epsilon), _normed(one_k, k_weight, epsilon)
        out[row, column] = _turned(one_q, cos, sin, at)
        size = k_cache.shape[1]
        fits = at < size * (1 if page_table is None else page_table.shape[1])
        row, column, at, one_k = row[fits], column[fits], at[fits], one_k[fits]
        outer, inner = (row, at) if page_table is None else (page_table[row, at // size].long(), at % size)
        k_cache[outer, inner], v_cache[outer, inner] = _turned(one_k, cos, sin, at), v[row, column]
        return out

    def attention_with_cache(
        self, q, k_cache, v_cache, kv_lengths=None, page_table=None, causal=True, window=0, softcap=0.0, scale=None,
        kv_len=None, k_scale=None, v_scale=None,
    ):  # fmt: skip
        self.called["attention_with_cache"] += 1
        self.attended.append({"causal": causal, "window": window, "softcap": softcap, "tokens": q.shape[1]})
        if window and not causal:
            raise AssertionError("a window needs causal")
        out = torch.zeros_like(q)
        for row in range(q.shape[0]):
            k, v = (_keys(cache, page_table, row) for cache in (k_cache, v_cache))
            length = len(k) if kv_lengths is None else int(kv_lengths[row])
            if kv_len is not None and length > kv_len:
                raise AssertionError(f"a length of {length} is more than kv_len, {kv_len}")
            out[row] = attention(q[row], k[:length], v[:length], causal, window, softcap, scale)
        return out


def attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, window: int, softcap: float, scale: Optional[float]
) -> Tensor:
    """[tokens, heads, head_dim] of one sequence; causal is aligned at the end."""
    group = q.shape[1] // k.shape[1]
    k, v = (tensor.repeat_interleave(group, 1).transpose(0, 1) for tensor in (k, v))
    scores = q.transpose(0, 1) @ k.transpose(1, 2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = softcap * torch.tanh(scores / softcap) if softcap else scores
    behind = torch.arange(k.shape[1])[None, :] - (torch.arange(len(q))[:, None] + k.shape[1] - len(q))
    hidden = (behind > 0) & causal
    hidden = hidden | (behind <= -window) if window else hidden
    weights = scores.masked_fill(hidden, -math.inf).float().softmax(-1).nan_to_num(0.0).to(q.dtype)
    return (weights @ v).transpose(0, 1)


def _numbers(x: Tensor, codes: Tensor, scales: Tensor, zeros: Any, format: str, group: int, out: int) -> Tensor:
    """A weight [out, columns of x]."""
    if not codes.is_contiguous():
        raise AssertionError("codes have gaps")
    stored = StoredWeight(out, x.shape[-1], format, group)
    if tuple(codes.shape) != stored.codes_shape or tuple(scales.shape) != stored.scales_shape:
        raise AssertionError(f"codes {list(codes.shape)} and scales {list(scales.shape)} are not those of {stored}")
    return packing.dequantize(packing.Packed(codes, scales, zeros), stored, x.dtype)


def _normed(x: Tensor, weight: Optional[Tensor], epsilon: Any) -> Tensor:
    return x if weight is None else functional.rms_norm(x, (x.shape[-1],), weight, epsilon)


def _turned(x: Tensor, cos: Optional[Tensor], sin: Optional[Tensor], positions: Tensor) -> Tensor:
    """[tokens, heads, head_dim], by halves of the columns that turn."""
    if cos is None or sin is None:
        return x
    half = cos.shape[1]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    c, s = (table[positions][:, None].to(x.dtype) for table in (cos, sin))
    return torch.cat((first * c - second * s, second * c + first * s, rest), -1)


def _keys(cache: Tensor, table: Optional[Tensor], row: int) -> Tensor:
    return cache[row] if table is None else cache[table[row].long()].flatten(0, 1)


class Replayed:
    """Stands for a captured graph: runs the function again."""

    def __init__(self, function: Any, _pool: Any) -> None:
        self._function = function

    def replay(self) -> Tensor:
        return self._function()

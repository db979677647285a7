"""Prepared routings and layers of experts: what PyTorch's functions give in float64, a whole layer from its logits to its
sum."""

from __future__ import annotations

import itertools
import unittest
from typing import Tuple

from support import DTYPES, Case, randn

import torch
from torch import Tensor
from torch.nn import functional

import hone
from hone._operators.stored import StoredWeight
from hone._weights import packing

IN, BETWEEN = 256, 192


def routing_of(tokens: int, experts: int, top_k: int, seed: int = 0) -> Tuple[Tensor, ...]:
    route = hone.prepare(hone.ExpertRouting(experts, top_k, max_tokens=tokens, dtype="fp32", renormalize=True))
    return route(randn(tokens, experts, dtype=torch.float32, seed=seed))


def experts_of(starts: Tensor, rows: Tensor, top_k: int) -> Tensor:
    """[tokens, top_k], of pairs."""
    by_place = torch.arange(len(starts) - 1, device=rows.device).repeat_interleave(starts.long().diff())
    found = torch.empty_like(by_place)
    found[rows.flatten().long()] = by_place
    return found.view(-1, top_k)


class Routing(Case):
    def test_it_is_topk_and_a_stable_sort(self):
        sizes = ((1, 8, 2), (64, 128, 8), (65, 128, 8), (4096, 32, 4), (300, 512, 10))
        for (tokens, experts, top_k), renormalize in itertools.product(sizes, (False, True)):
            with self.subTest(tokens=tokens, experts=experts, renormalize=renormalize):
                logits = randn(tokens, experts, dtype=torch.float32)
                route = hone.prepare(
                    hone.ExpertRouting(experts, top_k, max_tokens=tokens, dtype="fp32", renormalize=renormalize)
                )
                weights, starts, rows = route(logits)
                best, chosen = logits.double().softmax(-1).topk(top_k, -1)
                best = best / best.sum(-1, keepdim=True) if renormalize else best
                torch.testing.assert_close(weights.double(), best, rtol=2e-5, atol=1e-7)
                flat = chosen.flatten()
                self.assert_same(rows.flatten().long(), flat.argsort(stable=True))
                self.assert_same(starts.long().diff(), flat.bincount(minlength=experts))
                self.assertEqual(starts[0].item(), 0)
                for found, again in zip((weights, starts, rows), route(logits)):
                    self.assert_same(found, again)


class Layer(Case):
    def test_both_halves_are_a_mixture_of_experts(self):
        for (name, dtype), (tokens, experts, top_k) in itertools.product(
            DTYPES.items(), ((1, 8, 2), (5, 8, 2), (40, 16, 4), (700, 8, 2))
        ):
            with self.subTest(dtype=name, tokens=tokens, experts=experts):
                x = randn(tokens, IN, dtype=dtype)
                gate, up = (randn(experts, BETWEEN, IN, dtype=dtype, seed=s) / IN**0.5 for s in (1, 2))
                down = randn(experts, IN, BETWEEN, dtype=dtype, seed=3) / BETWEEN**0.5
                weights, starts, rows = routing_of(tokens, experts, top_k)
                common = {"experts": experts, "top_k": top_k, "max_tokens": tokens, "dtype": name}
                first = hone.prepare(
                    hone.ExpertLinear(IN, BETWEEN, activation="silu", gated=True, gather=True, **common)
                )
                second = hone.prepare(hone.ExpertLinear(BETWEEN, IN, combine=True, **common))
                between = first(x, starts, gate, rows, up=up)
                out = second(between, starts, down, rows, weights)
                chosen, wide = experts_of(starts, rows, top_k), x.double()
                wanted = torch.zeros_like(wide)
                for token in range(tokens):
                    for slot in range(top_k):
                        e = chosen[token, slot]
                        mine = functional.silu(gate[e].double() @ wide[token]) * (up[e].double() @ wide[token])
                        wanted[token] += weights[token, slot].double() * (down[e].double() @ mine)
                error = ((out.double() - wanted).norm() / wanted.norm()).item()
                self.assertLess(error, {"fp32": 5e-6, "fp16": 2e-3, "bf16": 1.2e-2}[name])
                self.assert_same(second(first(x, starts, gate, rows, up=up), starts, down, rows, weights), out)
                self.assert_same(hone.ops.expert_linear(x, starts, gate, rows, top_k, "silu", True, up=up), between)


class GptOss(Case):
    """The first half of a layer of gpt-oss: clamped gates with biases, as transformers computes them."""

    def test_its_gate(self):
        experts, top_k, tokens = 8, 4, 40
        gate, up = (randn(experts, BETWEEN, IN, dtype=torch.bfloat16, seed=s) / IN**0.5 for s in (1, 2))
        biases = [randn(experts, BETWEEN, dtype=torch.bfloat16, seed=s) * 4 for s in (3, 4)]  # beyond the limits, too
        x = randn(tokens, IN, dtype=torch.bfloat16)
        _, starts, rows = routing_of(tokens, experts, top_k)
        found = hone.ops.expert_linear(
            x, starts, gate, rows, top_k, "swiglu_oai", True, up=up, bias=biases[0], up_bias=biases[1]
        )
        expert = experts_of(starts, rows, top_k).flatten()[rows.flatten().long()]  # of each place
        token = rows.flatten().long() // top_k
        g, u = (
            torch.einsum("poi,pi->po", weight[expert].double(), x[token].double()) + bias[expert].double()
            for weight, bias in zip((gate, up), biases)
        )
        self.assertGreater(g.max().item(), 7)
        self.assertLess(u.min().item(), -7)
        g, u = g.clamp(max=7), u.clamp(-7, 7)
        wanted = (u + 1) * (g * torch.sigmoid(g * 1.702))
        error = ((found.double().view_as(wanted) - wanted).norm() / wanted.norm()).item()
        self.assertLess(error, 4e-3)
        with self.assertRaisesRegex(Exception, "swiglu_oai, which joins two products"):
            hone.ops.expert_linear(x, starts, gate, rows, top_k, "swiglu_oai", True)


class CodedLayer(Case):
    """With codes of weights, beside the same layer with the numbers that they stand for."""

    def coded(self, weight: Tensor, format: str, group: int) -> Tuple[Tensor, ...]:
        """Codes and scales of [experts, rows, columns], and the values."""
        experts, rows, columns = weight.shape
        packed = hone.quantize_weights(weight.view(-1, columns), format, group, search=False)
        stored = StoredWeight(experts * rows, columns, format, group)
        values = packing.dequantize(packed, stored, torch.float64).view(weight.shape)
        one = StoredWeight(rows, columns, format, group)
        return packed.codes.view(experts, *one.codes_shape), packed.scales.view(experts, *one.scales_shape), values

    def test_both_halves_with_codes(self):
        for (format, group, most), (tokens, experts, top_k) in itertools.product(
            (("w4a16", 64, 1e-2), ("w8a16", 0, 1e-2), ("w8a8", 0, 5e-2), ("fp8", 128, 8e-2)), ((1, 8, 2), (40, 16, 4), (700, 8, 2))
        ):
            with self.subTest(format=format, tokens=tokens, experts=experts):
                between_columns = 256
                x = randn(tokens, IN, dtype=torch.bfloat16)
                shape = (experts, between_columns, IN)
                gate, up = (self.coded(randn(*shape, dtype=torch.bfloat16, seed=s) / IN**0.5, format, group) for s in (1, 2))
                down = self.coded(
                    randn(experts, IN, between_columns, dtype=torch.bfloat16, seed=3) / between_columns**0.5, format, group
                )
                weights, starts, rows = routing_of(tokens, experts, top_k)
                common = {"experts": experts, "top_k": top_k, "max_tokens": tokens, "format": format, "group": group}
                first = hone.prepare(
                    hone.QuantizedExpertLinear(
                        IN, between_columns, activation="silu", gated=True, gather=True, **common
                    )
                )
                second = hone.prepare(hone.QuantizedExpertLinear(between_columns, IN, combine=True, **common))
                between = first(x, starts, gate[0], gate[1], rows, up=up[0], up_scales=up[1])
                out = second(between, starts, down[0], down[1], rows, weights)
                chosen, wide = experts_of(starts, rows, top_k), x.double()
                wanted = torch.zeros_like(wide)
                for slot in range(top_k):
                    e = chosen[:, slot]
                    mine = functional.silu(torch.einsum("toi,ti->to", gate[2][e], wide))
                    mine = mine * torch.einsum("toi,ti->to", up[2][e], wide)
                    wanted += weights[:, slot, None].double() * torch.einsum("toi,ti->to", down[2][e], mine)
                error = ((out.double() - wanted).norm() / wanted.norm()).item()
                self.assertLess(error, most)
                words = (rows, format, group)
                again = hone.ops.quantized_expert_linear(
                    x, starts, *gate[:2], *words, between_columns, top_k, "silu", True, up=up[0], up_scales=up[1]
                )
                self.assert_same(again, between)
                again = hone.ops.quantized_expert_linear(
                    between, starts, *down[:2], *words, IN, top_k, "none", False, routing_weights=weights
                )
                self.assert_same(again, out)


if __name__ == "__main__":
    unittest.main()

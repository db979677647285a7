"""What engines and model libraries are given, on a GPU: the layers and functions of hone.hub, and the attention of the
vLLM plugin with a stand-in for vLLM, whose own kernels a formula stands for."""

from __future__ import annotations

import importlib.util
import sys
import types
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from support import DEVICE, EPSILON, Case, randn

import torch
from torch import Tensor, nn
from torch.nn import functional

import hone.hub
from hone.hub import layers

HIDDEN, BETWEEN, TOLERANCE = 256, 512, 2e-2  # of the largest value


def stand_in_for_vllm() -> Any:
    """The modules of tests/python/fakes/vllm_modules.py, without the fake driver beside it."""
    file = Path(__file__).resolve().parents[1] / "fakes" / "vllm_modules.py"
    spec = importlib.util.spec_from_file_location("vllm_modules", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules["vllm_modules"] = module
    spec.loader.exec_module(module)
    return module.install()


VLLM = stand_in_for_vllm()

from hone.vllm import attention, check


def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """q [tokens, heads, head_dim] over k and v [length, kv_heads, head_dim], causal at the end, in float32."""
    k, v = (one.float().repeat_interleave(q.shape[1] // k.shape[1], 1).transpose(0, 1) for one in (k, v))
    scores = q.float().transpose(0, 1) @ k.transpose(1, 2) * q.shape[-1] ** -0.5
    hidden = torch.ones(scores.shape[1:], dtype=torch.bool, device=q.device).triu(k.shape[1] - q.shape[0] + 1)
    return (scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v).transpose(0, 1)


class Plugins(Case):
    def close(self, found: Tensor, wanted: Tensor) -> None:
        self.assertLess(check.largest_error(found, wanted.float()), TOLERANCE)

    def modules(self) -> list:
        def linear(columns: int, rows: int) -> nn.Linear:
            return nn.Linear(columns, rows, bias=False)

        norm = types.SimpleNamespace(weight=randn(HIDDEN, seed=1), variance_epsilon=EPSILON)
        gated, fused = nn.Module(), nn.Module()
        gated.gate_proj, gated.up_proj = linear(HIDDEN, BETWEEN), linear(HIDDEN, BETWEEN)
        fused.gate_up_proj, gated.act_fn, fused.activation_fn = linear(HIDDEN, 2 * BETWEEN), nn.SiLU(), nn.SiLU()
        gated.down_proj, fused.down_proj = linear(BETWEEN, HIDDEN), linear(BETWEEN, HIDDEN)
        made = [(layers.LayerNorm, nn.LayerNorm(HIDDEN)), (layers.GatedMLP, gated), (layers.FusedGatedMLP, fused)]
        return [(layers.RMSNorm, norm), *((one, module.to(DEVICE, torch.bfloat16)) for one, module in made)]

    def test_layers_compute_what_their_formulas_do(self) -> None:
        x = randn(3, 5, HIDDEN)
        with torch.no_grad():
            for layer, module in self.modules():
                with self.subTest(layer.__name__):
                    self.assertTrue(layers._runs_natively(x, x))
                    found = layer.forward(module, x)
                    with mock.patch.object(layers, "_runs_natively", lambda *_: False):
                        self.close(found, layer.forward(module, x))

    def test_flash_attention(self) -> None:
        q, k, v = randn(40, 8, 64), randn(40, 2, 64, seed=1), randn(40, 2, 64, seed=2)
        starts = torch.tensor([0, 17, 40], dtype=torch.int32, device=DEVICE)
        wanted = torch.cat([attended(q[a:b], k[a:b], v[a:b]) for a, b in ((0, 17), (17, 40))])
        self.close(hone.hub.flash_attn_varlen_func(q, k, v, starts, starts, 23, 23, causal=True), wanted)
        self.close(hone.hub.flash_attn_func(q[None], k[None], v[None], causal=True)[0], attended(q, k, v))

    def test_flash_attention_with_a_cache(self) -> None:
        q, new = randn(2, 1, 8, 64), randn(2, 2, 1, 2, 64, seed=1)
        caches = randn(2, 9, 16, 2, 64, seed=2)
        table = torch.tensor([[3, 1, -1], [4, 2, 7]], dtype=torch.int32, device=DEVICE)
        lengths = torch.tensor([20, 40], dtype=torch.int32, device=DEVICE)
        out = hone.hub.flash_attn_with_kvcache(
            q, *caches, *new, cache_seqlens=lengths, block_table=table, causal=True
        )
        for row, length in enumerate((21, 41)):
            k, v = (cache[table[row].clamp(min=0).long()].flatten(0, 1)[:length] for cache in caches)
            self.assertTrue(torch.equal(k[-1], new[0, row, 0]))
            self.close(out[row], attended(q[row], k, v))

    def test_generate_with_hones_attention(self) -> None:
        try:
            from transformers import LlamaConfig, LlamaForCausalLM
        except ImportError:
            self.skipTest("there is no transformers")
        hone.hub.register_attention()
        config = LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
                             num_key_value_heads=2, vocab_size=100)  # fmt: skip
        torch.manual_seed(0)
        model = LlamaForCausalLM(config).to(DEVICE, torch.float32).eval()
        ids = torch.arange(14, device=DEVICE).view(2, 7)
        logits = []
        for name in ("sdpa", "hone"):
            model.set_attn_implementation(name)
            with torch.no_grad():
                logits.append(model(ids).logits)
        torch.testing.assert_close(*logits, rtol=1e-2, atol=1e-2)
        model.generate(ids, max_new_tokens=4, do_sample=False)

    def theirs(self, q: Tensor, k: Tensor, v: Tensor, out: Tensor, **given: Any) -> None:
        """What the check compares with."""
        starts = given["cu_seqlens_q"].tolist()
        for row, length in enumerate(given["seqused_k"].tolist()):
            pages = given["block_table"][row].long()
            keys, values = (cache[pages].flatten(0, 1)[:length] for cache in (k, v))
            out[starts[row] : starts[row + 1]] = attended(q[starts[row] : starts[row + 1]], keys, values).to(q.dtype)

    def test_the_check_of_the_vllm_plugin(self) -> None:
        def norm(out: Tensor, x: Tensor, weight: Tensor, epsilon: float) -> None:
            out.copy_(functional.rms_norm(x, (x.shape[-1],), weight, epsilon))

        sys.modules["vllm.v1.attention.backends.fa_utils"].flash_attn_varlen_func = self.theirs
        sys.modules["vllm._custom_ops"].rms_norm = norm
        rows = check.check(DEVICE)
        self.assertEqual([str(row) for row in rows if not row.passed], [])

    def test_a_captured_step_is_right_with_other_lengths(self) -> None:
        """As vLLM's full graphs: the same memory, other values."""
        first, second = (
            check.make_problem([(1, length) for length in lengths], False, DEVICE, torch.bfloat16)
            for lengths in ((900, 30, 4), (17, 640, 900))
        )
        impl = attention.HoneAttentionImpl(check.HEADS, check.HEAD_SIZE, check.HEAD_SIZE**-0.5, check.KV_HEADS)
        impl.prepare(first.limits, torch.bfloat16, DEVICE)
        slots = torch.zeros(first.limits.tokens, dtype=torch.int32, device=DEVICE)
        layer, out = types.SimpleNamespace(layer_name="a"), torch.zeros_like(first.query)

        def run(step: Any) -> None:
            VLLM.attn_metadata = {"a": step}
            impl.do_kv_cache_update(layer, first.key, first.value, first.cache, first.common.slot_mapping)
            impl.forward(layer, first.query, first.key, first.value, first.cache, step, out)

        captured = check.metadata_of(first.common, first.limits, slots, captured=True)
        run(captured)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run(captured)
        for name in ("query", "key", "value", "cache"):
            getattr(first, name).copy_(getattr(second, name))
        for name in ("seq_lens", "block_table_tensor", "slot_mapping"):
            getattr(first.common, name).copy_(getattr(second.common, name))
        check.metadata_of(first.common, first.limits, slots, captured=False)
        graph.replay()
        self.close(out, check.by_formula(first, *impl.caches(first.cache)))


if __name__ == "__main__":
    unittest.main()

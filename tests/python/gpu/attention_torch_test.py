"""hone::attention, hone::attention_with_cache, hone::rope_kv_append and their module: right, and at home in
what PyTorch does with operators. Kernels are compiled for each kind of call: there are few."""

from __future__ import annotations

import unittest
import warnings
from typing import Any, Dict, Tuple

from support import DEVICE, DTYPES, RELATIVE_L2, Case, attention, prepared, randn, rms_norm

import torch
from torch import Tensor
from torch.nn import functional

import hone
from hone import nn as hone_nn
from hone import ops

BATCH, HEADS, KV_HEADS, DIM = 2, 4, 2, 64
PAGE = 16


def heads_of(tokens: int, heads: int, dim: int = DIM, dtype: Any = torch.bfloat16, seed: int = 0) -> Tensor:
    """[BATCH, tokens, heads, dim]"""
    return randn(BATCH, tokens, heads, dim, dtype=dtype, seed=seed)


def inputs(q_len: int, kv_len: int, dim: int = DIM, dtype: Any = torch.bfloat16, kv_heads: int = KV_HEADS):
    """q, k and v [BATCH, tokens, heads, dim]."""
    return (
        heads_of(q_len, HEADS, dim, dtype, seed=1),
        heads_of(kv_len, kv_heads, dim, dtype, seed=2),
        heads_of(kv_len, kv_heads, dim, dtype, seed=3),
    )


def int32(*values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


def paged(k: Tensor, v: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """Pools of pages in another order, with one more that is nobody's, and their table; k and v have whole
    pages."""
    each = k.shape[1] // PAGE
    table = torch.randperm(BATCH * each, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    pools = []
    for cache in (k, v):
        pool = torch.full((BATCH * each + 1, PAGE, *cache.shape[2:]), torch.nan, device=DEVICE)
        pool[table] = cache.reshape(BATCH * each, PAGE, *cache.shape[2:]).float()
        pools.append(pool.to(cache.dtype))
    return pools[0], pools[1], table.view(BATCH, each).int()


def first_heads(*tensors: Tensor) -> Tuple[Tensor, ...]:
    """[batch, heads, tokens, head_dim], as PyTorch has it."""
    return tuple(tensor.transpose(1, 2) for tensor in tensors)


class AttentionCase(Case):
    def assert_attends(self, found: Tensor, wanted: Tensor) -> None:
        """`found` is `wanted` (float64) but for roundings of weights and sums."""
        self.assertEqual(found.shape, wanted.shape)
        self.assertLess(self.relative_error(found, wanted), RELATIVE_L2[found.dtype] * 1.25)


class Values(AttentionCase):
    def test_it_is_what_pytorch_computes(self):
        for dtype in DTYPES.values():
            for q_len, kv_len, causal in (
                (70, 70, True), (70, 133, False), (1, 133, False), (5, 133, True), (133, 70, True), (40, 3, True)
            ):  # fmt: skip
                with self.subTest(dtype=dtype, q_len=q_len, causal=causal):
                    q, k, v = first_heads(*inputs(q_len, kv_len, dtype=dtype))
                    found = ops.attention(q, k, v, is_causal=causal, enable_gqa=True)
                    k, v = (tensor.repeat_interleave(HEADS // KV_HEADS, 1) for tensor in (k, v))
                    doubled = (tensor.double() for tensor in (q, k, v))
                    wanted = functional.scaled_dot_product_attention(*doubled, is_causal=causal)
                    self.assertEqual(found.dtype, dtype)
                    self.assert_attends(found, wanted)

    def test_masks_are_pytorchs_affair(self):
        for dtype in (torch.float32, torch.bfloat16):
            q, k, v = first_heads(*inputs(37, 61, dtype=dtype))
            seen = randn(BATCH, 1, 37, 61, seed=9) > 0
            bias = randn(HEADS, 37, 61, dtype=dtype, seed=8)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                outs = [ops.attention(q, k, v, mask, scale=0.2, enable_gqa=True) for mask in (seen, bias, seen[0, 0])]
            said = [str(one.message) for one in caught if "attn_mask is given" in str(one.message)]
            self.assertLessEqual(len(said), 1)
            wide = [tensor.double().repeat_interleave(HEADS // KV_HEADS, 1) for tensor in (k, v)]
            for found, mask in zip(outs, (seen, bias.double(), seen[0, 0])):
                wanted = functional.scaled_dot_product_attention(q.double(), *wide, mask, scale=0.2)
                self.assertLess(self.relative_error(found, wanted), 4 * RELATIVE_L2[dtype])
                self.assertTrue(found.transpose(1, 2).is_contiguous())

    def test_layouts_and_head_dims(self):
        for q_len, kv_len in ((40, 40), (1, 40)):
            for dim in (33, 80):
                q, k, v = inputs(q_len, kv_len, dim, kv_heads=HEADS)
                wanted = attention(q, k, v, causal=False)[0]
                contiguous = (tensor.contiguous() for tensor in first_heads(q, k, v))
                for found in (ops.attention(*first_heads(q, k, v)), ops.attention(*contiguous)):
                    self.assert_attends(found.transpose(1, 2), wanted)
        fused = randn(BATCH, 40, 3, HEADS, 80)
        q, k, v = fused.unbind(2)
        wanted = attention(q, k, v, causal=False)[0]
        self.assert_attends(ops.attention(*first_heads(q, k, v)).transpose(1, 2), wanted)
        wide = torch.nn.functional.pad(q, (1, 0))[..., 1:]  # misaligned
        self.assert_attends(ops.attention(*first_heads(wide, k, v)).transpose(1, 2), wanted)
        alone = k[:1].expand(BATCH, -1, -1, -1)
        wanted = attention(q, alone, alone, causal=False)[0]
        self.assert_attends(ops.attention(*first_heads(q, alone, alone)).transpose(1, 2), wanted)

    def test_a_cache_with_everything(self):
        for q_len, pages in ((1, True), (3, True), (3, False)):
            q, k, v = inputs(q_len, 96)
            lengths = int32(96, 50)
            k[1, 50:], v[1, 50:] = torch.nan, torch.inf  # behind the end
            options = {"window": 37, "softcap": 5.0}
            wanted, wanted_lse = attention(q, k, v, lengths=lengths, scale=0.3, **options)
            table = None
            if pages:
                k, v, table = paged(k, v)
            out, lse = ops.attention_with_cache_lse(q, k, v, lengths, table, scale=0.3, **options)
            self.assert_attends(out, wanted)
            torch.testing.assert_close(lse.double(), wanted_lse, rtol=1e-4, atol=5e-3)

    def test_a_long_prompt_with_lengths(self):
        q, k, v = inputs(40, 96)
        lengths = int32(96, 50)
        k[1, 50:] = torch.nan
        found = ops.attention_with_cache(q, k, v, lengths)
        self.assert_attends(found, attention(q, k, v, lengths=lengths)[0])

    def test_who_sees_nothing_gets_zeros(self):
        for q_len in (1, 3):
            q, k, v = inputs(q_len, 96)
            out, lse = ops.attention_with_cache_lse(q, k, v, int32(0, 96), None)
            self.assertFalse(out[0].any())
            self.assertTrue(torch.isneginf(lse[0]).all())
            self.assert_attends(out[1:], attention(q[1:], k[1:], v[1:])[0])
        out, lse = ops.attention_with_cache_lse(q, k[:, :0], v[:, :0])
        self.assertFalse(out.any())
        self.assertTrue(torch.isneginf(lse).all())

    def test_sinks(self):
        sinks = torch.tensor([-1.0, 0.5, 3.0, -torch.inf], device=DEVICE)
        for dtype in DTYPES.values():
            for q_len in (1, 3, 40):
                q, k, v = inputs(q_len, 96, dtype=dtype)
                wanted, wanted_lse = attention(q, k, v, lengths=int32(96, 50), sinks=sinks, window=37)
                out, lse = ops.attention_with_cache_lse(q, k, v, int32(96, 50), window=37, sinks=sinks)
                self.assert_attends(out, wanted)
                torch.testing.assert_close(lse.double(), wanted_lse, rtol=1e-4, atol=5e-3)
        out, lse = ops.attention_with_cache_lse(q, k[:, :0], v[:, :0], sinks=sinks)
        self.assertFalse(out.any())
        torch.testing.assert_close(lse, sinks[:, None].expand_as(lse))

    def test_a_cache_of_codes(self):
        for q_len in (1, 40):
            self.check_codes(q_len)

    def check_codes(self, q_len: int) -> None:
        q, k, v = inputs(q_len, 96)
        k_scale, v_scale = (torch.tensor(values, device=DEVICE) for values in ([0.02, 0.5], [0.25, 0.03]))
        codes, read = [], []
        for cache, scale in ((k, k_scale), (v, v_scale)):
            codes.append((cache.float() / scale[:, None]).to(torch.float8_e4m3fn))
            read.append(codes[-1].double() * scale[:, None].double())
        found = ops.attention_with_cache(q, *codes, k_scale=k_scale, v_scale=v_scale)
        self.assert_attends(found, attention(q, *read)[0])

    def test_packed_sequences(self):
        description = hone.Attention(
            HEADS, KV_HEADS, DIM, max_batch=4, max_q_len=64, max_kv_len=64, packed=True, lse=True
        )
        operator = prepared(description)
        q, k, v = (tensor[0] for tensor in inputs(70, 70))
        starts = [0, 40, 40, 70]
        out, lse = operator(q, k, v, q_starts=int32(*starts), kv_starts=int32(*starts), q_len=40, kv_len=40)
        for first, end in ((0, 40), (40, 70)):
            part = slice(first, end)
            wanted, wanted_lse = attention(*(tensor[None, part] for tensor in (q, k, v)))
            self.assert_attends(out[part], wanted[0])
            torch.testing.assert_close(lse[:, part].double(), wanted_lse[0], rtol=1e-4, atol=1e-3)

    def test_packed_queries_over_pages(self):
        for page_lengths in ((96, 50), (40, 96)):
            description = hone.Attention(
                HEADS, KV_HEADS, DIM, max_batch=4, max_q_len=64, max_kv_len=96, packed=True, lse=True,
                page_size=PAGE,
            )  # fmt: skip
            operator = prepared(description)
            q, k, v = inputs(40, 96)
            for sequence, length in enumerate(page_lengths):
                k[sequence, length:], v[sequence, length:] = torch.nan, torch.inf
            pools = paged(k, v)
            packed = torch.cat((q[0], q[1, :1]))  # a prompt behind a prefix, and a single token
            out, lse = operator(
                packed, *pools[:2], page_table=pools[2], q_starts=int32(0, 40, 41), q_len=40,
                kv_lengths=int32(*page_lengths),
            )  # fmt: skip
            for sequence, part in enumerate((slice(0, 40), slice(40, 41))):
                keys = (tensor[None, sequence, : page_lengths[sequence]] for tensor in (k, v))
                wanted, wanted_lse = attention(packed[None, part], *keys)
                self.assert_attends(out[part], wanted[0])
                torch.testing.assert_close(lse[:, part].double(), wanted_lse[0], rtol=1e-4, atol=5e-3)

    def test_a_long_prompt_from_pages(self):
        q, k, v = inputs(40, 96)
        lengths = int32(96, 50)
        k[1, 50:] = torch.nan
        wanted = attention(q, k, v, lengths=lengths)[0]
        k, v, table = paged(k, v)
        self.assert_attends(ops.attention_with_cache(q, k, v, lengths, table), wanted)

    def test_the_prepared_operator_takes_what_pytorch_takes(self):
        operator = prepared(hone.Attention(HEADS, KV_HEADS, DIM, max_batch=2, max_q_len=1, max_kv_len=256))
        q, k, v = inputs(1, 133)
        for kv_len in (133, 17):
            found = operator(q, k, v, kv_len=kv_len)
            self.assert_attends(found, attention(q, k[:, :kv_len], v[:, :kv_len])[0])


class Rope(AttentionCase):
    def rotated(self, x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor, interleaved: bool) -> Tensor:
        """In float64; x [..., tokens, heads, head_dim], positions [..., tokens]."""
        c, s = (table.double()[positions.long()][..., None, :] for table in (cos, sin))
        turning, rest = x.double().split([2 * cos.shape[1], x.shape[-1] - 2 * cos.shape[1]], -1)
        if interleaved:
            one, other = turning[..., ::2], turning[..., 1::2]
            turned = torch.stack([one * c - other * s, other * c + one * s], -1).flatten(-2)
        else:
            one, other = turning.chunk(2, -1)
            turned = torch.cat([one * c - other * s, other * c + one * s], -1)
        return torch.cat([turned, rest], -1)

    def test_pages_with_a_norm(self):
        cos, sin = hone_nn.rope_table(DIM, 128, 500000.0, device=DEVICE)
        q, k, v = inputs(3, 3)
        q_weight, k_weight = randn(DIM, seed=4), randn(DIM, seed=5)
        lengths = int32(60, 9)
        pools = [torch.zeros(9, PAGE, KV_HEADS, DIM, dtype=q.dtype, device=DEVICE) for _ in range(2)]
        table = torch.randperm(8).view(BATCH, 4).int().to(DEVICE)
        norm = {"q_weight": q_weight, "k_weight": k_weight, "epsilon": 1e-5}
        found = ops.rope_kv_append(q, k, v, *pools, cos, sin, "half", lengths, table, **norm)
        positions = lengths[:, None] - 3 + torch.arange(3, device=DEVICE)
        self.assert_near(found, self.rotated(rms_norm(q, q_weight), cos, sin, positions, False), 2)
        keys, values = (pool[table.long()].flatten(1, 2) for pool in pools)
        for sequence in range(BATCH):
            rows = positions[sequence]
            wanted = self.rotated(rms_norm(k[sequence], k_weight), cos, sin, rows, False)
            self.assert_near(keys[sequence, rows], wanted, 2)
            self.assert_same(values[sequence, rows], v[sequence])

    def test_slots(self):
        cos, sin = hone_nn.rope_table(32, 64, device=DEVICE)
        q, k, v = (tensor.flatten(0, 1) for tensor in inputs(2, 2, dtype=torch.float32))
        caches = [torch.zeros(2, 20, KV_HEADS, DIM, device=DEVICE) for _ in range(2)]
        positions, slots = int32(3, 9, 0, 60), int32(39, -1, 2, 20)
        found = ops.rope_kv_append(
            q, k, v, *caches, cos, sin, "interleaved", positions=positions, slots=slots
        )
        self.assert_near(found, self.rotated(q, cos, sin, positions, True))
        written = [0, 2, 3]
        keys, values = (cache.flatten(0, 1)[slots[written].long()] for cache in caches)
        self.assert_near(keys, self.rotated(k, cos, sin, positions, True)[written])
        self.assert_same(values, v[written])
        self.assertEqual(int((caches[1].flatten(0, 1).abs().amax((1, 2)) > 0).sum()), 3)

    def test_a_prompt_and_then_tokens_are_one_attention(self):
        """Through the cache, in one captured graph a token."""
        tokens, prompt = 60, 40
        cos, sin = hone_nn.rope_table(DIM, 128, device=DEVICE)
        q, k, v = inputs(tokens, tokens)
        caches = [torch.zeros(BATCH, 64, KV_HEADS, DIM, dtype=q.dtype, device=DEVICE) for _ in range(2)]
        lengths = int32(prompt, prompt)

        def step(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            turned = ops.rope_kv_append(q, k, v, *caches, cos, sin, "half", lengths)
            return ops.attention_with_cache(turned, *caches, lengths)

        outs = [step(q[:, :prompt], k[:, :prompt], v[:, :prompt])]
        one = [tensor[:, :1].clone() for tensor in (q, k, v)]
        lengths += 1
        step(*one)  # prepares
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = step(*one)
        for token in range(prompt, tokens):
            for into, tensor in zip(one, (q, k, v)):
                into.copy_(tensor[:, token : token + 1])
            graph.replay()
            outs.append(out.clone())
            lengths += 1
        positions = torch.arange(tokens, device=DEVICE)
        turned = (self.rotated(tensor, cos, sin, positions, False).to(q.dtype) for tensor in (q, k))
        self.assert_attends(torch.cat(outs, 1), attention(*turned, v)[0])

    def test_llama3_scaling(self):
        scaling = {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        }  # fmt: skip
        tables = (hone_nn.rope_table(128, 2, 500000.0, scaling=given) for given in (None, scaling))
        plain, scaled = (sin[1].asin() for _, sin in tables)
        torch.testing.assert_close(scaled[:20], plain[:20])  # short waves
        torch.testing.assert_close(scaled[-20:], plain[-20:] / 8)  # long ones
        self.assertTrue(bool((scaled <= plain).all() and (scaled >= plain / 8.001).all()))
        for wrong in ({"rope_type": "yarn"}, {"rope_type": "linear"}):
            with self.assertRaisesRegex(ValueError, "^scaling: "):
                hone_nn.rope_table(128, 2, scaling=wrong)


class Mistakes(AttentionCase):
    def refuses(self, kind: Any, name: str, operator: Any, *arguments: Any, **named: Any) -> None:
        with self.assertRaisesRegex(kind, f"^{name}: "):
            operator(*arguments, **named)

    def test_those_of_attention(self):
        for device in (DEVICE, torch.device("meta")):
            q, k, v = (tensor.to(device) for tensor in first_heads(*inputs(20, 20)))
            mask = torch.ones(20, 20, dtype=torch.bool, device=device)
            for wrong, kind in ((mask[1:], ValueError), (mask[0], ValueError), (mask.int(), TypeError)):
                self.refuses(kind, "attn_mask", ops.attention, q, k, v, wrong, enable_gqa=True)
            self.refuses(
                ValueError, "attn_mask", ops.attention, q, k, v, mask, is_causal=True, enable_gqa=True
            )
            self.refuses(ValueError, "dropout_p", ops.attention, q, k, v, dropout_p=0.1, enable_gqa=True)
            self.refuses(ValueError, "enable_gqa", ops.attention, q, k, v)
            self.refuses(ValueError, "scale", ops.attention, q, k, v, scale=-1.0, enable_gqa=True)
            self.refuses(TypeError, "k", ops.attention, q, k.half(), v)
            self.refuses(ValueError, "v", ops.attention, q, k, v[:, :, 1:])
            self.refuses(ValueError, "k", ops.attention, q, k[..., 1:], v[..., 1:])
            self.refuses(ValueError, "q", ops.attention, q[0], k[0], v[0])
            self.refuses(ValueError, "q", ops.attention, q[:, :3], k, v, enable_gqa=True)
        q, k, v = (torch.zeros(1, 2, 3, DIM) for _ in range(3))
        self.refuses(ValueError, "q", ops.attention, q, k, v)

    def test_those_of_a_cache(self):
        call = ops.attention_with_cache
        for device in (DEVICE, torch.device("meta")):
            q, k, v = (tensor.to(device) for tensor in inputs(1, 32))
            lengths = int32(3, 4).to(device)
            self.refuses(TypeError, "kv_lengths", call, q, k, v, lengths.long())
            self.refuses(ValueError, "kv_lengths", call, q, k, v, lengths[:1])
            self.refuses(ValueError, "page_table", call, q, k, v, None, lengths)
            self.refuses(ValueError, "window", call, q, k, v, causal=False, window=3)
            self.refuses(ValueError, "softcap", call, q, k, v, softcap=-1.0)
            self.refuses(ValueError, "k_scale", call, q, k, v, k_scale=lengths.float())
            self.refuses(ValueError, "kv_len", call, q, k, v, kv_len=33)
            call = ops.rope_kv_append
            row = k[:, :1]
            self.refuses(ValueError, "kv_lengths", call, q, row, row, k, v, None, None, "half")
            sin = k[0, :, 0].float()
            self.refuses(ValueError, "sin", call, q, row, row, k, v, None, sin, "half", lengths)
            self.refuses(ValueError, "style", call, q, row, row, k, v, None, None, "neox", lengths)
            self.refuses(ValueError, "v_cache", call, q, row, row, k, v[:, 1:], None, None, "half", lengths)
            call = ops.attention_with_cache


def samples() -> Dict[str, Any]:
    """Calls by name: (operator, arguments)."""
    q, k, v = inputs(1, 32)
    _, new_k, new_v = inputs(1, 1)
    table = hone_nn.rope_table(DIM, 64, device=DEVICE)
    return {
        "attention": (ops.attention, (*first_heads(q, k, v), None, 0.0, False, None, True)),
        "cache": (ops.attention_with_cache, (q, k, v, int32(32, 9))),
        "lse": (ops.attention_with_cache_lse, (q, k, v, int32(32, 9))),
        "rope": (ops.rope_kv_append, (q, new_k, new_v, k.clone(), v.clone(), *table, "half", int32(32, 9))),
    }


class Dispatch(AttentionCase):
    def test_opcheck_is_content(self):
        for name, (operator, arguments) in samples().items():
            with self.subTest(name):
                torch.library.opcheck(getattr(torch.ops.hone, operator.__name__).default, arguments)

    def test_fake_tensors_and_those_without_memory(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        for operator, arguments in samples().values():
            wanted = operator(*arguments)
            with FakeTensorMode() as mode:
                fakes = [mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in arguments]
                fake = operator(*fakes)
            meta = operator(*(a.to("meta") if isinstance(a, torch.Tensor) else a for a in arguments))
            for found in (fake, meta):
                for one, other in zip(*(t if isinstance(t, tuple) else (t,) for t in (found, wanted))):
                    self.assertEqual(
                        (one.shape, one.dtype, one.stride()), (other.shape, other.dtype, other.stride())
                    )

    def test_there_is_no_gradient(self):
        for operator, arguments in samples().values():
            out = operator(arguments[0].requires_grad_(), *arguments[1:])
            out = out[0] if isinstance(out, tuple) else out
            with self.assertRaisesRegex(NotImplementedError, "^hone::.* has no gradient; train with "):
                out.sum().backward()

    def test_one_graph_of_dynamo(self):
        torch._dynamo.reset()
        for name, (operator, arguments) in samples().items():
            with self.subTest(name), torch.no_grad():
                compiled = torch.compile(lambda *a: operator(*a), fullgraph=True, backend="aot_eager")
                found, wanted = compiled(*arguments), operator(*arguments)
                for one, other in zip(*(t if isinstance(t, tuple) else (t,) for t in (found, wanted))):
                    self.assert_same(one.contiguous(), other.contiguous())

    def test_the_first_call_during_a_capture_says_to_warm_up(self):
        q, k, v = inputs(1, 32, dim=48)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a graph without launches
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                with self.assertRaisesRegex(RuntimeError, "hone::attention .* warm up"):
                    ops.attention_with_cache(q, k, v)


class Modules(AttentionCase):
    def test_values_of_both_ways(self):
        q, k, v = (tensor.flatten(2) for tensor in inputs(24, 40))
        for options in ({}, {"window": 9, "softcap": 5.0}, {"causal": False, "scale": 0.2}):
            module = hone_nn.Attention(HEADS, DIM, KV_HEADS, **options)
            wanted = attention(*inputs(24, 40), **options)[0].flatten(2)
            with torch.no_grad():
                self.assert_attends(module(q, k, v), wanted)
            trained = module(q.float().requires_grad_(), k.float(), v.float())  # PyTorch's
            self.assertTrue(trained.requires_grad)
            self.assertLess(self.relative_error(trained.detach(), wanted), 1e-3)
            self.assertLess(self.relative_error(module(q.cpu(), k.cpu(), v.cpu()).to(DEVICE), wanted), 5e-2)

    def test_what_is_not_allowed(self):
        for options in ({"kv_heads": 3}, {"causal": False, "window": 4}):
            with self.assertRaisesRegex(ValueError, "^(kv_heads|window): "):
                hone_nn.Attention(HEADS, DIM, **options)


if __name__ == "__main__":
    unittest.main()

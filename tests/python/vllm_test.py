"""Hone as a plugin of vLLM, with a stand-in for vLLM (fakes/vllm_modules.py), on the CPU: what is registered, what is
refused, that a step's metadata leads to the right calls of Hone's operators, and that what such calls compute is what
the step asks for. The operators are stood in for by their formulas; each call also goes to the real operator, on memory
of the fake driver, which checks shapes, strides and dtypes. Ends with 77 where there is no PyTorch."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import random
import sys
import types
import unittest
from typing import Any, List, Tuple
from unittest import mock

import fakes  # finds the package

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed")
    sys.exit(77)

from torch import Tensor
from torch.nn import functional

from fakes import vllm_modules
from fakes.serving import Operator, attended, rotated

VLLM = vllm_modules.install()

import hone
import hone.vllm
from hone._operators.stored import StoredWeight
from hone._serving import operators
from hone._weights import packing
from hone._weights import repack
from hone.vllm import attention, batch, check, linear_kernels, norm, quantization, settings

HEADS, KV_HEADS, SIZE, BLOCK = 4, 2, 32, 16
FP8 = torch.float8_e4m3fn
LIMITS = batch.Limits(sequences=8, tokens=160, kv_len=256, decoded=4, page_size=BLOCK)
CPU = torch.device("cpu")


class Step:
    """A step of vLLM: sequences of (queries, all tokens), a cache with the tokens before, tables in any order, and
    what vLLM says of it. `padding` sequences without anything fill a graph's batch, unused tokens follow."""

    def __init__(self, sequences: List[Tuple[int, int]], seed: int = 0, padding: int = 0, unused: int = 0) -> None:
        torch.manual_seed(seed)
        self.sequences = sequences
        counts = [queries for queries, _ in sequences]
        self.starts = torch.tensor([0, *counts, *[0] * padding]).cumsum(0).to(torch.int32)
        tokens, rows = sum(counts), len(sequences) + padding
        self.tokens = tokens
        self.pages = 16
        table = torch.randperm(rows * self.pages).view(rows, self.pages).to(torch.int32)
        self.lengths = torch.tensor([length for _, length in sequences] + [0] * padding, dtype=torch.int32)
        self.slots = torch.full((tokens + unused,), -1)
        self.places = [
            (row, place) for row, (count, length) in enumerate(sequences) for place in range(length - count, length)
        ]
        for token, (row, place) in enumerate(self.places):
            self.slots[token] = table[row, place // BLOCK] * BLOCK + place % BLOCK
        self.query, self.key, self.value = (
            torch.randn(tokens + unused, heads, SIZE) for heads in (HEADS, KV_HEADS, KV_HEADS)
        )
        self.texts = [torch.randn(2, length, KV_HEADS, SIZE) for _, length in sequences]  # keys and values of all
        for token, (row, place) in enumerate(self.places):
            self.texts[row][:, place] = torch.stack((self.key[token], self.value[token]))
        self.table = table
        self.common = vllm_modules.CommonAttentionMetadata(
            query_start_loc=self.starts, query_start_loc_cpu=self.starts, seq_lens=self.lengths, num_reqs=rows,
            num_actual_tokens=tokens, max_query_len=max(counts), max_seq_len=int(self.lengths.max()),
            block_table_tensor=table, slot_mapping=self.slots,
        )

    def cache(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """With the tokens before this step; noise elsewhere."""
        shape = attention.HoneAttentionBackend.get_kv_cache_shape(self.table.numel(), BLOCK, KV_HEADS, SIZE)
        cache = torch.randn(shape).to(dtype)
        for row, (count, length) in enumerate(self.sequences):
            for place in range(length - count):
                cache[self.table[row, place // BLOCK], :, place % BLOCK] = self.texts[row][:, place].to(dtype)
        return cache

    def wanted(self, window: int = 0, softcap: float = 0.0, through: Any = None, sinks: Any = None) -> Tensor:
        """The step's attention, of texts and not of caches. `through`: what a cache makes of keys and values."""
        out = torch.zeros(self.tokens, HEADS, SIZE)
        for row, (count, length) in enumerate(self.sequences):
            begin = int(self.starts[row])
            k, v = self.texts[row] if through is None else through(self.texts[row])
            out[begin : begin + count] = attended(
                self.query[begin : begin + count], k, v, SIZE**-0.5, window, softcap, length - count, sinks
            )
        return out


def layer_of(**scales: float) -> Any:
    one = {name: torch.tensor(scales.get(name, 1.0)) for name in ("_k_scale", "_v_scale")}
    return types.SimpleNamespace(layer_name="model.layers.0.attn", **one)


def config_of(impl: Any = None, **changes: Any) -> Any:
    """As much of a VllmConfig as is asked for."""
    given = {
        "speculative_config": None,
        "scheduler_config": types.SimpleNamespace(max_num_seqs=8, max_num_batched_tokens=160),
        "model_config": types.SimpleNamespace(max_model_len=256, dtype=torch.float32),
        "compilation_config": types.SimpleNamespace(
            cudagraph_capture_sizes=[1, 2, 4, 8],
            static_forward_context={"model.layers.0.attn": types.SimpleNamespace(impl=impl)},
        ),
    }
    return types.SimpleNamespace(**{**given, **changes})


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.made: dict = {}

        def prepared(description: Any, device: int) -> Operator:
            if description not in self.made:
                self.made[description] = Operator(description)
            return self.made[description]

        patch = mock.patch.object(operators, "prepared", prepared)
        patch.start()
        self.addCleanup(patch.stop)
        VLLM.attn_metadata = None

    def impl(self, **options: Any) -> Any:
        given = {"num_kv_heads": KV_HEADS, **options}
        made = attention.HoneAttentionImpl(HEADS, SIZE, SIZE**-0.5, **given)
        made.prepare(LIMITS, torch.float32, CPU)
        return made

    def builder(self, impl: Any, **changes: Any) -> Any:
        spec = types.SimpleNamespace(block_size=BLOCK)
        return attention.HoneMetadataBuilder(spec, ["model.layers.0.attn"], config_of(impl, **changes), CPU)

    def run_step(self, step: Step, impl: Any, cache: Tensor, builder: Any = None, layer: Any = None) -> Tensor:
        """As vLLM does: metadata, the update of the cache, attention."""
        builder, layer = builder or self.builder(impl), layer or layer_of()
        metadata = builder.build(0, step.common)
        VLLM.attn_metadata = {layer.layer_name: metadata}
        impl.do_kv_cache_update(layer, step.key, step.value, cache, step.slots)
        output = torch.full((step.query.shape[0], HEADS * SIZE), 7.0)
        found = impl.forward(layer, step.query, step.key, step.value, cache, metadata, output)
        self.assertIs(found, output)
        self.assertTrue((output[step.tokens :] == 7.0).all(), "tokens beyond the step's were written")
        return output[: step.tokens].view(-1, HEADS, SIZE)

    def calls(self, kind: type, **fields: Any) -> list:
        """Of operators whose description has these fields."""
        return [
            call
            for description, operator in self.made.items()
            for call in operator.calls
            if type(description) is kind and all(getattr(description, name) == value for name, value in fields.items())
        ]


class Signatures(unittest.TestCase):
    """Every method that vLLM calls has the parameters of vLLM's own."""

    PAIRS = (
        (attention.HoneAttentionBackend, vllm_modules.AttentionBackend),
        (attention.HoneMetadataBuilder, vllm_modules.AttentionMetadataBuilder),
        (attention.HoneAttentionImpl, vllm_modules.AttentionImpl),
        (linear_kernels.HoneMPLinearKernel, vllm_modules.MPLinearKernel),
        (linear_kernels.HoneFP8LinearKernel, vllm_modules.FP8ScaledMMLinearKernel),
        (quantization.HoneConfig, vllm_modules.QuantizationConfig),
        (quantization.HoneLinearMethod, vllm_modules.LinearMethodBase),
        (norm.HoneRMSNorm, vllm_modules.RMSNorm),
    )

    def test_they_are_those_of_the_base(self) -> None:
        seen = 0
        for ours, theirs in self.PAIRS:
            for name, method in vars(ours).items():
                made_by_us = name == "__init__" and ours.__module__ == quantization.__name__
                if made_by_us or not hasattr(theirs, name) or not inspect.isroutine(getattr(ours, name)):
                    continue
                wanted, found = (dict(inspect.signature(getattr(one, name)).parameters) for one in (theirs, ours))
                for one in (wanted, found):
                    one.pop("self", None)
                if any(one.kind == one.VAR_POSITIONAL for one in found.values()):
                    continue  # takes whatever comes
                with self.subTest(f"{ours.__name__}.{name}"):
                    self.assertEqual(list(found)[: len(wanted)], list(wanted))
                    seen += 1
        self.assertGreater(seen, 25)

    def test_nothing_abstract_is_left(self) -> None:
        for ours, _ in self.PAIRS:
            self.assertEqual(getattr(ours, "__abstractmethods__", frozenset()), frozenset(), ours)

    def test_defaults_of_an_attention_are_those_of_the_base(self) -> None:
        ours, theirs = (inspect.signature(one.__init__).parameters for one in self.PAIRS[2])
        for name, parameter in theirs.items():
            self.assertEqual(ours[name].default, parameter.default, name)


class Refusals(Case):
    GOOD = dict(
        head_size=128, dtype=torch.bfloat16, kv_cache_dtype="auto", block_size=16, use_mla=False, has_sink=False,
        use_sparse=False, use_mm_prefix=False, device_capability=vllm_modules.DeviceCapability(9, 0),
        attn_type="decoder",
    )  # fmt: skip

    def reasons(self, **changes: Any) -> List[str]:
        return attention.HoneAttentionBackend.validate_configuration(**{**self.GOOD, **changes})

    def test_what_is_served_has_no_reason_against_it(self) -> None:
        for change in (
            {}, {"kv_cache_dtype": "fp8"}, {"kv_cache_dtype": "fp8_e4m3"}, {"kv_cache_dtype": "bfloat16"},
            {"dtype": torch.float16}, {"dtype": torch.float32}, {"head_size": 64}, {"head_size": 80},
            {"head_size": 256}, {"block_size": 32}, {"block_size": 256}, {"kv_cache_dtype": None}, {"has_sink": True},
            {"device_capability": vllm_modules.DeviceCapability(7, 5)},
        ):  # fmt: skip
            self.assertEqual(self.reasons(**change), [], change)

    def test_what_no_operator_takes_is_refused_before_it_runs(self) -> None:
        for change, wanted in (
            ({"head_size": 576}, "head_size"),
            ({"head_size": 100}, "head_size"),
            ({"head_size": 0}, "head_size"),
            ({"kv_cache_dtype": "fp8_e5m2"}, "kv_cache_dtype"),
            ({"kv_cache_dtype": "float16"}, "a KV cache of float16 for queries of bfloat16"),
            ({"kv_cache_dtype": "fp8", "head_size": 72}, "head size 72 with a KV cache of fp8"),
            ({"block_size": 8}, "block_size"),
            ({"use_mla": True}, "MLA"),
            ({"use_sparse": True}, "sparse"),
            ({"use_mm_prefix": True}, "multimodal"),
            ({"attn_type": "encoder_only"}, "attention type"),
            ({"dtype": torch.float64}, "dtype"),
            ({"device_capability": vllm_modules.DeviceCapability(7, 0)}, "compute capability"),
        ):
            reasons = self.reasons(**change)
            self.assertEqual(len(reasons), 1, change)
            self.assertIn(wanted, reasons[0])

    def test_layers_that_are_none_of_ours_are_refused(self) -> None:
        for options, word in (
            ({"alibi_slopes": [1.0]}, "alibi_slopes"),
            ({"attn_type": "encoder"}, "attn_type"), ({"something_new": 3}, "something_new"),
        ):  # fmt: skip
            with self.assertRaisesRegex(NotImplementedError, f"^{word}: "):
                self.impl(**options)
        self.impl(sinks=None)
        with self.assertRaisesRegex(ValueError, r"^sinks: their shape is \[3\]; allowed is \[4\]"):
            self.impl(sinks=torch.zeros(3))

    def test_steps_that_are_none_of_ours_are_refused(self) -> None:
        impl, step = self.impl(), Step([(1, 5)])
        builder = self.builder(impl)
        step.common.causal = False
        with self.assertRaisesRegex(NotImplementedError, "^causal: False"):
            builder.build(0, step.common)
        with self.assertRaisesRegex(NotImplementedError, "^output_scale: it is given"):
            impl.forward(layer_of(), step.query, step.key, step.value, step.cache(), None, step.query, torch.ones(1))
        with self.assertRaisesRegex(ValueError, "^output: it is missing"):
            impl.forward(layer_of(), step.query, step.key, step.value, step.cache(), None)
        with self.assertRaisesRegex(ValueError, "^kv_cache: its blocks have 32 tokens; prepared is 16"):
            impl.do_kv_cache_update(layer_of(), step.key, step.value, torch.zeros(4, 2, 32, KV_HEADS, SIZE), step.slots)
        step.common.causal, step.common.slot_mapping = True, torch.zeros(161, dtype=torch.int64)
        with self.assertRaisesRegex(ValueError, "^slot_mapping: it has 161 tokens; prepared are 160"):
            builder.build(0, step.common)
        with self.assertRaisesRegex(NotImplementedError, "each layer"):
            attention.HoneAttentionBackend.get_kv_cache_stride_order(True)


class Attention(Case):
    def test_every_batch_gets_its_attention(self) -> None:
        for name, sequences, kinds in (
            ("decoding", [(1, 9), (1, 33), (1, 1)], (1, 0)),
            ("speculation", [(4, 9), (4, 33), (4, 4)], (1, 0)),
            ("prompts", [(9, 9), (21, 21)], (0, 1)),
            ("behind a prefix", [(9, 40), (5, 5)], (0, 1)),
            ("mixed", [(1, 20), (1, 17), (30, 30), (7, 50)], (1, 1)),
            ("mixed the other way", [(30, 30), (1, 20)], (0, 1)),
            ("a prompt of one part and decoding", [(3, 3), (1, 20)], (1, 1)),
            ("as many queries as a run takes, and one more", [(4, 10), (5, 10)], (1, 1)),
        ):
            with self.subTest(name):
                self.made.clear()
                step, impl = Step(sequences), self.impl()
                builder = self.builder(impl, speculative_config=types.SimpleNamespace(num_speculative_tokens=3))
                found = self.run_step(step, impl, step.cache(), builder)
                torch.testing.assert_close(found, step.wanted(), rtol=1e-4, atol=1e-5)
                calls = tuple(len(self.calls(hone.Attention, packed=packed)) for packed in (False, True))
                self.assertEqual(calls, kinds)

    def test_random_batches(self) -> None:
        generator = random.Random(5)
        for seed in range(25):
            count = generator.randint(1, 6)
            queries = [generator.choice((1, 1, 2, 4, generator.randint(1, 40))) for _ in range(count)]
            sequences = [(one, one + generator.choice((0, generator.randint(0, 60)))) for one in queries]
            kv_cache_dtype = generator.choice(("auto", "fp8"))
            with self.subTest(sequences=sequences, cache=kv_cache_dtype):
                if sum(queries) > LIMITS.tokens:
                    continue
                step = Step(sequences, seed, generator.choice((0, 2)), generator.choice((0, 5)))
                impl = self.impl(kv_cache_dtype=kv_cache_dtype)
                cache = step.cache(FP8).view(torch.uint8) if impl.fp8 else step.cache()
                found = self.run_step(step, impl, cache)
                through = (lambda text: text.to(FP8).float()) if impl.fp8 else None
                torch.testing.assert_close(found, step.wanted(through=through), rtol=1e-4, atol=1e-5)

    def test_windows_and_caps(self) -> None:
        step = Step([(1, 40), (4, 30), (25, 60)])
        found = self.run_step(step, self.impl(sliding_window=7), step.cache())
        torch.testing.assert_close(found, step.wanted(window=7), rtol=1e-4, atol=1e-5)
        found = self.run_step(step, self.impl(logits_soft_cap=2.0), step.cache())
        torch.testing.assert_close(found, step.wanted(softcap=2.0), rtol=1e-4, atol=1e-5)

    def test_sinks_count_in_every_part_of_a_step(self) -> None:
        sinks = torch.tensor([-1.0, 0.5, 2.0, 4.0]).to(torch.bfloat16)
        step = Step([(1, 40), (4, 30), (25, 60)])
        for word in ("auto", "fp8"):
            impl, cache = self.impl(sinks=sinks, kv_cache_dtype=word), step.cache()
            through = (lambda text: text.to(FP8).float()) if impl.fp8 else None
            found = self.run_step(step, impl, cache.to(FP8).view(torch.uint8) if impl.fp8 else cache)
            wanted = step.wanted(through=through, sinks=sinks.float())
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
            self.assertFalse(torch.allclose(found, step.wanted(through=through), rtol=1e-2, atol=1e-2))

    def test_an_fp8_cache_is_read_with_its_scales(self) -> None:
        step = Step([(1, 40), (37, 60), (16, 16)])
        impl, layer = self.impl(kv_cache_dtype="fp8"), layer_of(_k_scale=0.5, _v_scale=0.25)
        scales = torch.tensor([0.5, 0.25])[:, None, None, None]

        def through(text: Tensor) -> Tensor:
            return (text / scales).to(FP8).float() * scales

        cache = step.cache()
        codes = (cache / scales).to(FP8).view(torch.uint8)
        found = self.run_step(step, impl, codes, layer=layer)
        torch.testing.assert_close(found, step.wanted(through=through), rtol=1e-4, atol=1e-5)
        (decode,), (packed,) = (self.calls(hone.Attention, packed=one) for one in (False, True))
        self.assertEqual((decode["q"].shape[:2], packed["q"].shape[:1]), ((1, 1), (53,)))
        self.assertEqual((packed["q_starts"].tolist(), packed["q_len"]), ([0, 37, 53], 37))
        self.assertEqual(packed["kv_lengths"].tolist(), [60, 16])

    def test_memory_is_measured_without_metadata(self) -> None:
        impl, output = self.impl(), torch.ones(3, HEADS * SIZE)
        found = impl.forward(layer_of(), output, output, output, torch.empty(0), None, output)
        self.assertTrue(found is output and not output.any())
        impl.do_kv_cache_update(layer_of(), output, output, torch.empty(0), torch.zeros(3))

    def test_a_vllm_without_an_update_of_its_own_gets_it_with_the_attention(self) -> None:
        step = Step([(1, 9), (20, 33)])
        for shared in (None, "model.layers.3.attn"):
            impl, cache = self.impl(kv_sharing_target_layer_name=shared), step.cache()
            metadata = self.builder(impl).build(0, step.common)
            output = torch.zeros_like(step.query)
            with mock.patch.object(attention, "_UPDATES_APART", False):
                impl.forward(layer_of(), step.query, step.key, step.value, cache, metadata, output)
                self.assertFalse(impl.fused_rope_kvcache_supported())
            right = torch.allclose(output, step.wanted(), rtol=1e-4, atol=1e-5)
            self.assertEqual(right, shared is None)  # another layer has written where caches are shared


class Builder(Case):
    def test_it_prepares_everything_that_a_step_needs(self) -> None:
        impl = attention.HoneAttentionImpl(HEADS, SIZE, 1.0, KV_HEADS)
        self.builder(impl)
        before = set(self.made)
        self.assertEqual(len(before), 3)
        step = Step([(1, 20), (30, 30)])
        self.run_step(step, impl, step.cache())
        self.assertEqual(set(self.made), before)

    def test_limits_come_of_the_configuration(self) -> None:
        limits = batch.limits_of(config_of(), BLOCK)
        self.assertEqual(limits, (8, 160, 256, 1, BLOCK))
        speculative = types.SimpleNamespace(num_speculative_tokens=3)
        captured = types.SimpleNamespace(cudagraph_capture_sizes=[512])
        limits = batch.limits_of(config_of(speculative_config=speculative, compilation_config=captured), BLOCK)
        self.assertEqual(limits, (512, 512, 256, 4, BLOCK))

    def test_the_limits_of_large_servers_are_prepared(self) -> None:
        for limits in ((1024, 131072, 131072), (256, 8192, 1 << 20), (4096, 1024, 1 << 20)):
            for kv_dtype in ("same", "fp8"):
                heads = operators.Heads(64, 8, 128, "bf16", kv_dtype)
                Operator(operators.decode_description(heads, batch.Limits(*limits, 1, BLOCK)))
                packed = operators.packed_description(heads, batch.Limits(*limits, 1, BLOCK))
                self.assertLessEqual(min(limits[0], 256), packed.max_batch)
                Operator(packed)

    def test_a_step_of_more_sequences_than_an_operator_takes_is_several_calls(self) -> None:
        few = 2 * LIMITS.kv_len * KV_HEADS * SIZE
        step = Step([(1, 20)] * 5)
        for word in ("auto", "fp8"):
            with mock.patch.object(operators, "_MOST_ELEMENTS", few):
                impl, cache = self.impl(kv_cache_dtype=word), step.cache()
                through = (lambda text: text.to(FP8).float()) if impl.fp8 else None
                found = self.run_step(step, impl, cache.to(FP8).view(torch.uint8) if impl.fp8 else cache)
            torch.testing.assert_close(found, step.wanted(through=through), rtol=1e-4, atol=1e-5)
            self.assertEqual(len(self.calls(hone.Attention, packed=False)), 3)
            self.made.clear()

    def test_graphs_of_uniform_batches(self) -> None:
        support = attention.HoneMetadataBuilder.get_cudagraph_support
        kinds = vllm_modules.AttentionCGSupport
        few, many = kinds.UNIFORM_BATCH, kinds.UNIFORM_SINGLE_TOKEN_DECODE
        for more, wanted in ((None, few), (15, few), (16, many)):
            speculative = None if more is None else types.SimpleNamespace(num_speculative_tokens=more)
            self.assertIs(support(config_of(speculative_config=speculative), None), wanted)

    def test_what_a_graph_has_captured_is_right_when_it_is_replayed(self) -> None:
        """A graph reads the same memory with other values: what was captured is called again after the next build."""
        impl = self.impl()
        builder = self.builder(impl)
        self.assertEqual(builder.reorder_batch_threshold, 1)
        step = Step([(1, 3), (1, 5), (1, 9)], padding=1, unused=1)
        dummy = Step([(1, 1)] * 4, seed=9)
        int32 = torch.int32
        buffers = [torch.zeros(4, dtype=int32), torch.zeros(4, 16, dtype=int32), torch.zeros(4, dtype=torch.int64)]

        def fill(one: Step, common: Any) -> None:
            for buffer, value in zip(buffers, (one.lengths, one.table, one.slots)):
                buffer.copy_(value)
            common.seq_lens, common.block_table_tensor, common.slot_mapping = buffers

        fill(dummy, dummy.common)
        captured = builder.build_for_cudagraph_capture(dummy.common)
        self.assertEqual(captured.kv_len, LIMITS.kv_len)
        fill(step, step.common)
        built = builder.build(0, step.common)
        self.assertEqual((built.kv_len, built.decode.sequences), (9, 3))
        self.assertEqual(captured.slots.data_ptr(), built.slots.data_ptr())
        cache, output = step.cache(), torch.zeros(4, HEADS, SIZE)
        VLLM.attn_metadata = {layer_of().layer_name: captured}
        impl.do_kv_cache_update(layer_of(), step.key, step.value, cache, buffers[2])
        impl.forward(layer_of(), step.query, step.key, step.value, cache, captured, output)
        torch.testing.assert_close(output[:3], step.wanted(), rtol=1e-4, atol=1e-5)
        self.assertFalse(output[3].any())

    def test_no_cascade(self) -> None:
        self.assertFalse(self.builder(self.impl()).use_cascade_attention(32, [1], num_kv_heads=2))


class CacheUpdates(Case):
    def test_tokens_go_to_their_slots_and_padding_nowhere(self) -> None:
        step, impl = Step([(3, 20), (2, 2)], unused=3), self.impl()
        cache = step.cache()
        wanted = cache.clone()
        for token, (row, place) in enumerate(step.places):
            wanted[step.table[row, place // BLOCK], :, place % BLOCK] = step.texts[row][:, place]
        impl.do_kv_cache_update(layer_of(), step.key.flatten(1), step.value.flatten(1), cache, step.slots)
        self.assertTrue(torch.equal(cache, wanted))

    def test_the_steps_own_slots_are_used_where_they_are_of_this_mapping(self) -> None:
        step, impl = Step([(3, 20)]), self.impl()
        metadata = self.builder(impl).build(0, step.common)
        VLLM.attn_metadata = {layer_of().layer_name: metadata}
        for mapping, same in ((step.slots, True), (step.slots.clone(), False)):
            impl.do_kv_cache_update(layer_of(), step.key, step.value, step.cache(), mapping)
            given = self.calls(hone.RopeKvAppend)[-1]["slots"]
            self.assertEqual(given.data_ptr() == metadata.slots.data_ptr(), same)
            self.assertEqual(given.tolist(), mapping.tolist())
        VLLM.attn_metadata = [VLLM.attn_metadata]  # of two halves of a batch
        impl.do_kv_cache_update(layer_of(), step.key, step.value, step.cache(), step.slots)

    def test_rotation_and_update_in_one_call(self) -> None:
        for is_neox, rotary_dim, cache_dtype in ((True, SIZE, "auto"), (False, 16, "auto"), (True, SIZE, "fp8")):
            with self.subTest(is_neox=is_neox, cache=cache_dtype):
                step, impl = Step([(3, 20), (1, 9)]), self.impl(kv_cache_dtype=cache_dtype)
                positions = torch.tensor([place for _, place in step.places])
                angles = torch.rand(64, rotary_dim // 2) * 6
                table = torch.cat((angles.cos(), angles.sin()), -1)
                query, key, cache = step.query.clone(), step.key.clone(), step.cache()
                cache = cache.to(FP8).view(torch.uint8) if impl.fp8 else cache
                impl.do_rope_and_kv_cache_update(
                    layer_of(), query, key, step.value, positions, table, is_neox, cache, step.slots
                )
                style = "half" if is_neox else "interleaved"
                turned = [rotated(x, *table[positions].chunk(2, -1), style) for x in (step.query, step.key)]
                torch.testing.assert_close(query, turned[0])
                written = impl.caches(cache)[0][step.table[0, 1], 1:4]  # tokens 17 to 19 of the first sequence
                torch.testing.assert_close(written.float(), turned[1][:3].to(written.dtype).float())
        with self.assertRaisesRegex(NotImplementedError, r"^positions: they are \[3, 4\]"):
            impl.do_rope_and_kv_cache_update(
                layer_of(), query, key, step.value, torch.zeros(3, 4), table, True, cache, step.slots
            )

    def test_angles_are_made_once_for_a_table(self) -> None:
        table = torch.rand(9, 8).to(torch.bfloat16)
        first, second = attention.angles_of(table), attention.angles_of(table)
        self.assertIs(first[0], second[0])
        self.assertTrue(torch.equal(torch.cat(first, 1), table.float()))


class Dequantized:
    """Stands for hone.ops' calls of weights with codes: remembers them, and multiplies with what the codes stand
    for."""

    def __init__(self) -> None:
        self.calls: list = []

    def quantized_linear(
        self, x, codes, scales, format, group, out_features, activation, zeros=None, bias=None, residual=None,
        x_scales=None, norm_weight=None, epsilon=None, out_dtype=None,
    ):
        self.calls.append((format, group, zeros is not None, x_scales is not None))
        stored = StoredWeight(out_features, x.shape[-1], format, group, format == "fp8" and scales.numel() == 1)
        assert tuple(codes.shape) == stored.codes_shape and tuple(scales.shape) == stored.scales_shape
        weight = packing.dequantize(packing.Packed(codes, scales, zeros), stored, torch.float32)
        wide = x.float() if x_scales is None else x.float() * x_scales.view(-1, 1)
        assert activation == "none" and residual is None
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[out_dtype] if out_dtype else x.dtype
        return functional.linear(wide, weight, None if bias is None else bias.float()).to(dtype)


def words_of(codes: Tensor, bits: int, along: int) -> Tensor:
    """int32 words, as checkpoints have them."""
    count = 32 // bits
    pieces = codes.movedim(along, -1).unflatten(-1, (-1, count)).to(torch.int64)
    words = (pieces << (bits * torch.arange(count))).sum(-1)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32).movedim(-1, along).contiguous()


def parameter(data: Tensor, **places: int) -> Any:
    made = torch.nn.Parameter(data, requires_grad=False)
    vars(made).update(places)
    return made


class LinearKernels(Case):
    IN, OUT = 256, 96

    def config(self, **changes: Any) -> Any:
        given = dict(
            full_weight_shape=(512, self.OUT), partition_weight_shape=(self.IN, self.OUT), weight_type="uint4b8",
            act_type=torch.bfloat16, group_size=128, zero_points=False, has_g_idx=False,
        )  # fmt: skip
        return vllm_modules.MPLinearLayerConfig(**{**given, **changes})

    def test_what_it_refuses(self) -> None:
        can = linear_kernels.HoneMPLinearKernel.can_implement
        for change in ({}, {"group_size": -1}, {"group_size": 32}, {"weight_type": "uint4", "zero_points": True},
                       {"weight_type": "uint8b128", "group_size": -1}, {"act_type": torch.float16}):  # fmt: skip
            self.assertEqual(can(self.config(**change)), (True, None), change)
        for change, word in (
            ({"has_g_idx": True}, "desc_act"), ({"act_type": torch.float32}, "x of"),
            ({"group_size": 16}, "groups of 16"), ({"weight_type": "float4"}, "float4"),
            ({"group_size": 128, "partition_weight_shape": (192, 96)}, "divide 192"),
            ({"weight_type": "uint8b128"}, "8 bits"), ({"out_type": torch.float16}, "output"),
            ({"zero_points": True}, "uint4b8"), ({"partition_weight_shape": (2**20, 96)}, "up to"),
        ):  # fmt: skip
            held, reason = can(self.config(**change))
            self.assertFalse(held, change)
            self.assertIn(word, reason)

    def layer(self, bits: int, group: int, zeros: bool, gptq: bool) -> Tuple[Any, Tensor]:
        """Parameters as GPTQ [in, out] or compressed-tensors [out, in] has them, and the weight that they are."""
        groups = self.IN // group
        codes = torch.randint(0, 2**bits, (self.OUT, self.IN))
        scales = (torch.rand(self.OUT, groups) + 0.5).to(torch.bfloat16)
        points = torch.randint(0, 16, (self.OUT, groups)) if zeros else torch.full((self.OUT, groups), 2 ** (bits - 1))
        weight = (codes - points.repeat_interleave(group, 1)) * scales.float().repeat_interleave(group, 1)
        words, point_words = words_of(codes, bits, 1), words_of(points, 4, 0) if zeros else None
        layer = torch.nn.Module()
        if gptq:
            layer.w = parameter(words.t().contiguous(), input_dim=0, output_dim=1, packed_dim=0)
            layer.s = parameter(scales.t().contiguous(), input_dim=0, output_dim=1)
            if zeros:
                layer.z = parameter(point_words.t().contiguous(), input_dim=0, output_dim=1, packed_dim=1)
        else:
            layer.w = parameter(words, input_dim=1, output_dim=0, packed_dim=1)
            layer.s = parameter(scales, input_dim=1, output_dim=0)
            if zeros:
                layer.z = parameter(point_words, input_dim=1, output_dim=0, packed_dim=0)
        return layer, weight

    def test_checkpoints_weights_are_multiplied_with(self) -> None:
        torch.manual_seed(3)
        x, bias = torch.randn(5, self.IN).to(torch.bfloat16), torch.randn(self.OUT).to(torch.bfloat16)
        for bits, group, zeros in ((4, 128, False), (4, 32, True), (4, self.IN, True), (4, self.IN, False),
                                   (8, self.IN, False)):  # fmt: skip
            for gptq in (True, False):
                with self.subTest(bits=bits, group=group, zeros=zeros, gptq=gptq):
                    layer, weight = self.layer(bits, group, zeros, gptq)
                    kind = {4: "uint4" if zeros else "uint4b8", 8: "uint8b128"}[bits]
                    size = -1 if group == self.IN else group
                    config = self.config(weight_type=kind, group_size=size, zero_points=zeros)
                    kernel = linear_kernels.HoneMPLinearKernel(config, "w", "s", "z" if zeros else None)
                    kernel.process_weights_after_loading(layer)
                    recorded = Dequantized()
                    with mock.patch.object(linear_kernels, "calls", recorded):
                        found = kernel.apply_weights(layer, x, bias)
                    wanted = functional.linear(x.float(), weight, bias.float()).to(torch.bfloat16)
                    torch.testing.assert_close(found, wanted)
                    wanted_call = ("w4a16" if bits == 4 else "w8a16", 0 if group == self.IN else group, zeros, False)
                    self.assertEqual(recorded.calls, [wanted_call])
                    on_meta = kernel.apply_weights(layer.to("meta"), x.to("meta"), bias.to("meta"))  # Hone's own check
                    self.assertEqual((on_meta.shape, on_meta.dtype), (found.shape, found.dtype))

    def test_columns_beyond_a_weight_count_as_zero(self) -> None:
        codes, zeros = torch.full((2, 96), 3, dtype=torch.uint8), torch.tensor([[5], [9]], dtype=torch.uint8)
        for group, wanted in ((0, [[5] * 32, [9] * 32]), (32, [[8] * 32] * 2)):
            points = zeros.expand(2, 96 // group if group else 1)
            packed = repack.packed_4(codes, torch.ones(points.shape), points, StoredWeight(2, 96, "w4a16", group))
            self.assertEqual(packing.unpack_w4(packed.codes, 2, 128)[:, 96:].tolist(), wanted)

    def test_words_are_unpacked_in_either_direction(self) -> None:
        codes = torch.randint(0, 16, (16, 24), dtype=torch.uint8)
        for along in (0, 1):
            self.assertTrue(torch.equal(repack.unpacked(words_of(codes, 4, along), 4, along), codes))

    def test_fp8(self) -> None:
        kernel_type = linear_kernels.HoneFP8LinearKernel
        self.assertTrue(kernel_type.is_supported(90)[0] and kernel_type.is_supported()[0])
        self.assertFalse(kernel_type.is_supported(70)[0])

        def config(weight: tuple, x: tuple, out_dtype: Any = torch.bfloat16) -> Any:
            keys = [types.SimpleNamespace(scale=types.SimpleNamespace(group_shape=shape)) for shape in (weight, x)]
            return types.SimpleNamespace(weight_quant_key=keys[0], activation_quant_key=keys[1], out_dtype=out_dtype)

        for given in (((-1, -1), (1, -1)), ((-1, 1), (-1, -1)), ((1, -1), (1, -1))):
            self.assertTrue(kernel_type.can_implement(config(*given))[0], given)
        for given, word in ((((128, 128), (1, 128)), "weight"), (((-1, -1), (1, 128)), "scales of x"),
                            (((-1, -1), (1, -1), torch.float32), "output")):  # fmt: skip
            held, reason = kernel_type.can_implement(config(*given))
            self.assertTrue(not held and word in reason, reason)
        self.check_fp8(kernel_type(config((-1, 1), (1, -1)), []))

    def check_fp8(self, kernel: Any) -> None:
        torch.manual_seed(4)
        weight, x, bias = torch.randn(self.OUT, self.IN).to(FP8), torch.randn(6, self.IN).to(FP8), torch.randn(self.OUT)
        bias = bias.to(torch.bfloat16)
        for x_scales in (torch.tensor([0.5]), torch.rand(6, 1)):
            for scales in (torch.tensor([2.0]), torch.rand(self.OUT, 1)):
                recorded, shape = Dequantized(), [2, 3, self.OUT]
                given = {"A": x, "B": weight.t(), "As": x_scales, "Bs": scales, "bias": bias}
                with mock.patch.object(linear_kernels, "calls", recorded):
                    found = kernel.apply_scaled_mm(**given, out_dtype=torch.bfloat16, output_shape=shape)
                on_meta = kernel.apply_scaled_mm(
                    **{name: tensor.to("meta") for name, tensor in given.items()}, out_dtype=torch.bfloat16,
                    output_shape=shape,
                )  # fmt: skip
                self.assertEqual((on_meta.shape, on_meta.dtype), (found.shape, found.dtype))
                wanted = functional.linear(x.float() * x_scales, weight.float() * scales, bias.float())
                torch.testing.assert_close(found, wanted.to(torch.bfloat16).view(shape))
                self.assertEqual(recorded.calls, [("fp8", 0, False, True)])


class Quantization(Case):
    def test_a_layer_is_loaded_quantized_and_multiplied_with(self) -> None:
        torch.manual_seed(6)
        x = torch.randn(4, 128).to(torch.bfloat16)
        for name, error in (("hone_w4a16", 0.12), ("hone_w8a16", 0.02), ("hone_w8a8", 0.02), ("hone_fp8", 0.05)):
            with self.subTest(name):
                config = quantization.CONFIGS[name].from_config({})
                self.assertEqual(config.get_name(), name)
                layer = vllm_modules.LinearBase()
                method = config.get_quant_method(layer, "model.layers.0.mlp.down_proj")
                method.create_weights(layer, 128, [48, 16], 256, 128, torch.bfloat16, weight_loader="loader")
                self.assertEqual((tuple(layer.weight.shape), layer.weight.weight_loader), ((64, 128), "loader"))
                weight = torch.randn(64, 128).to(torch.bfloat16)
                layer.weight.data.copy_(weight)
                method.process_weights_after_loading(layer)
                self.assertEqual(sorted(dict(layer.named_parameters())), ["weight", "weight_scale"])
                with mock.patch.object(quantization, "calls", Dequantized()):
                    found = method.apply(layer, x).float()
                wanted = functional.linear(x.float(), weight.float())
                self.assertLess(float((found - wanted).norm() / wanted.norm()), error)
                self.assertEqual(method.apply(layer.to("meta"), x.to("meta")).shape, (4, 64))  # Hone's own check

    def test_what_stays_as_it_is(self) -> None:
        config = quantization.CONFIGS["hone_w4a16"].from_config({"group": 64, "ignored_layers": ["lm_head"]})
        self.assertIsNone(config.get_quant_method(torch.nn.Linear(2, 2), "model.embed"))
        method = config.get_quant_method(vllm_modules.LinearBase(), "model.lm_head")
        self.assertIsInstance(method, vllm_modules.UnquantizedLinearMethod)
        self.assertEqual(config.get_quant_method(vllm_modules.LinearBase(), "model.layers.0.qkv").group, 64)
        with self.assertRaisesRegex(ValueError, "^group: 64; allowed are those that divide 96"):
            config.get_quant_method(vllm_modules.LinearBase(), "a").create_weights(
                torch.nn.Module(), 96, [64], 96, 64, torch.bfloat16
            )


class Norm(Case):
    def test_it_runs_ours_and_leaves_the_rest_to_vllm(self) -> None:
        x, residual = torch.randn(3, 64), torch.randn(3, 64)
        made = norm.HoneRMSNorm(64, 1e-5)
        stand_in = types.SimpleNamespace(
            rms_norm=lambda x, weight, epsilon: ("norm", epsilon),
            rms_norm_residual=lambda x, residual, weight, epsilon: ("both", residual is not None),
        )
        with mock.patch.object(norm, "calls", stand_in):
            self.assertEqual(made.forward_cuda(x), ("norm", 1e-5))
            self.assertEqual(made.forward_cuda(x, residual), ("both", True))
            for other in ((x.double(),), (x.bfloat16(),), (x, residual.double()), (x[:, :32],)):
                self.assertEqual(made.forward_cuda(*other), "vLLM's own")
            self.assertEqual(norm.HoneRMSNorm(64, 1e-5, 32).forward_cuda(x), "vLLM's own")


class Registering(unittest.TestCase):
    def setUp(self) -> None:
        hone.vllm._done.clear()
        vllm_modules.CustomOp.oot.clear()
        for registered in (VLLM.backends, VLLM.linear_kernels, VLLM.configs):
            registered.clear()

    def register(self, **environment: str) -> None:
        with mock.patch.dict(os.environ, environment):
            hone.vllm.register()

    def test_by_default_nothing_that_runs_unasked(self) -> None:
        self.register()
        self.register()  # vLLM may call it again
        path = VLLM.backends[vllm_modules.AttentionBackendEnum.CUSTOM]
        module, _, name = path.rpartition(".")
        self.assertIs(getattr(importlib.import_module(module), name), attention.HoneAttentionBackend)
        self.assertEqual(attention.HoneAttentionBackend.get_name(), "CUSTOM")
        self.assertEqual([kind for _, _, kind in VLLM.linear_kernels], ["mp", "fp8"])
        self.assertEqual(sorted(VLLM.configs), ["hone_fp8", "hone_w4a16", "hone_w8a16", "hone_w8a8"])
        self.assertEqual(vllm_modules.CustomOp.oot, {})

    def test_the_environment_chooses(self) -> None:
        self.register(HONE_VLLM="off")
        self.assertEqual((VLLM.backends, VLLM.linear_kernels, VLLM.configs), ({}, [], {}))
        self.register(HONE_VLLM="norm, attention", HONE_VLLM_ATTENTION="FLASH_ATTN")
        self.assertEqual(list(VLLM.backends), [vllm_modules.AttentionBackendEnum.FLASH_ATTN])
        self.assertEqual((list(vllm_modules.CustomOp.oot), norm.HoneRMSNorm.name), (["RMSNorm"], "rms_norm"))
        self.assertEqual(VLLM.configs, {})
        with mock.patch.dict(os.environ, {"HONE_VLLM_ATTENTION": "FLASH_ATTN"}):
            self.assertEqual(attention.HoneAttentionBackend.get_name(), "FLASH_ATTN")
        with mock.patch.dict(os.environ, {"HONE_VLLM": "all"}):
            self.assertEqual(settings.parts(), settings.PARTS)

    def test_words_that_mean_nothing_are_errors(self) -> None:
        with self.assertRaisesRegex(ValueError, "^HONE_VLLM: 'atention'; allowed are 'all', 'off'"):
            self.register(HONE_VLLM="atention")
        with self.assertRaisesRegex(ValueError, "^HONE_VLLM_ATTENTION: 'a b'"):
            self.register(HONE_VLLM_ATTENTION="a b")

    def test_another_interface_is_a_warning_and_the_rest_is_registered(self) -> None:
        name = "vllm.v1.attention.backends.registry"
        with mock.patch.dict(sys.modules, {name: types.ModuleType(name)}):
            with self.assertLogs("hone.vllm", "WARNING") as logs:
                self.register()
        said = "Hone leaves out attention: this vLLM has another interface, .*AttentionBackendEnum"
        self.assertRegex(logs.output[0], said)
        self.assertEqual((len(VLLM.linear_kernels), VLLM.backends), (2, {}))
        with self.assertLogs("hone.vllm", "WARNING"):
            self.register(HONE_VLLM_ATTENTION="NO_SUCH_BACKEND")


class Check(Case):
    """The command, with formulas in place of both sides' kernels."""

    SMALL = {"decode": [(1, 20)] * 3, "few": [(4, 20), (4, 9)], "mixed": [(1, 20), (23, 30)]}

    def setUp(self) -> None:
        super().setUp()
        fa_utils, custom_ops = sys.modules["vllm.v1.attention.backends.fa_utils"], sys.modules["vllm._custom_ops"]
        fa_utils.flash_attn_varlen_func = self.theirs
        custom_ops.rms_norm = lambda out, x, weight, epsilon: out.copy_(
            functional.rms_norm(x, (x.shape[-1],), weight, epsilon)
        )
        from hone._torch.registered import calls

        norms = mock.patch.object(
            calls, "rms_norm", lambda x, weight, epsilon: functional.rms_norm(x, (x.shape[-1],), weight, epsilon)
        )
        for patch in (norms, mock.patch.multiple(check, HEADS=4, KV_HEADS=2, HEAD_SIZE=SIZE, REPEATS=1,
                                                 BATCHES=self.SMALL)):  # fmt: skip
            patch.start()
            self.addCleanup(patch.stop)

    def theirs(
        self, q, k, v, out, cu_seqlens_q, max_seqlen_q, seqused_k, max_seqlen_k, softmax_scale, causal, block_table
    ):
        out.zero_()
        for row, length in enumerate(seqused_k.tolist()):
            begin, end = int(cu_seqlens_q[row]), int(cu_seqlens_q[row + 1])
            keys, values = (cache[block_table[row].long()].flatten(0, 1)[:length].float() for cache in (k, v))
            out[begin:end] = attended(q[begin:end], keys, values, softmax_scale, 0, None, length - (end - begin))

    def test_all_cases_pass_where_both_are_right(self) -> None:
        rows = check.check(CPU, torch.float32)
        self.assertEqual(len(rows), 2 * len(self.SMALL) + 1)
        for row in rows:
            self.assertTrue(row.passed and row.error < 1e-4 and row.their_error < 1e-4, str(row))
            self.assertRegex(str(row), r" Hone .* us   vLLM .* us   ok$")

    def test_wrong_numbers_are_seen(self) -> None:
        with mock.patch.object(Operator, "attend", lambda self, q, out=None, **_: q.zero_() if out is None else out):
            rows = check.check(CPU, torch.float32)
        self.assertFalse(any(row.passed for row in rows[:-1]))
        self.assertRegex(str(rows[0]), "WRONG$")
        self.assertEqual(check.largest_error(torch.tensor([float("nan")]), torch.ones(1)), float("inf"))

    def test_without_a_gpu_the_command_says_so(self) -> None:
        from hone.vllm import __main__ as command

        with mock.patch.object(sys, "argv", ["hone.vllm", "check"]), self.assertRaisesRegex(SystemExit, "finds no GPU"):
            command.main()
        with mock.patch.object(sys, "argv", ["hone.vllm"]), contextlib.redirect_stderr(io.StringIO()):
            self.assertRaises(SystemExit, command.main)


if __name__ == "__main__":
    unittest.main()

"""Hone as a plugin of SGLang, with a stand-in for SGLang written from its documents, on the CPU: that its batches lead
to the right calls of Hone's operators, and what these compute is what the batches ask for. As vllm_test.py. Ends with
77 where there is no PyTorch."""

from __future__ import annotations

import inspect
import random
import sys
import types
import unittest
from abc import ABC, abstractmethod
from typing import Any, Dict, List, Tuple
from unittest import mock

import fakes  # finds the package

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed")
    sys.exit(77)

from fakes.serving import Operator, attended

import hone
import hone.sglang
from hone._serving import operators

HEADS, KV_HEADS, SIZE, REQUESTS, CONTEXT = 4, 2, 32, 8, 128


class AttentionBackend(ABC):
    """SGLang's, as far as a backend has to know it."""

    @abstractmethod
    def init_forward_metadata(self, forward_batch): ...

    def init_cuda_graph_state(self, max_bs, max_num_tokens):
        raise NotImplementedError

    def init_forward_metadata_capture_cuda_graph(
        self, bs, num_tokens, req_pool_indices, seq_lens, encoder_lens, forward_mode, spec_info
    ):
        raise NotImplementedError

    def init_forward_metadata_replay_cuda_graph(
        self, bs, req_pool_indices, seq_lens, seq_lens_sum, encoder_lens, forward_mode, spec_info, seq_lens_cpu
    ):
        raise NotImplementedError

    def get_cuda_graph_seq_len_fill_value(self):
        raise NotImplementedError

    def forward_decode(self, q, k, v, layer, forward_batch, save_kv_cache=True):
        raise NotImplementedError

    def forward_extend(self, q, k, v, layer, forward_batch, save_kv_cache=True):
        raise NotImplementedError


FACTORIES: Dict[str, Any] = {}


def install() -> Any:
    """Puts the stand-in where `import sglang` finds it; returns its server_args."""
    server_args = types.ModuleType("sglang.srt.server_args")
    server_args.ATTENTION_BACKEND_CHOICES = ["fa3", "flashinfer"]
    server_args.add_attention_backend_choices = server_args.ATTENTION_BACKEND_CHOICES.extend
    registry = types.ModuleType("sglang.srt.layers.attention.attention_registry")
    registry.register_attention_backend = lambda name: lambda factory: FACTORIES.setdefault(name, factory)
    base = types.ModuleType("sglang.srt.layers.attention.base_attn_backend")
    base.AttentionBackend = AttentionBackend
    packages = ("sglang", "sglang.srt", "sglang.srt.layers", "sglang.srt.layers.attention")
    for module in (*map(types.ModuleType, packages), server_args, registry, base):
        module.__path__ = []
        sys.modules[module.__name__] = module
    sys.modules["sglang.srt"].server_args = server_args
    return server_args


SERVER_ARGS = install()

from hone.sglang import backend, batch


class Mode:
    def __init__(self, decodes: bool) -> None:
        self.decodes = decodes

    def is_decode_or_idle(self) -> bool:
        return self.decodes


class Pool:
    """Keys and values of all tokens."""

    def __init__(self, places: int, dtype: torch.dtype = torch.float32) -> None:
        self.caches = [torch.randn(places, KV_HEADS, SIZE).to(dtype) for _ in range(2)]

    def set_kv_buffer(self, layer, loc, cache_k, cache_v, k_scale=None, v_scale=None) -> None:
        for cache, new in zip(self.caches, (cache_k, cache_v)):
            cache[loc] = new.view(-1, KV_HEADS, SIZE).to(cache.dtype)

    def get_kv_buffer(self, layer_id):
        return self.caches


def layer_of(**changes: Any) -> Any:
    given = dict(
        layer_id=0, tp_q_head_num=HEADS, tp_k_head_num=KV_HEADS, head_dim=SIZE, qk_head_dim=SIZE, v_head_dim=SIZE,
        scaling=SIZE**-0.5, logit_cap=0.0, sliding_window_size=-1, is_cross_attention=False,
        attn_type=types.SimpleNamespace(value="decoder"),
    )  # fmt: skip
    return types.SimpleNamespace(**{**given, **changes})


def runner_of(page_size: int = 1, **changes: Any) -> Any:
    """With a table that gives each request whole pages, in any order."""
    pages = torch.randperm(REQUESTS * CONTEXT // page_size)
    places = (pages[:, None] * page_size + torch.arange(page_size)).view(REQUESTS, CONTEXT).to(torch.int32)
    arguments = dict(chunked_prefill_size=96, max_prefill_tokens=16384, max_running_requests=None)
    return types.SimpleNamespace(
        req_to_token_pool=types.SimpleNamespace(req_to_token=places), page_size=page_size,
        model_config=types.SimpleNamespace(context_len=CONTEXT),
        server_args=types.SimpleNamespace(**{**arguments, **changes}),
    )  # fmt: skip


class Batch:
    """Requests of (queries, all tokens), as SGLang's ForwardBatch, with the keys and values of the texts."""

    def __init__(self, runner: Any, sequences: List[Tuple[int, int]], decodes: bool, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.sequences = sequences
        rows = torch.randperm(REQUESTS)[: len(sequences)]
        table = runner.req_to_token_pool.req_to_token
        counts = [count for count, _ in sequences]
        self.starts = [sum(counts[:i]) for i in range(len(counts))]
        self.q, self.k, self.v = (torch.randn(sum(counts), heads * SIZE) for heads in (HEADS, KV_HEADS, KV_HEADS))
        self.texts = [torch.randn(2, length, KV_HEADS, SIZE) for _, length in sequences]
        pool = Pool(REQUESTS * CONTEXT + runner.page_size)
        places = []
        for (count, length), begin, row, text in zip(sequences, self.starts, rows, self.texts):
            new = [one[begin : begin + count].view(-1, KV_HEADS, SIZE) for one in (self.k, self.v)]
            text[:, length - count :] = torch.stack(new)
            for cache, one in zip(pool.caches, text):
                cache[table[row, : length - count].long()] = one[: length - count]
            places += table[row, length - count : length].tolist()
        lengths = torch.tensor([length for _, length in sequences])
        self.forward = types.SimpleNamespace(
            seq_lens=lengths, seq_lens_cpu=lengths, req_pool_indices=rows, extend_seq_lens_cpu=counts,
            out_cache_loc=torch.tensor(places), token_to_kv_pool=pool, forward_mode=Mode(decodes), spec_info=None,
        )  # fmt: skip

    def wanted(self, window: int = 0, softcap: float = 0.0, sinks: Any = None) -> torch.Tensor:
        parts = [
            attended(self.q[begin : begin + count].view(-1, HEADS, SIZE), *text, SIZE**-0.5, window, softcap,
                     length - count, sinks)
            for (count, length), begin, text in zip(self.sequences, self.starts, self.texts)
        ]  # fmt: skip
        return torch.cat(parts).flatten(1)


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

    def run_batch(
        self, runner: Any, one: Batch, decodes: bool, others: Dict[str, Any] = {}, **layer: Any
    ) -> torch.Tensor:
        made = backend.HoneAttnBackend(runner)
        made.init_forward_metadata(one.forward)
        forward = made.forward_decode if decodes else made.forward_extend
        return forward(one.q, one.k, one.v, layer_of(**layer), one.forward, **others)


class Registering(unittest.TestCase):
    def test_its_name_becomes_a_choice(self) -> None:
        hone.sglang.register()
        hone.sglang.register()
        self.assertEqual(SERVER_ARGS.ATTENTION_BACKEND_CHOICES.count("hone"), 1)
        self.assertIsInstance(FACTORIES["hone"](runner_of()), backend.HoneAttnBackend)

    def test_another_interface_is_a_warning(self) -> None:
        with mock.patch.object(SERVER_ARGS, "ATTENTION_BACKEND_CHOICES", None, create=True):
            del SERVER_ARGS.ATTENTION_BACKEND_CHOICES
            with self.assertLogs("hone.sglang", "WARNING"):
                hone.sglang.register()
            SERVER_ARGS.ATTENTION_BACKEND_CHOICES = []

    def test_signatures_begin_with_those_of_the_base(self) -> None:
        seen = 0
        for name, method in vars(AttentionBackend).items():
            if inspect.isfunction(method):
                wanted = list(inspect.signature(method).parameters)
                found = list(inspect.signature(getattr(backend.HoneAttnBackend, name)).parameters)
                self.assertEqual(found[: len(wanted)], wanted, name)
                seen += 1
        self.assertEqual(seen, 7)


class Attention(Case):
    def test_random_batches(self) -> None:
        generator = random.Random(7)
        for seed in range(16):
            decodes = seed % 2 == 0
            runner = runner_of(generator.choice((1, 16)))
            counts = [1 if decodes else generator.choice((1, generator.randint(1, 40))) for _ in range(4)]
            sequences = [(count, count + generator.choice((0, generator.randint(0, 60)))) for count in counts]
            with self.subTest(sequences=sequences, page_size=runner.page_size):
                one = Batch(runner, sequences, decodes, seed)
                found = self.run_batch(runner, one, decodes)
                torch.testing.assert_close(found, one.wanted(), rtol=1e-4, atol=1e-5)

    def test_windows_and_caps(self) -> None:
        runner = runner_of(16)
        for decodes, sequences in ((True, [(1, 40), (1, 9)]), (False, [(12, 40), (3, 3)])):
            one = Batch(runner, sequences, decodes)
            found = self.run_batch(runner, one, decodes, sliding_window_size=6)  # and its own key
            torch.testing.assert_close(found, one.wanted(window=7), rtol=1e-4, atol=1e-5)
            found = self.run_batch(runner, one, decodes, logit_cap=2.0)
            torch.testing.assert_close(found, one.wanted(softcap=2.0), rtol=1e-4, atol=1e-5)

    def test_sinks_count(self) -> None:
        runner, sinks = runner_of(16), torch.tensor([-1.0, 0.5, 2.0, 4.0]).to(torch.bfloat16)
        for decodes, sequences in ((True, [(1, 40), (1, 9)]), (False, [(12, 40), (3, 3)])):
            one = Batch(runner, sequences, decodes)
            found = self.run_batch(runner, one, decodes, {"sinks": sinks})
            torch.testing.assert_close(found, one.wanted(sinks=sinks.float()), rtol=1e-4, atol=1e-5)

    def test_a_graph_reads_what_the_next_step_has(self) -> None:
        for page_size in (1, 16):
            runner = runner_of(page_size)
            made, mode = backend.HoneAttnBackend(runner), Mode(True)
            made.init_cuda_graph_state(4, 4)
            ones = torch.full((4,), made.get_cuda_graph_seq_len_fill_value())
            made.init_forward_metadata_capture_cuda_graph(4, 4, torch.zeros(4).long(), ones, None, mode, None)
            captured = made.step
            one = Batch(runner, [(1, 40), (1, 9), (1, 1), (1, 100)], True)
            batch_of = one.forward
            made.init_forward_metadata_replay_cuda_graph(
                4, batch_of.req_pool_indices, batch_of.seq_lens, 150, None, mode, None, batch_of.seq_lens_cpu
            )
            self.assertIs(made.step, captured)
            found = made.forward_decode(one.q, one.k, one.v, layer_of(), batch_of)
            torch.testing.assert_close(found, one.wanted(), rtol=1e-4, atol=1e-5)

    def test_what_is_refused(self) -> None:
        runner = runner_of()
        one = Batch(runner, [(1, 5)], True)
        decoder = types.SimpleNamespace(value="encoder_only")
        for change, word in (({"attn_type": decoder}, "attention"), ({"is_cross_attention": True}, "attention"),
                             ({"v_head_dim": 16}, "v_head_dim")):  # fmt: skip
            with self.assertRaisesRegex(NotImplementedError, f"^{word}: "):
                self.run_batch(runner, one, True, **change)
        made = backend.HoneAttnBackend(runner)
        with self.assertRaisesRegex(ValueError, "has not been called"):
            made.forward_decode(one.q, one.k, one.v, layer_of(), one.forward)
        made.init_forward_metadata(one.forward)
        with self.assertRaisesRegex(NotImplementedError, "^something_new: it is given"):
            made.forward_decode(one.q, one.k, one.v, layer_of(), one.forward, something_new=torch.zeros(4))
        with self.assertRaisesRegex(NotImplementedError, "^kv cache: its dtype is torch.float8_e4m3fn"):
            one.forward.token_to_kv_pool = Pool(REQUESTS * CONTEXT, torch.float8_e4m3fn)
            made.forward_decode(one.q, one.k, one.v, layer_of(), one.forward, save_kv_cache=False)
        one.forward.spec_info = object()
        with self.assertRaisesRegex(NotImplementedError, "^spec_info"):
            made.init_forward_metadata(one.forward)
        with self.assertRaisesRegex(NotImplementedError, "^forward_mode"):
            made.init_forward_metadata_capture_cuda_graph(1, 1, torch.zeros(1), torch.ones(1), None, Mode(False), None)

    def test_limits(self) -> None:
        for changes, tokens, sequences in (
            ({}, 96, 8), ({"chunked_prefill_size": -1}, 16384, 8),
            ({"chunked_prefill_size": None, "max_prefill_tokens": 5, "max_running_requests": 3}, CONTEXT, 3),
        ):  # fmt: skip
            limits = backend.HoneAttnBackend(runner_of(4, **changes)).limits
            self.assertEqual(limits, (sequences, tokens, CONTEXT, 1, 4))

    def test_a_process_without_work(self) -> None:
        made = backend.HoneAttnBackend(runner_of())
        made.init_forward_metadata(types.SimpleNamespace(seq_lens=torch.zeros(0), spec_info=None))
        self.assertIsNone(made.step)


class Pages(unittest.TestCase):
    def test_places_become_pages(self) -> None:
        places = torch.tensor([[8, 9, 10, 11, 0, 1, 2, 3], [4, 5, 6, 7, 12, 13, 14, 15]])
        self.assertEqual(batch.pages_of(places, 4).tolist(), [[2, 0], [1, 3]])
        self.assertEqual(batch.pages_of(places, 1).tolist(), places.tolist())
        self.assertEqual(batch.paged(torch.zeros(17, 2, 8), 4).shape, (4, 4, 2, 8))


if __name__ == "__main__":
    unittest.main()

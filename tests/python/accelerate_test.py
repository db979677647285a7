"""hone.accelerate() and hone.restore() with transformers on the CPU: formulas stand in for the kernels. Ends with 77 where
PyTorch or transformers is missing."""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import json
import pickle
import runpy
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import fakes  # finds the package

try:
    import torch
    import transformers
except ImportError:
    print("skipped: PyTorch or transformers is not installed")
    sys.exit(77)

from fakes import quantizers
from fakes.formulas import Formulas, Replayed

import hone
import hone._accelerated.classes  # what is patched below
from hone._accelerated import layers, rotation, runner, weights
from hone._accelerated.cache import HoneCache
from hone.errors import HoneWarning

transformers.logging.set_verbosity_error()
torch.set_num_threads(1)  # models are so small that several cost more than they bring

SIZES = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 100,
    "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
GROUPED = {**SIZES, "num_key_value_heads": 2}
CONFIGS = {
    "llama": lambda: transformers.LlamaConfig(**GROUPED),
    "llama3": lambda: transformers.LlamaConfig(
        **GROUPED, attention_bias=True,
        rope_parameters={"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 32},
    ),
    "mistral": lambda: transformers.MistralConfig(**GROUPED, sliding_window=7),
    "qwen2": lambda: transformers.Qwen2Config(**GROUPED, tie_word_embeddings=True),
    "qwen2_windows": lambda: transformers.Qwen2Config(
        **GROUPED, use_sliding_window=True, sliding_window=6, max_window_layers=1
    ),
    "qwen3": lambda: transformers.Qwen3Config(**GROUPED, head_dim=32),
    "mixtral": lambda: transformers.MixtralConfig(
        **GROUPED, num_local_experts=4, num_experts_per_tok=2, sliding_window=9
    ),
    "qwen3_moe": lambda: transformers.Qwen3MoeConfig(
        **GROUPED, head_dim=32, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=48, norm_topk_prob=False,
        mlp_only_layers=[1],
    ),
    "gemma2": lambda: transformers.Gemma2Config(
        **GROUPED, head_dim=16, sliding_window=6, attn_logit_softcapping=5.0, final_logit_softcapping=3.0,
        query_pre_attn_scalar=24,
    ),
    "phi3": lambda: transformers.Phi3Config(
        **GROUPED, rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
    ),
    "gpt2": lambda: transformers.GPT2Config(
        n_embd=64, n_layer=3, n_head=4, vocab_size=100, n_positions=128, pad_token_id=0, bos_token_id=1, eos_token_id=2
    ),
}  # fmt: skip
IDS = torch.tensor([[5, 9, 17, 33, 60, 7, 81, 12], [11, 3, 98, 41, 22, 75, 6, 50]])
LEFT = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1], [1] * 8])
LONG = torch.arange(3, 3 + 2 * 21).view(2, 21)
GREEDY = {"do_sample": False, "max_new_tokens": 10, "min_new_tokens": 10}


def made(name: str, **options: Any) -> Any:
    """A model with weights that are no two alike, norms and biases, too."""
    torch.manual_seed(0)
    config = CONFIGS[name]()
    kind = transformers.AutoModelForCausalLM
    options.setdefault("attn_implementation", "eager" if name == "gemma2" else "sdpa")
    model = kind.from_config(config, **options).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "norm" in key or "ln_" in key:
                parameter.add_(torch.rand_like(parameter) - 0.5)
            else:
                parameter.copy_(torch.randn_like(parameter) * (0.3 if parameter.dim() == 1 else 0.15))
    model.generation_config.pad_token_id = 0
    return model


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.formulas = Formulas()
        for module in (weights, layers):
            self.patch(module, "calls", self.formulas)
        self.patch(weights, "expert_routing", self.formulas.expert_routing)
        self.patch(runner, "DEVICES", ("cpu",))
        self.patch(runner, "Captured", Replayed)
        context = warnings.catch_warnings()
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        warnings.simplefilter("error", HoneWarning)

    def patch(self, module: Any, name: str, stand_in: Any) -> None:
        patch = mock.patch.object(module, name, stand_in)
        patch.start()
        self.addCleanup(patch.stop)

    def pair(self, name: str, **options: Any) -> tuple:
        """A model as it is, and the same accelerated."""
        plain, fast = made(name), made(name)
        hone.accelerate(fast, **{"max_batch": 8, "max_tokens": 64, **options})
        return plain, fast

    def assert_near(self, found: Any, wanted: Any) -> None:
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


class Generates(Case):
    """The same tokens as the model before."""

    def check(self, name: str, *arguments: Any, **options: Any) -> Any:
        plain, fast = self.pair(name)
        wanted = plain.generate(*arguments, **options)
        self.formulas.called.clear()
        found = fast.generate(*arguments, **options)
        self.assertTrue(torch.equal(found, wanted), f"{found}\n{wanted}")
        self.assertGreater(self.formulas.called["attention_with_cache"], 0)
        return fast

    def test_greedily_short_and_long_prompts(self) -> None:
        for name in CONFIGS:
            for ids in (IDS[:1], LONG):
                with self.subTest(name, prompt=list(ids.shape)):
                    self.check(name, ids, **GREEDY)

    def test_with_padding_on_the_left(self) -> None:
        mask = torch.ones_like(LONG)
        mask[1, :6] = 0
        for name in CONFIGS:
            for ids, attention_mask in ((IDS, LEFT), (LONG, mask)):
                with self.subTest(name, prompt=list(ids.shape)):
                    self.check(name, ids, attention_mask=attention_mask, **GREEDY)

    def test_with_beams(self) -> None:
        for name in ("llama", "gemma2", "gpt2"):
            with self.subTest(name):
                self.check(name, IDS, attention_mask=LEFT, num_beams=3, num_return_sequences=2, **GREEDY)

    def test_sampling_draws_the_same(self) -> None:
        plain, fast = self.pair("llama")
        found = []
        for model in (plain, fast):
            torch.manual_seed(7)
            found.append(model.generate(IDS, attention_mask=LEFT, do_sample=True, max_new_tokens=8, top_k=5))
        self.assertTrue(torch.equal(*found))

    def test_assisted_and_looked_up(self) -> None:
        plain, fast = self.pair("llama")
        ids = IDS[:1].repeat(1, 3)
        wanted = plain.generate(ids, **GREEDY)
        self.assertTrue(torch.equal(fast.generate(ids, prompt_lookup_num_tokens=3, **GREEDY), wanted))
        self.assertTrue(torch.equal(fast.generate(ids, assistant_model=made("llama"), **GREEDY), wanted))

    def test_prompts_in_chunks(self) -> None:
        self.check("mistral", LONG, prefill_chunk_size=5, **GREEDY)

    def test_scores_and_a_cache_that_goes_on(self) -> None:
        plain, fast = self.pair("qwen3")
        options = {"return_dict_in_generate": True, "output_logits": True, **GREEDY}
        first = [model.generate(IDS, **options) for model in (plain, fast)]
        self.assert_near(torch.stack(first[1].logits), torch.stack(first[0].logits))
        self.assertIsInstance(first[1].past_key_values, HoneCache)
        longer = torch.cat((first[0].sequences, IDS), 1)
        wanted, found = (
            model.generate(longer, past_key_values=before.past_key_values, **GREEDY)
            for model, before in zip((plain, fast), first)
        )
        self.assertTrue(torch.equal(found, wanted))

    def test_what_nobody_asks_for_is_left_out(self) -> None:
        """Where the last logits alone are wanted, the last layer's network sees one token of each sequence."""
        sizes: list = []
        network = self.formulas.fused_ffn
        self.patch(self.formulas, "fused_ffn", lambda x, *others: sizes.append(x.shape[1]) or network(x, *others))
        positions = (LEFT.cumsum(1) - 1).clamp(min=0)
        for name in ("llama", "gpt2", "qwen3"):
            plain, fast = self.pair(name)
            for options in ({}, {"attention_mask": LEFT, "position_ids": positions}):
                sizes.clear()
                with self.subTest(name, padded=bool(options)), torch.no_grad():
                    outs = [model(IDS, logits_to_keep=1, **options) for model in (fast, plain)]
                    self.assert_near(outs[0].logits, outs[1].logits)
                    self.assertEqual(sizes, [8, 8, 1])
                    if not options:
                        pairs = zip((fast, plain), outs)
                        self.assert_near(*(m(IDS[:, :3], past_key_values=out.past_key_values).logits for m, out in pairs))
                        self.assertEqual(sizes[3:], [3, 3, 3])

    def test_generations_take_the_same_memory(self) -> None:
        _, fast = self.pair("llama")
        taken = []
        for _ in range(3):
            cache = hone._accelerated.classes.runner_of(fast).cache_for(2, 30)
            taken.append(cache.contents.storage)
            del cache
            fast.generate(IDS, **GREEDY)
        self.assertEqual(len(set(map(id, taken))), 1)
        self.assertEqual(len(taken[0].graphs), 1)

    def test_more_than_there_is_memory_for(self) -> None:
        plain, fast = made("llama"), made("llama")
        hone.accelerate(fast, max_batch=1, max_tokens=12)
        with self.assertWarnsRegex(HoneWarning, "2 sequences of up to 18 tokens is larger than max_batch=1"):
            found = fast.generate(IDS, **GREEDY)
        self.assertTrue(torch.equal(found, plain.generate(IDS, **GREEDY)))


class AsDocumented(Case):
    """What transformers' own suites of these models check, beside the above."""

    def both(self, name: str, act: Any, **options: Any) -> tuple:
        """What `act` returns for a model and for the same accelerated."""
        plain, fast = made(name, **options), made(name, **options)
        hone.accelerate(fast, max_batch=8, max_tokens=64)
        return act(plain), act(fast)

    def test_embeddings_of_another_size(self) -> None:
        @torch.no_grad()
        def act(model: Any) -> Any:
            model.generate(IDS, **GREEDY)
            model.resize_token_embeddings(120)
            torch.manual_seed(2)
            model.get_input_embeddings().weight.normal_(0, 0.15)
            model.get_output_embeddings().weight.normal_(0, 0.15)
            return model.generate(IDS + 12, **GREEDY), model(IDS + 12).logits

        for name in ("llama", "qwen2", "gpt2"):
            wanted, found = self.both(name, act)
            with self.subTest(name):
                self.assertTrue(torch.equal(found[0], wanted[0]))
                self.assert_near(found[1], wanted[1])

    def test_checkpoints_of_gradients(self) -> None:
        def act(model: Any) -> Any:
            model.gradient_checkpointing_enable()
            model.train()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HoneWarning)
                model(IDS, labels=IDS, use_cache=False).loss.backward()
            return [parameter.grad for parameter in model.parameters()]

        for name in ("llama", "qwen3", "qwen3_moe"):
            wanted, found = self.both(name, act)
            with self.subTest(name):
                for one, other in zip(found, wanted):
                    self.assert_near(one, other)

    def test_streamed_tokens(self) -> None:
        class Streamer(transformers.generation.streamers.BaseStreamer):
            def __init__(self) -> None:
                self.seen: list = []

            def put(self, value: Any) -> None:
                self.seen.append(value.flatten().tolist())

            def end(self) -> None:
                self.seen.append("end")

        def act(model: Any) -> Any:
            streamer = Streamer()
            model.generate(IDS[:1], streamer=streamer, **GREEDY)
            return streamer.seen

        self.assertEqual(*self.both("llama", act))

    def test_every_way_to_choose(self) -> None:
        ways = (
            {"do_sample": True, "num_beams": 2, "num_return_sequences": 2, "max_new_tokens": 6},
            {"do_sample": True, "num_return_sequences": 3, "min_p": 0.05, "temperature": 1.3, "max_new_tokens": 6},
            {"do_sample": False, "repetition_penalty": 1.4, "no_repeat_ngram_size": 2, "max_new_tokens": 9},
            {"do_sample": False, "num_beams": 3, "length_penalty": 0.4, "early_stopping": True, "max_new_tokens": 9},
            {"do_sample": False, "max_new_tokens": 7, "use_cache": False},
            {"do_sample": False, "max_new_tokens": 7, "cache_implementation": "static", "disable_compile": True},
            {"do_sample": False, "max_new_tokens": 7, "bad_words_ids": [[5], [9]], "forced_eos_token_id": 2},
            {"do_sample": False, "max_new_tokens": 7, "guidance_scale": 1.5},
        )

        def act(model: Any) -> Any:
            torch.manual_seed(11)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return model.generate(IDS, attention_mask=LEFT, **options).tolist()

        for options in ways:
            for name in ("llama", "mixtral"):
                with self.subTest(name, **options):
                    self.assertEqual(*self.both(name, act))

    def test_hidden_states_of_a_generation(self) -> None:
        def act(model: Any) -> Any:
            options = {"return_dict_in_generate": True, "output_hidden_states": True, "output_scores": True, **GREEDY}
            out = model.generate(IDS, **options)
            return [state for step in out.hidden_states for state in step] + list(out.scores)

        wanted, found = self.both("qwen2", act)
        self.assertEqual(len(found), len(wanted))
        for one, other in zip(found, wanted):
            self.assert_near(one, other)

    def test_a_cache_that_is_cut_and_repeated(self) -> None:
        @torch.no_grad()
        def act(model: Any) -> Any:
            past = model(IDS, use_cache=True).past_key_values
            model(IDS[:, :1], past_key_values=past)
            past.crop(max_length=6) if isinstance(past, HoneCache) else past.crop(6)
            past.batch_repeat_interleave(2)
            first = model(IDS[:, 3:4].repeat_interleave(2, 0), past_key_values=past).logits
            past.batch_select_indices(torch.tensor([0, 3]))
            return first, model(IDS[:, 5:7], past_key_values=past).logits

        for name in ("llama", "gpt2"):
            wanted, found = self.both(name, act)
            for one, other in zip(found, wanted):
                self.assert_near(one, other)

    def test_a_config_that_says_how_to_generate_is_refused(self) -> None:
        """As before, also where it came to say so after a generation."""
        plain, fast = made("llama"), made("llama")
        hone.accelerate(fast, max_tokens=64)
        for model in (plain, fast):
            model.generate(IDS, **GREEDY)
            model.generate(IDS, **GREEDY)
            self.assertNotIn("_get_generation_parameters", vars(model.config))
            model.config.temperature = 0.7
            with self.assertRaisesRegex(ValueError, "modified the pretrained model configuration.*temperature"):
                model.generate(IDS, **GREEDY)
            del model.config.temperature
            model.generate(IDS, **GREEDY)

    def test_logits_of_routers(self) -> None:
        """Only transformers' own code has them, and the loss of balance."""

        @torch.no_grad()
        def act(model: Any) -> Any:
            out = model(IDS, labels=IDS, output_router_logits=True)
            return [out.loss, out.aux_loss, *out.router_logits]

        for name in ("mixtral", "qwen3_moe"):
            wanted, found = self.both(name, act)
            self.assertEqual(len(found), len(wanted))
            for one, other in zip(found, wanted):
                self.assert_near(one, other)


class Stops(Case):
    """generate() of transformers 5.17 may ask one step late whether to stop."""

    def test_on_a_gpu_with_our_cache(self) -> None:
        from transformers.generation import utils

        class Check:
            @staticmethod
            def is_supported(device, cache, cache_is_returned, is_assistant):
                return device.type == "mps"

        cuda, cpu = torch.device("cuda"), torch.device("cpu")
        _, fast = self.pair("llama")
        ours = hone._accelerated.classes.runner_of(fast).cache_for(1, 20)
        with mock.patch.object(utils, "DeferredStopCheck", Check, create=True):
            for _ in range(2):
                hone._accelerated.classes.defer_stops()
            asked = [
                Check.is_supported(device, cache, True, is_assistant=assists)
                for device, cache, assists in (
                    (cuda, ours, False), (cuda, ours, True), (cpu, ours, False),
                    (cuda, transformers.DynamicCache(), False), (torch.device("mps"), None, False),
                )
            ]  # fmt: skip
        self.assertEqual(asked, [True, False, False, False, True])

    def test_a_step_too_many_is_forgotten(self) -> None:
        plain, fast = self.pair("llama")
        with torch.no_grad():
            pasts = [m(IDS, attention_mask=LEFT, position_ids=(LEFT.cumsum(1) - 1).clamp(min=0), use_cache=True)
                     .past_key_values for m in (plain, fast)]  # fmt: skip
            mask = torch.cat((LEFT, torch.ones(2, 1)), 1).long()
            given = {"attention_mask": mask, "position_ids": (mask.cumsum(1) - 1)[:, -1:]}
            fast(IDS[:, :1], past_key_values=pasts[1], **given)
            pasts[1].crop(0)
            self.assertEqual(pasts[1].get_seq_length(), 9)
            pasts[1].crop(-1)
            found, wanted = (m(IDS[:, 2:3], past_key_values=past, **given).logits for m, past in zip((fast, plain), pasts[::-1]))
        self.assert_near(found, wanted)


class Forward(Case):
    def test_logits_of_prompts_with_any_padding(self) -> None:
        right, hole = LEFT.flip(1), LEFT.clone()
        hole[1, 3] = 0
        for name in ("llama", "mistral", "gemma2", "gpt2"):
            plain, fast = self.pair(name)
            for mask in (None, LEFT, right, hole):
                for uses_cache in (False, True):
                    with self.subTest(name, mask=mask, use_cache=uses_cache), warnings.catch_warnings(), torch.no_grad():
                        warnings.simplefilter("ignore", HoneWarning)
                        positions = None
                        if mask is not None:
                            positions = (mask.cumsum(1) - 1).clamp(min=0)
                        given = {"attention_mask": mask, "position_ids": positions, "use_cache": uses_cache}
                        found, wanted = (model(IDS, **given).logits for model in (fast, plain))
                        seen = slice(None) if mask is None else mask.bool()
                        self.assert_near(found[seen], wanted[seen])

    def test_step_by_step_with_padding_on_either_side(self) -> None:
        for name in ("llama", "gpt2", "mistral"):
            for mask in (LEFT, LEFT.flip(1)):
                with self.subTest(name, mask=mask), warnings.catch_warnings():
                    warnings.simplefilter("ignore", HoneWarning)
                    found, wanted = (self.steps(model, mask) for model in reversed(self.pair(name)))
                    self.assert_near(found, wanted)

    @torch.no_grad()
    def steps(self, model: Any, mask: torch.Tensor) -> torch.Tensor:
        past, logits, ids = None, [], IDS
        for step in range(5):
            positions = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            out = model(ids, attention_mask=mask, position_ids=positions, past_key_values=past, use_cache=True)
            past, ids = out.past_key_values, (IDS[:, step : step + 1] + 1)
            mask = torch.cat((mask, mask.new_ones(2, 1)), 1)
            if step:
                logits.append(out.logits)
        return torch.stack(logits)

    def test_transformers_goes_on_with_the_cache_where_kernels_stop(self) -> None:
        """Hooks that come and go in the middle of a padded generation."""
        plain, fast = self.pair("llama")
        seen: list = []

        @torch.no_grad()
        def steps(model: Any) -> torch.Tensor:
            past, mask, ids, logits = None, LEFT, IDS, []
            for step in range(7):
                positions = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
                hook = None
                if step == 3:
                    hook = model.model.layers[1].register_forward_hook(lambda *_: seen.append(1))
                out = model(ids, attention_mask=mask, position_ids=positions, past_key_values=past, use_cache=True)
                if hook is not None:
                    hook.remove()
                past, ids = out.past_key_values, IDS[:, step : step + 1]
                mask = torch.cat((mask, mask.new_ones(2, 1)), 1)
                logits.append(out.logits[:, -1])
            return torch.stack(logits)

        with self.assertWarnsRegex(HoneWarning, "modules have hooks"):
            found = steps(fast)
        self.assert_near(found, steps(plain))
        self.assertEqual(len(seen), 2)

    def test_packed_sequences_are_left_to_transformers(self) -> None:
        plain, fast = self.pair("llama")
        positions = torch.tensor([[0, 1, 2, 0, 1, 2, 3, 4]] * 2)
        self.formulas.called.clear()
        with torch.no_grad():
            found, wanted = (m(IDS, position_ids=positions, use_cache=False).logits for m in (fast, plain))
        self.assert_near(found, wanted)
        self.assertEqual(self.formulas.called["linear"], 0)

    def test_embedded_tokens(self) -> None:
        for name in ("llama", "gpt2", "gemma2"):
            plain, fast = self.pair(name)
            embedded = torch.randn(2, 5, 64)
            with torch.no_grad():
                found, wanted = (model(inputs_embeds=embedded).logits for model in (fast, plain))
            self.assert_near(found, wanted)

    def test_a_loss_and_the_last_logits_alone(self) -> None:
        plain, fast = self.pair("llama")
        with torch.no_grad():
            found, wanted = (model(IDS, labels=IDS, logits_to_keep=0) for model in (fast, plain))
            self.assert_near(found.loss, wanted.loss)
            found, wanted = (model(IDS, logits_to_keep=2).logits for model in (fast, plain))
        self.assertEqual(found.shape[1], 2)
        self.assert_near(found, wanted)

    def test_other_caches_and_what_only_transformers_has(self) -> None:
        plain, fast = self.pair("llama")
        with torch.no_grad():
            found, wanted = (
                m(IDS, past_key_values=transformers.DynamicCache(), output_hidden_states=True) for m in (fast, plain)
            )
            for one, other in zip(found.hidden_states, wanted.hidden_states):
                self.assert_near(one, other)
            self.assertIsInstance(found.past_key_values, transformers.DynamicCache)
            self.formulas.called.clear()
            self.assert_near(fast(IDS).logits, plain(IDS).logits)  # the hooks of before do not matter
            self.assertGreater(self.formulas.called["linear"], 0)
            tuples = [m.model(IDS, return_dict=False) for m in (fast, plain)]
            self.assertIsInstance(tuples[0], tuple)
            self.assert_near(tuples[0][0], tuples[1][0])

    def test_weights_of_attention(self) -> None:
        """A model that was eager can be asked for them, as before."""
        plain, fast = (made("llama", attn_implementation="eager") for _ in range(2))
        hone.accelerate(fast)
        with torch.no_grad():
            found, wanted = (m(IDS, output_attentions=True).attentions for m in (fast, plain))
            for one, other in zip(found, wanted):
                self.assert_near(one, other)
            self.assertGreater(len(found), 0)
            past = fast(IDS[:, :5], use_cache=True).past_key_values
            found, wanted = (m(IDS[:, 5:], past_key_values=past, output_attentions=True).attentions for m, past in (
                (fast, past), (plain, plain(IDS[:, :5], use_cache=True).past_key_values)
            ))  # fmt: skip
            for one, other in zip(found, wanted):
                self.assert_near(one, other)

    def test_it_compiles_without_a_break(self) -> None:
        plain, fast = self.pair("llama")
        torch._dynamo.reset()
        with torch.no_grad():
            found = torch.compile(fast, fullgraph=True, backend="eager")(IDS, use_cache=False).logits
            self.assert_near(found, plain(IDS).logits)

    def test_a_base_model_alone(self) -> None:
        plain, fast = made("llama").model, made("llama").model
        report = hone.accelerate(fast)
        self.assertRegex(str(report), "left: the head and generate")
        with torch.no_grad():
            self.assert_near(fast(IDS).last_hidden_state, plain(IDS).last_hidden_state)


class StaysRight(Case):
    def test_gradients_are_transformers_own(self) -> None:
        plain, fast = self.pair("llama")
        self.formulas.called.clear()
        with self.assertWarnsRegex(HoneWarning, "a gradient is wanted.*transformers' own code runs"):
            fast(IDS, labels=IDS).loss.backward()
        plain(IDS, labels=IDS).loss.backward()
        self.assertEqual(self.formulas.called["linear"], 0)
        for (name, one), (_, other) in zip(fast.named_parameters(), plain.named_parameters()):
            self.assert_near(one.grad, other.grad)

    def test_an_optimizer_changes_what_kernels_read(self) -> None:
        for name in ("llama", "gemma2", "gpt2"):
            plain, fast = self.pair(name)
            for model in (plain, fast):
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.mul_(1.1)
            with self.subTest(name):
                found, wanted = (model.generate(IDS, **GREEDY) for model in (fast, plain))
                self.assertTrue(torch.equal(found, wanted))

    def test_a_model_that_was_cast_or_changed_is_read_again(self) -> None:
        plain, fast = self.pair("llama")
        fast.generate(IDS, **GREEDY)
        for change in (
            lambda model: model.double().float(),
            lambda model: model.model.layers.__delitem__(1) or setattr(model.config, "num_hidden_layers", 2)
            or setattr(model.model.layers[1].self_attn, "layer_idx", 1),
            lambda model: setattr(model.model.layers[0].mlp, "up_proj", copy.deepcopy(model.model.layers[1].mlp.up_proj)),
        ):  # fmt: skip
            for model in (plain, fast):
                change(model)
            self.formulas.called.clear()
            found, wanted = (model.generate(IDS, **GREEDY) for model in (fast, plain))
            self.assertTrue(torch.equal(found, wanted))
            self.assertGreater(self.formulas.called["linear"], 0)

    def test_a_cache_from_before_a_change_goes_on(self) -> None:
        """Graphs of before are not used any more."""
        plain, fast = self.pair("gemma2")
        pasts = []
        with torch.no_grad():
            for model in (plain, fast):
                past = model(IDS, use_cache=True).past_key_values
                model(IDS[:, :1], past_key_values=past)
                pasts.append(past)
                for parameter in model.parameters():
                    parameter.mul_(1.2)
            for step in range(2):
                found, wanted = (m(IDS[:, 1:2], past_key_values=past).logits for m, past in zip((plain, fast), pasts))
                self.assert_near(found, wanted)

    def test_a_model_that_no_kernel_takes_any_more(self) -> None:
        plain, fast = self.pair("llama")
        for model in (plain, fast):
            model.double()
        with self.assertWarnsRegex(HoneWarning, "its dtype is torch.float64.*transformers' own code"):
            found = fast(IDS).logits
        self.assert_near(found, plain(IDS).logits)

    def test_state_save_load_copy_and_pickle(self) -> None:
        for name in ("llama", "gpt2"):
            plain, fast = self.pair(name)
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                for (key, one), (other_key, other) in zip(fast.state_dict().items(), plain.state_dict().items()):
                    self.assertEqual(key, other_key)
                    self.assertTrue(torch.equal(one, other), key)
                fast.save_pretrained(folder)
                loaded = type(plain).from_pretrained(folder).eval()
                self.assertEqual(loaded.config.architectures, [type(plain).__name__])
                for model in (loaded, copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
                    self.assertIs(type(model), type(plain))
                    with torch.no_grad():
                        self.assert_near(model(IDS).logits, plain(IDS).logits)
                other = made(name)
                with torch.no_grad():
                    for parameter in other.parameters():
                        parameter.mul_(0.9)
                fast.load_state_dict(other.state_dict())
                self.assertTrue(torch.equal(fast.generate(IDS, **GREEDY), other.generate(IDS, **GREEDY)))

    def test_restore_undoes_it(self) -> None:
        for name in CONFIGS:
            plain, fast = self.pair(name)
            fast.generate(IDS, **GREEDY)
            hone.restore(fast)
            with self.subTest(name):
                self.assertIs(type(fast), type(plain))
                self.assertIs(type(fast.base_model), type(plain.base_model))
                self.assertEqual(fast.config._attn_implementation, plain.config._attn_implementation)
                self.formulas.called.clear()
                self.assertTrue(torch.equal(fast.generate(IDS, **GREEDY), plain.generate(IDS, **GREEDY)))
                self.assertEqual(sum(self.formulas.called.values()), 0)
                for one, other in zip(fast.parameters(), plain.parameters()):
                    self.assertTrue(torch.equal(one, other))
                    self.assertTrue(one.is_contiguous())
                    self.assertEqual(one.untyped_storage().nbytes(), one.numel() * 4)
                hone.accelerate(fast)

    def test_nothing_keeps_a_model_alive(self) -> None:
        _, fast = self.pair("llama")
        fast.generate(IDS, **GREEDY)
        seen = hone._accelerated.classes.weakref.ref(fast)
        del fast
        gc.collect()
        self.assertIsNone(seen())


class Refused(Case):
    def test_models_that_are_not_known(self) -> None:
        class OwnLlama(transformers.LlamaModel):
            pass

        for model in (torch.nn.Linear(3, 3), OwnLlama(CONFIGS["llama"]())):
            with self.assertRaisesRegex(ValueError, "its class is .*allowed are transformers' models of gemma2, gpt2"):
                hone.accelerate(model)

    def test_devices_and_dtypes(self) -> None:
        model = made("llama")
        self.patch(runner, "DEVICES", ("cuda",))
        with self.assertRaisesRegex(ValueError, "it is on the device cpu; allowed is a CUDA device"):
            hone.accelerate(model)
        self.patch(runner, "DEVICES", ("cpu",))
        model.lm_head.double()
        model.model.norm.double()
        with self.assertRaisesRegex(ValueError, "dtypes torch.float32, torch.float64; allowed is one"):
            hone.accelerate(model)
        model.model.double()
        with self.assertRaisesRegex(ValueError, "its dtype is torch.float64; allowed are torch.bfloat16"):
            hone.accelerate(model)
        model.model.float()
        model.model.norm.to("meta")
        with self.assertRaisesRegex(ValueError, "on the devices cpu, meta; allowed is one"):
            hone.accelerate(model)
        self.assertIs(type(model), transformers.LlamaForCausalLM)

    def test_layers_and_configs(self) -> None:
        class Adapter(torch.nn.Linear):
            pass

        for change, message in (
            (lambda m: setattr(m.model.layers[0].mlp, "act_fn", torch.nn.Tanh()), "activation: it is a Tanh; allowed are"),
            (lambda m: setattr(m.model.layers[2].self_attn, "v_proj", Adapter(64, 32, False)), "Adapter; allowed are"),
            (lambda m: setattr(m.model.rotary_emb, "rope_type", "dynamic"), "its rope_type is 'dynamic'; allowed are"),
            (lambda m: setattr(m.model.layers[0], "forward", lambda *_: None), "layers.0 has a forward of its own"),
            (lambda m: setattr(m.model.layers[0].mlp, "_hf_hook", 1), "layers.0.mlp is moved between devices"),
        ):
            model = made("llama")
            change(model)
            with self.assertRaisesRegex(ValueError, message):
                hone.accelerate(model)
            self.assertIs(type(model), transformers.LlamaForCausalLM)

    def test_experts(self) -> None:
        for change, message in (
            (lambda e: setattr(e, "is_transposed", True), "their weights are transposed or have biases; allowed are"),
            (lambda e: setattr(e, "is_concatenated", False), "rows of their gates and ups alternate; allowed are"),
            (lambda e: setattr(e, "act_fn", torch.nn.Tanh()), "activation: it is a Tanh"),
            (lambda e: e._parameters.update(gate_up_proj=torch.nn.Parameter(torch.zeros(300, 8, 64))), "they are 300; allowed are"),
            (lambda e: e._parameters.update(gate_up_proj=torch.nn.Parameter(torch.zeros(8, 2, 3))), "multiple of 16 bytes"),
        ):
            model = made("qwen3_moe")
            change(model.model.layers[0].mlp.experts)
            with self.assertRaisesRegex(ValueError, message):
                hone.accelerate(model)
            self.assertIs(type(model), transformers.Qwen3MoeForCausalLM)

    def test_arguments(self) -> None:
        model = made("llama")
        with self.assertRaisesRegex(ValueError, "^format: 'w3'; allowed are 'w4a16', 'w8a16', 'fp8' and None"):
            hone.accelerate(model, format="w3")
        with self.assertRaisesRegex(ValueError, "^format: 'fp8' of a model of torch.float32; allowed are"):
            hone.accelerate(model, format="fp8")
        with self.assertRaisesRegex(ValueError, "^max_batch: 0; allowed are whole numbers"):
            hone.accelerate(model, max_batch=0)
        with self.assertRaisesRegex(ValueError, "^model: it is not accelerated"):
            hone.restore(model)
        hone.accelerate(model)
        with self.assertRaisesRegex(ValueError, "^model: it is accelerated already"):
            hone.accelerate(model)


class Loaded(Case):
    def test_a_folder_becomes_an_accelerated_model(self) -> None:
        for name in ("llama", "qwen2", "gemma2", "gpt2", "mixtral", "qwen3_moe"):
            plain = made(name)
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                plain.save_pretrained(folder, max_shard_size="100kB")
                fast = hone.load(folder, device="cpu", max_batch=2, max_tokens=64)
                self.assertFalse(any(parameter.is_meta for parameter in fast.parameters()))
                self.assertTrue(torch.equal(fast.generate(IDS, **GREEDY), plain.generate(IDS, **GREEDY)))
                self.assertEqual(sum(self.formulas.called.values()) > 0, True)
                half = hone.load(folder, "bf16", device="cpu")
                self.assertEqual({p.dtype for p in half.parameters()}, {torch.bfloat16})
                hone.restore(fast)
                for (key, one), other in zip(fast.state_dict().items(), plain.state_dict().values()):
                    self.assertTrue(torch.equal(one, other), key)

    def test_folders_that_do_not_fit(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            made("llama").save_pretrained(folder)
            with self.assertRaisesRegex(ValueError, "^dtype: torch.float64; allowed are 'bf16'"):
                hone.load(folder, torch.float64, device="cpu")
            path = Path(folder, "config.json")
            config = json.loads(path.read_text())
            path.write_text(json.dumps({**config, "intermediate_size": 97}))
            with self.assertRaisesRegex(ValueError, r"its shape is \[96, 64\]; the model needs \[97, 64\]"):
                hone.load(folder, device="cpu")
            path.write_text(json.dumps({**config, "quantization_config": {"quant_method": "gptq"}}))
            with self.assertRaisesRegex(ValueError, "packed by 'gptq'; allowed are those of `hone quantize`"):
                hone.load(folder, device="cpu")


class WithCodes(Case):
    """Weights of 4 and 8 bits, beside the same model whose layers dequantize them."""

    WIDE = {"hidden_size": 128, "intermediate_size": 192, "head_dim": 32}

    def wide(self, name: str) -> Any:
        """Rows of queries, keys and values are whole blocks."""
        config = CONFIGS[name]()
        sizes = {"n_embd": 128} if name == "gpt2" else self.WIDE
        with mock.patch.dict(CONFIGS, {name: lambda: type(config)(**{**config.to_dict(), **sizes})}):
            return made(name, dtype=torch.bfloat16)

    def test_every_format(self) -> None:
        for name, format in (
            ("llama", "w4a16"), ("llama", "w8a16"), ("llama", "fp8"), ("qwen2", "w4a16"), ("gemma2", "w8a16"),
            ("phi3", "w4a16"), ("phi3", "fp8"), ("gpt2", "w8a16"),
        ):  # fmt: skip
            plain, fast = self.wide(name), self.wide(name)
            self.quantized_as_before(plain, format, 64 if format == "w4a16" else None)
            self.formulas.called.clear()
            report = hone.accelerate(fast, format, max_tokens=64)
            with self.subTest(name, format=format), torch.no_grad():
                self.assertIn(f"weights of {format}", str(report))
                found, wanted = (model(IDS).logits.float() for model in (fast, plain))
                self.assertLess(float((found - wanted).norm() / wanted.norm()), 0.03)
                self.assertEqual(self.formulas.called[f"quantized_linear {format}"], 2 * 3)
                self.assertEqual(self.formulas.called[f"quantized_ffn {format}"], 3)
                self.assertEqual(fast.generate(IDS, **GREEDY).shape, (2, 18))
                with self.assertRaisesRegex(ValueError, f"its weights were quantized to {format}.*load it again"):
                    hone.restore(fast)

    def test_codes_are_saved_and_loaded(self) -> None:
        """Into a model with other codes of the same format."""
        fast, other = self.wide("llama"), self.wide("llama")
        with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
            for parameter in other.parameters():
                parameter.mul_(0.5)
            for model in (fast, other):
                hone.accelerate(model, "w4a16", max_tokens=64)
            torch.save(fast.state_dict(), Path(folder, "codes.pt"))
            other.load_state_dict(torch.load(Path(folder, "codes.pt")))
            self.assertTrue(torch.equal(other(IDS).logits, fast(IDS).logits))
            self.assertTrue(torch.equal(other.generate(IDS, **GREEDY), fast.generate(IDS, **GREEDY)))

    @staticmethod
    def quantized_as_before(model: Any, format: str, group: Any = None) -> None:
        for module in list(model.base_model.modules()):
            for name, child in list(module._modules.items()):
                if type(child).__name__ == "Conv1D":
                    linear = torch.nn.Linear(child.nx, child.nf, dtype=torch.bfloat16)
                    with torch.no_grad():
                        linear.weight.copy_(child.weight.t())
                        linear.bias.copy_(child.bias)
                    module._modules[name] = linear
        hone.replace_linear_with_quantized(model.base_model, format, group)
        model.requires_grad_(False)

    def test_a_model_that_has_codes_already(self) -> None:
        model = self.wide("llama")
        self.quantized_as_before(model, "w4a16")
        with torch.no_grad():
            wanted = model(IDS).logits
            hone.accelerate(model)
            found = model(IDS).logits
        self.assertLess(float((found - wanted).norm() / wanted.norm()), 0.03)
        self.assertEqual(self.formulas.called["linear"], 0)
        self.assertEqual(self.formulas.called["quantized_ffn w4a16"], 0)  # groups of 128 and of 64

    def packed_pair(self, name: str, make: Any) -> tuple:
        """A model with the weights that layers of a quantizer stand for, and one with the layers, which `make` gives."""
        plain, fast = self.wide(name), self.wide(name)
        quantizers.replaced(fast, plain, make)
        return plain, fast

    def test_layers_of_gptq_and_awq(self) -> None:
        gptq, awq = quantizers.TorchLinear, quantizers.AwqTorchLinear
        for name, make, options in (
            ("llama", gptq, {"group": 64, "symmetric": True}),
            ("llama", gptq, {"group": 64, "symmetric": False}),
            ("llama", gptq, {"group": 64, "symmetric": False, "version": 2}),
            ("llama", gptq, {"group": -1, "symmetric": True, "bits": 8}),
            ("qwen2", gptq, {"group": -1, "symmetric": True}),
            ("llama", awq, {"group": 64, "symmetric": False}),
            ("phi3", awq, {"group": 32, "symmetric": False}),
        ):
            plain, fast = self.packed_pair(name, lambda child: quantizers.grouped(make, child, **options))
            self.formulas.called.clear()
            report = str(hone.accelerate(fast, max_tokens=64))
            with self.subTest(name, make=make.__name__, **options), torch.no_grad():
                self.assertRegex(report, f"{3 * (4 if name == 'phi3' else 7)} layers of {make.__name__} -> weights of hone.nn")
                found, wanted = (model(IDS).logits.float() for model in (fast, plain))
                self.assertLess(float((found - wanted).norm() / wanted.norm()), 0.03)
                self.assertEqual(self.formulas.called[f"quantized_ffn {'w8a16' if 'bits' in options else 'w4a16'}"], 3)
                self.assertEqual(fast.generate(IDS, **GREEDY).shape, (2, 18))
                with self.assertRaisesRegex(ValueError, "its layers are Hone's in place of its quantizer's.*load it again"):
                    hone.restore(fast)

    def test_layers_of_fp8(self) -> None:
        from transformers.integrations.finegrained_fp8 import FP8Linear

        def make(child: Any, block: Any) -> tuple:
            out, columns = child.weight.shape
            layer = FP8Linear(columns, out, block_size=block, has_bias=child.bias is not None)
            scales = torch.rand_like(layer.weight_scale_inv.data.float()) * 0.001 + 0.001
            with torch.no_grad():
                layer.weight.copy_((torch.randn(out, columns) * 100).clamp(-448, 448).to(torch.float8_e4m3fn))
                layer.weight_scale_inv.copy_(scales)
                if child.bias is not None:
                    layer.bias.copy_(child.bias)
            spread = scales if block is None else scales.repeat_interleave(128, 0)[:out].repeat_interleave(128, 1)
            return layer, layer.weight.float() * spread

        for name, block, sizes in (
            ("llama", None, {}),
            ("qwen2", None, {}),
            ("llama", (128, 128), {"intermediate_size": 256, "num_key_value_heads": 4}),
        ):
            with mock.patch.object(type(self), "WIDE", {**self.WIDE, **sizes}):
                plain, fast = self.packed_pair(name, lambda child: make(child, block))
            self.formulas.called.clear()
            hone.accelerate(fast, max_tokens=64)
            with self.subTest(name, block=block), torch.no_grad():
                found, wanted = (model(IDS).logits.float() for model in (fast, plain))
                self.assertLess(float((found - wanted).norm() / wanted.norm()), 0.03)
                self.assertEqual(self.formulas.called["quantized_ffn fp8"], 3)

    def test_layers_of_quantizers_that_do_not_fit(self) -> None:
        gptq = quantizers.TorchLinear

        def ordered(child: Any) -> tuple:
            made = quantizers.grouped(gptq, child, group=64, symmetric=True)
            made[0].g_idx = made[0].g_idx.flip(0)
            return made

        for make, message in (
            (lambda child: quantizers.grouped(quantizers.MarlinLinear, child, 64, False), "MarlinLinear, which keeps"),
            (ordered, "its columns are ordered by desc_act; allowed are"),
            (lambda child: quantizers.grouped(gptq, child, 16, True), "4 bits in groups of 16 of 128 columns; allowed"),
            (lambda child: quantizers.grouped(gptq, child, -1, False, bits=8), "it has zero points beside 8 bits"),
        ):
            _, fast = self.packed_pair("llama", make)
            before = [type(module) for module in fast.modules()]
            with self.assertRaisesRegex(ValueError, message):
                hone.accelerate(fast)
            self.assertEqual([type(module) for module in fast.modules()], before)
        _, fast = self.packed_pair("llama", lambda child: quantizers.grouped(gptq, child, 64, True))
        with self.assertRaisesRegex(ValueError, "^format: 'fp8' of a model whose layers are TorchLinear; allowed is None"):
            hone.accelerate(fast, "fp8")
        fast.model.layers[1].mlp.act_fn = torch.nn.Tanh()
        with self.assertRaisesRegex(ValueError, "activation: it is a Tanh"):
            hone.accelerate(fast)
        self.assertEqual(type(fast.model.layers[0].mlp.up_proj), gptq)

    def test_rows_that_are_no_whole_blocks(self) -> None:
        model = made("llama", dtype=torch.bfloat16)  # keys of 32 rows
        with self.assertRaisesRegex(ValueError, "^format: 'w4a16': 32 rows.*allowed are multiples of 64"):
            hone.accelerate(model, "w4a16")
        with self.assertRaisesRegex(ValueError, "^group: 128; allowed are divisors of the columns.* 192 among them"):
            hone.accelerate(self.wide("llama"), "w4a16", group=128)
        self.assertEqual({type(layer).__name__ for layer in model.model.layers[0].mlp.children()}, {"Linear", "SiLUActivation"})


class Example(Case):
    def test_it_runs_and_its_tokens_are_the_same(self) -> None:
        """But for the part with codes, which have no kernels here."""
        folder = fakes.TREE / "examples" / "python"
        self.patch(sys, "path", [str(folder), *sys.path])
        self.patch(sys, "argv", ["accelerated_llama.py"])
        self.addCleanup(sys.modules.pop, "checking", None)
        self.patch(hone, "device_name", lambda: "a processor")
        names = runpy.run_path(str(folder / "accelerated_llama.py"))
        names["beside_transformers"].__globals__["DEVICE"] = "cpu"
        with contextlib.redirect_stdout(io.StringIO()) as said:
            names["beside_transformers"]()
        self.assertIn("the same tokens: True", said.getvalue())
        self.assertIn("relative error", said.getvalue())


class Trained(Case):
    def setUp(self) -> None:
        super().setUp()
        self.patch(rotation, "calls", self.formulas)
        self.patch(rotation, "_runs_natively", lambda *_: True)

    def test_norms_and_rotations_get_gradients_of_ours(self) -> None:
        for name, norms, rotations in (("llama", 7, 3), ("qwen3", 13, 3), ("phi3", 7, 3), ("gemma2", 0, 3), ("gpt2", 7, 0)):
            plain, fast = made(name), made(name)
            report = str(hone.accelerate(fast, training=True))
            with self.subTest(name, report=report):
                kinds = [type(module) for module in fast.modules()]
                ours = [kind for kind in kinds if kind.__name__.startswith("Hone") or kind.__module__ == "hone.nn"]
                self.assertEqual(sum("Norm" in kind.__name__ for kind in ours), norms)
                self.formulas.called.clear()
                positions = torch.tensor([[4, 0, 1, 2, 3, 5, 6, 7], list(range(8))])
                for model in (plain, fast):
                    model(IDS, labels=IDS, position_ids=positions).loss.backward()
                self.assertEqual(self.formulas.called["rope_kv_append"], 2 * rotations)  # and back
                for (key, one), (_, other) in zip(fast.named_parameters(), plain.named_parameters()):
                    torch.testing.assert_close(one.grad, other.grad, rtol=1e-3, atol=1e-4, msg=key)
                hone.restore(fast)
                self.assertEqual([type(m) for m in fast.modules()], [type(m) for m in plain.modules()])

    def test_gradients_of_the_rotation(self) -> None:
        q, k = (torch.randn(2, heads, 5, 8, dtype=torch.float64, requires_grad=True) for heads in (4, 2))
        angle = torch.rand(2, 5, 3, dtype=torch.float64)
        cos, sin = (torch.cat((part, part), -1) for part in (angle.cos(), angle.sin()))
        self.assertTrue(torch.autograd.gradcheck(lambda *x: rotation.Rotation.apply(*x, cos, sin), (q, k), atol=1e-4))

    def test_codes_cannot_be_trained(self) -> None:
        with self.assertRaisesRegex(ValueError, "^format: 'fp8' with training=True"):
            hone.accelerate(made("llama", dtype=torch.bfloat16), "fp8", training=True)


class Reported(Case):
    def test_what_was_replaced(self) -> None:
        for name, words in (
            ("llama", ["3 layers' queries, keys and values -> one product each\n", "7 norms -> norms, with", "CUDA graph"]),
            ("gemma2", ["windows of 6, softcap 5", "13 norms -> norms, with the sum before them"]),
            ("qwen3", ["with the norms of heads"]),
            ("mixtral", ["3 mixtures of experts -> a routing and two products"]),
            ("qwen3_moe", ["1 feed-forward networks", "2 mixtures of experts"]),
        ):
            text = str(hone.accelerate(made(name)))
            for word in words:
                self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()

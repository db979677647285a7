"""hone.accelerate() on a GPU: small models of every architecture beside transformers' own code, with the kernels and graphs."""

from __future__ import annotations

import tempfile
import time
import unittest
import warnings
from typing import Any

import support  # noqa: F401 - skips where PyTorch or a GPU is missing
from support import DEVICE, Case

import torch

try:
    import transformers
except ModuleNotFoundError:
    raise unittest.SkipTest("transformers is not installed") from None

import hone
from hone._accelerated.classes import runner_of
from hone.errors import HoneWarning

transformers.logging.set_verbosity_error()

SIZES = {
    "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 1024, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}  # fmt: skip
CONFIGS = {
    "llama": lambda: transformers.LlamaConfig(**SIZES),
    "llama3": lambda: transformers.LlamaConfig(**SIZES, attention_bias=True, rope_parameters=LLAMA3),
    "mistral": lambda: transformers.MistralConfig(**SIZES, sliding_window=64),
    "qwen2": lambda: transformers.Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen3": lambda: transformers.Qwen3Config(**SIZES, head_dim=64),
    "gemma2": lambda: transformers.Gemma2Config(
        **SIZES, head_dim=64, sliding_window=64, attn_logit_softcapping=5.0, final_logit_softcapping=8.0,
        query_pre_attn_scalar=80,
    ),
    "phi3": lambda: transformers.Phi3Config(
        **SIZES, sliding_window=100,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
    ),
    "gpt2": lambda: transformers.GPT2Config(
        n_embd=256, n_layer=3, n_head=4, vocab_size=512, n_positions=1024, pad_token_id=0, bos_token_id=1, eos_token_id=2
    ),
}  # fmt: skip
GREEDY = {"do_sample": False, "max_new_tokens": 60, "min_new_tokens": 60}


def made(name: str, dtype: Any = torch.float32) -> Any:
    """With weights that are no two alike; the same numbers whatever the dtype, but for its rounding."""
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS[name](), attn_implementation="eager").eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "norm" in key or "ln_" in key:
                parameter.add_(torch.rand_like(parameter) - 0.5)
            else:
                parameter.copy_(torch.randn_like(parameter) * (0.3 if parameter.dim() == 1 else 0.06))
    model.generation_config.pad_token_id = 0
    return model.to(DEVICE).to(dtype)


def ids(sequences: int, tokens: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, 512, (sequences, tokens), generator=generator).to(DEVICE)


def left_padded(sequences: int, tokens: int) -> torch.Tensor:
    mask = torch.ones(sequences, tokens, dtype=torch.long, device=DEVICE)
    mask[0, : tokens // 4], mask[-1, : 3 * tokens // 4] = 0, 0
    return mask


class Accelerated(Case):
    def pair(self, name: str, dtype: Any = torch.float32, format: Any = None) -> tuple:
        plain, fast = made(name, dtype), made(name, dtype)
        hone.accelerate(fast, format, max_batch=8, max_tokens=512)
        return plain, fast

    def assert_same(self, fast: Any, plain: Any, *arguments: Any, **options: Any) -> None:  # type: ignore[override]
        found, wanted = (model.generate(*arguments, **options) for model in (fast, plain))
        self.assertEqual(found.tolist(), wanted.tolist())

    def test_greedy_tokens_are_those_of_before(self) -> None:
        mask = left_padded(3, 40)
        for name in CONFIGS:
            plain, fast = self.pair(name)
            with self.subTest(name):
                for prompt in (ids(1, 9), ids(1, 150), ids(5, 33)):
                    self.assert_same(fast, plain, prompt, **GREEDY)
                self.assert_same(fast, plain, ids(3, 40), attention_mask=mask, **GREEDY)
                self.assertGreater(len(runner_of(fast)._idle[0].graphs), 0)
                hone.restore(fast)
                self.assert_same(fast, plain, ids(1, 9), **GREEDY)

    def test_beams_sampling_and_assistants(self) -> None:
        plain, fast = self.pair("llama")
        options = {**GREEDY, "max_new_tokens": 20, "min_new_tokens": 20}
        self.assert_same(fast, plain, ids(2, 40), attention_mask=left_padded(2, 40), num_beams=3, **options)
        self.assert_same(fast, plain, ids(1, 40).repeat(1, 2), prompt_lookup_num_tokens=4, **options)
        found = []
        for model in (fast, plain):
            torch.manual_seed(5)
            found.append(model.generate(ids(2, 30), do_sample=True, top_k=5, max_new_tokens=20).tolist())
        self.assertEqual(*found)

    def test_errors_in_bf16_are_those_of_transformers(self) -> None:
        """To the same weights in float32: at most 1.1 times as large, in prompts and in steps from the graph."""
        for name in CONFIGS:
            plain, fast = self.pair(name, torch.bfloat16)
            wide = made(name, torch.bfloat16).float()
            for tokens in (9, 150):
                with self.subTest(name, tokens=tokens), torch.no_grad():
                    ratios = self.error_ratios(fast, plain, wide, tokens)
                    self.assertLess(max(ratios), 1.1, ratios)

    def error_ratios(self, fast: Any, plain: Any, wide: Any, tokens: int) -> list:
        """Of the prompt's logits, and of the steps' behind it."""
        errors = [[0.0, 0.0], [0.0, 0.0]]
        pasts: list = [None, None, None]
        for step in range(9):
            given = ids(4, tokens) if step == 0 else ids(4, 1, step + 7)
            outs = [m(given, past_key_values=past, use_cache=True) for m, past in zip((fast, plain, wide), pasts)]
            pasts = [out.past_key_values for out in outs]
            for one in (0, 1):
                error = float((outs[one].logits.double() - outs[2].logits.double()).norm())
                errors[min(step, 1)][one] += error
        return [ours / theirs for ours, theirs in errors]

    def test_a_text_ends_where_it_ended_before(self) -> None:
        """Whether it has is asked one step late; the cache that is returned has no step too many."""
        plain, fast = self.pair("llama")
        prompt = ids(1, 30)
        eos = int(plain.generate(prompt, **GREEDY)[0, 30 + 17])
        options = {"do_sample": False, "max_new_tokens": 60, "eos_token_id": eos, "return_dict_in_generate": True}
        found, wanted = (model.generate(prompt, **options) for model in (fast, plain))
        self.assertEqual(found.sequences.tolist(), wanted.sequences.tolist())
        lengths = [one.past_key_values.get_seq_length() for one in (found, wanted)]
        self.assertEqual(lengths[0], found.sequences.shape[1] - 1)
        self.assertEqual(*lengths)

    def test_continuous_batching(self) -> None:
        """Prompts of several lengths, packed: the same tokens as one by one."""
        for name in ("llama", "qwen3"):
            plain, fast = self.pair(name)
            prompts = [ids(1, tokens, tokens)[0].tolist() for tokens in (5, 40, 17)]
            options = {"max_new_tokens": 12, "do_sample": False, "eos_token_id": -1, "pad_token_id": 0}
            config = transformers.GenerationConfig(**options)
            found = fast.generate_batch(inputs=prompts, generation_config=config)
            made = sorted(found.values(), key=lambda one: len(one.prompt_ids))
            for prompt, one in zip(sorted(prompts, key=len), made):
                alone = torch.tensor([prompt], device=DEVICE)
                wanted = plain.generate(alone, **options)
                self.assertEqual(one.generated_tokens, wanted[0, len(prompt) :].tolist())

    def test_right_padding_and_other_masks(self) -> None:
        right, hole = left_padded(3, 40).flip(1), left_padded(3, 40)
        hole[1, 7] = 0
        plain, fast = self.pair("llama")
        for mask in (right, hole):
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore", HoneWarning)
                positions = (mask.cumsum(1) - 1).clamp(min=0)
                found, wanted = (m(ids(3, 40), attention_mask=mask, position_ids=positions).logits for m in (fast, plain))
                torch.testing.assert_close(found[mask.bool()], wanted[mask.bool()], rtol=1e-3, atol=1e-3)

    def test_weights_that_change_are_seen_by_graphs(self) -> None:
        for name in ("llama", "gemma2"):
            plain, fast = self.pair(name)
            self.assert_same(fast, plain, ids(1, 20), **GREEDY)
            for model in (plain, fast):
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.mul_(1.05)
            self.assert_same(fast, plain, ids(1, 20), **GREEDY)

    def test_moves_casts_and_hooks(self) -> None:
        plain, fast = self.pair("llama")
        fast.generate(ids(1, 20), **GREEDY)
        fast.cpu()
        with self.assertWarnsRegex(HoneWarning, "it is on the device cpu.*transformers' own code runs"):
            fast(ids(1, 20).cpu())
        fast.to(DEVICE)
        self.assert_same(fast, plain, ids(1, 20), **GREEDY)
        seen: list = []
        handle = fast.model.layers[1].mlp.register_forward_hook(lambda *_: seen.append(1))
        with self.assertWarnsRegex(HoneWarning, "modules have hooks"):
            self.assert_same(fast, plain, ids(1, 20), **GREEDY)
        self.assertEqual(len(seen), 60)
        handle.remove()
        for model in (plain, fast):
            model.to(torch.bfloat16)
        self.assertEqual(fast.generate(ids(1, 20), **GREEDY).shape, (1, 80))
        with self.assertWarnsRegex(HoneWarning, "torch.autocast is on"), torch.autocast("cuda"):
            fast(ids(1, 20))

    def test_save_and_load(self) -> None:
        plain, fast = self.pair("qwen2")
        with tempfile.TemporaryDirectory() as folder:
            fast.save_pretrained(folder)
            loaded = hone.load(folder, max_batch=2, max_tokens=256)
        self.assert_same(loaded, plain, ids(2, 30), **GREEDY)

    def test_codes(self) -> None:
        """Beside transformers' layers with the same codes, and 8 bits beside the numbers that they stand for."""
        for name in ("llama", "phi3"):
            for format in ("w4a16", "w8a16", "fp8"):
                plain, fast = self.pair(name, torch.bfloat16, format)
                hone.replace_linear_with_quantized(plain.base_model, format)
                with self.subTest(name, format=format), torch.no_grad():
                    found, wanted = (model(ids(2, 50)).logits.double() for model in (fast, plain))
                    self.assertLess(self.relative_error(found, wanted), 0.05 if format == "fp8" else 0.03)
                    self.assertEqual(fast.generate(ids(2, 20), **GREEDY).shape, (2, 80))
        plain, fast = self.pair("gpt2", torch.bfloat16, "w8a16")
        with torch.no_grad():
            found, wanted = (model(ids(2, 50)).logits.double() for model in (fast, plain))
        self.assertLess(self.relative_error(found, wanted), 0.05)

    def test_a_generation_that_goes_over_its_memory(self) -> None:
        plain, fast = made("llama"), made("llama")
        hone.accelerate(fast, max_batch=2, max_tokens=64)
        with self.assertWarnsRegex(HoneWarning, "is larger than max_batch=2 and max_tokens=64"):
            self.assert_same(fast, plain, ids(1, 40), **GREEDY)

    def test_nothing_is_allocated_from_step_to_step(self) -> None:
        _, fast = self.pair("llama")
        with torch.no_grad():
            past = fast(ids(1, 20), use_cache=True).past_key_values
            token = ids(1, 1)
            for _ in range(3):
                fast(token, past_key_values=past)
            torch.cuda.synchronize()
            before = torch.cuda.memory_stats()["num_device_alloc"], torch.cuda.memory_allocated()
            for _ in range(20):
                fast(token, past_key_values=past)
            torch.cuda.synchronize()
            self.assertEqual((torch.cuda.memory_stats()["num_device_alloc"], torch.cuda.memory_allocated()), before)

    def test_training(self) -> None:
        """Gradients of all parameters, with rotations of positions that differ by sequence."""
        for name in ("llama", "qwen3", "phi3", "gpt2"):
            plain, fast = made(name), made(name)
            hone.accelerate(fast, training=True)
            positions = torch.stack((torch.arange(40), torch.arange(40).flip(0))).to(DEVICE)
            for model in (plain, fast):
                model.train()
                torch.manual_seed(3)  # for GPT-2's dropout
                model(ids(2, 40), labels=ids(2, 40), position_ids=positions).loss.backward()
            with self.subTest(name):
                for (key, one), (_, other) in zip(fast.named_parameters(), plain.named_parameters()):
                    self.assertLess(self.relative_error(one.grad, other.grad.double()), 1e-3, key)
                hone.restore(fast)
                self.assertEqual([type(m) for m in fast.modules()], [type(m) for m in plain.modules()])

    def test_it_is_faster(self) -> None:
        """Launches of a graph in place of some hundred."""
        plain, fast = self.pair("qwen3", torch.bfloat16)
        times = []
        for model in (plain, fast):
            model.generate(ids(1, 20), **GREEDY)
            begin = time.perf_counter()
            model.generate(ids(1, 20), **GREEDY)
            times.append(time.perf_counter() - begin)
        self.assertLess(times[1], times[0])


if __name__ == "__main__":
    unittest.main()

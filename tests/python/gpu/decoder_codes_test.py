"""`hone generate` with codes in place of numbers, beside transformers: experts of 4 and 8 bits, and the trained model of
examples/tiny-llama with a cache of fp8 codes.
"""

from __future__ import annotations

import tempfile
import unittest
from typing import Any, Dict

from decoder_support import NEW_TOKENS, QWEN, SIZES, TINY_LLAMA, made, texts, told
from support import DEVICE

import torch
import transformers


class Experts(unittest.TestCase):
    """Experts in one tensor each, and with codes."""

    PROMPT = list(range(5, 82))

    def model(self) -> Any:
        return made(transformers.Qwen3MoeConfig(**SIZES, **{**QWEN, "moe_intermediate_size": 128}, norm_topk_prob=True))

    def test_one_tensor_of_all_experts_says_the_same(self):
        model = self.model()
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as stacked:
            model.save_pretrained(folder)
            model.save_pretrained(stacked, save_original_format=False)
            from safetensors import safe_open

            with safe_open(f"{stacked}/model.safetensors", "pt") as file:
                names = set(file.keys())
            if "model.layers.0.mlp.experts.gate_up_proj" not in names:
                self.skipTest("this transformers writes no stacked experts")
            self.assertEqual(texts(stacked, self.PROMPT), texts(folder, self.PROMPT))

    def test_codes_say_what_the_numbers_say_that_they_stand_for(self):
        """Transformers, in float32, has the values of the codes. In fp16 a router near a tie may choose other experts, after
        which logits are others, too: so most tokens have to be the likeliest, not all of them nearly."""
        for format, group in (("w8a16", 0), ("w4a16", 32)):
            with self.subTest(format=format), tempfile.TemporaryDirectory() as folder:
                model = self.model().half()
                model.save_pretrained(folder)
                options = ("--format", format, *(("--group", str(group)) if group else ()))
                (text,) = texts(folder, self.PROMPT, *options)
                with torch.no_grad():
                    for name, weight in model.named_parameters():
                        linear = weight.dim() > 1 and not any(word in name for word in ("embed", "lm_head", "mlp.gate."))
                        if linear:
                            weight.copy_(self.coded(weight, format, group))
                    logits = model.float()(torch.tensor([self.PROMPT + text], device=DEVICE)).logits
                logits = logits[0, len(self.PROMPT) - 1 : -1]
                chosen = logits.gather(-1, torch.tensor(text, device=DEVICE)[:, None])[:, 0]
                gaps = logits.max(-1).values - chosen
                likely = int((gaps == 0).sum())
                print(f"{format}: {likely} of {NEW_TOKENS} likeliest, gaps up to {gaps.max():.3f}", flush=True)
                self.assertGreaterEqual(likely, 0.9 * NEW_TOKENS)

    @staticmethod
    def coded(weight: torch.Tensor, format: str, group: int) -> torch.Tensor:
        """What codes of the weight stand for; of experts, of each by itself."""
        import hone
        from hone._operators.stored import StoredWeight
        from hone._weights import packing

        rows = weight.reshape(-1, weight.shape[-1]).contiguous()
        packed = hone.quantize_weights(rows, format, group, scale_dtype=torch.float16)
        stored = StoredWeight(rows.shape[0], rows.shape[1], format, group)
        return packing.dequantize(packed, stored, torch.float32).view(weight.shape)


class CacheOfCodes(unittest.TestCase):
    """Of prompts, which `hone score` computes alone, and of single tokens behind them."""

    def setUp(self):
        if not (TINY_LLAMA / "model.safetensors").exists():
            self.skipTest(f"{TINY_LLAMA} has no weights here")

    def test_prompts_are_as_likely(self):
        words = ("score", str(TINY_LLAMA), str(TINY_LLAMA / "held_back.txt"))
        numbers = told(*words)["perplexity"]
        codes = told(*words, "--kv-cache", "fp8")["perplexity"]
        print(f"perplexity {numbers:.4f}, with a cache of fp8 {codes:.4f}", flush=True)
        self.assertNotEqual(numbers, codes)
        self.assertLess(abs(codes / numbers - 1), 0.01)

    def test_a_text_is_as_likely(self):
        model = transformers.LlamaForCausalLM.from_pretrained(TINY_LLAMA, dtype=torch.float32).to(DEVICE).eval()
        prompt = list(range(40, 117))
        likely: Dict[str, int] = {}
        for kind in ("same", "fp8"):
            (text,) = texts(str(TINY_LLAMA), prompt, "--kv-cache", kind)
            with torch.no_grad():
                logits = model(torch.tensor([prompt + text], device=DEVICE)).logits[0, len(prompt) - 1 : -1]
            chosen = logits.gather(-1, torch.tensor(text, device=DEVICE)[:, None])[:, 0]
            gaps = logits.max(-1).values - chosen
            likely[kind] = int((gaps == 0).sum())
            print(f"cache {kind}: {likely[kind]} of {NEW_TOKENS} likeliest, gaps up to {gaps.max():.3f}", flush=True)
            self.assertLess(gaps.max().item(), 0.5)
        self.assertGreaterEqual(likely["fp8"], 0.9 * NEW_TOKENS)


if __name__ == "__main__":
    unittest.main()

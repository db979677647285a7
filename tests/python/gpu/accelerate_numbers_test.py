"""Numbers of accelerated models on a GPU: errors beside those of transformers, weights of 4 and 8 bits, gradients."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

from accelerate_support import CODED, CONFIGS, GREEDY, ModelCase, ids, made, prepare_in_advance
from support import DEVICE

import torch

import hone

sys.path.append(str(Path(__file__).resolve().parents[1] / "fakes"))  # as a package it would stand in for the driver

import quantizers  # noqa: E402


def setUpModule() -> None:
    prepare_in_advance("bfloat16", CODED)


class Numbers(ModelCase):
    def test_errors_in_bf16_are_those_of_transformers(self) -> None:
        """To the same weights in float32: at most 1.1 times as large, in prompts and in steps from the graph. A token that a
        rounding sends to another expert is off by far more than others, and so is what sees it; which ones are is chance. Of
        mixtures the prompt's first quartile counts, 1.2 times as large."""
        for name in CONFIGS:
            plain, fast = self.pair(name, torch.bfloat16)
            wide = made(name, torch.bfloat16).float()
            for tokens in (9, 60):
                with self.subTest(name, tokens=tokens), torch.no_grad():
                    mixes = name in ("mixtral", "qwen3_moe")
                    summary = (lambda errors: errors.quantile(0.25)) if mixes else torch.mean
                    ratios = self.error_ratios(fast, plain, wide, tokens, summary)
                    self.assertLess(max(ratios[:1] if mixes else ratios), 1.2 if mixes else 1.1, ratios)

    def error_ratios(self, fast: Any, plain: Any, wide: Any, tokens: int, summary: Any) -> list:
        """Of the prompt's logits, and of the steps' behind it, by a summary of all tokens."""
        errors: list = [[[], []], [[], []]]
        pasts: list = [None, None, None]
        for step in range(13):
            given = ids(4, tokens) if step == 0 else ids(4, 1, step + 7)
            outs = [m(given, past_key_values=past, use_cache=True) for m, past in zip((fast, plain, wide), pasts)]
            pasts = [out.past_key_values for out in outs]
            for one in (0, 1):
                error = (outs[one].logits.double() - outs[2].logits.double()).norm(dim=-1)
                errors[min(step, 1)][one].append(error.flatten())
        return [float(summary(torch.cat(ours)) / summary(torch.cat(theirs))) for ours, theirs in errors]

    def test_codes(self) -> None:
        """Beside the same model with the weights that its codes stand for; those of fp8 are multiplied with codes of x."""
        for name, format in CODED:
            plain, fast = self.pair(name, torch.bfloat16, format)
            layers = dict(fast.named_modules())
            with self.subTest(name, format=format), torch.no_grad():
                for key, module in plain.base_model.named_modules(prefix=plain.base_model_prefix):
                    if type(module) is torch.nn.Linear:
                        module.weight.copy_(layers[key].dequantized(torch.bfloat16))
                found, wanted = (model(ids(2, 50)).logits.double() for model in (fast, plain))
                self.assertLess(self.relative_error(found, wanted), 0.15 if format == "fp8" else 0.05)
                self.assertEqual(fast.generate(ids(2, 20), **GREEDY).shape, (2, 80))

    def test_layers_of_quantizers(self) -> None:
        """Beside the same model with the weights that their codes stand for."""
        from transformers.integrations.finegrained_fp8 import FP8Linear

        def fp8(child: Any) -> tuple:
            out, columns = child.weight.shape
            layer = FP8Linear(columns, out, block_size=(128, 128)).to(DEVICE)
            with torch.no_grad():
                layer.weight.copy_((torch.randn(out, columns, device=DEVICE) * 100).clamp(-448, 448).to(torch.float8_e4m3fn))
                layer.weight_scale_inv.copy_(torch.rand_like(layer.weight_scale_inv) * 3e-4 + 3e-4)
            spread = layer.weight_scale_inv.repeat_interleave(128, 0)[:out].repeat_interleave(128, 1)
            return layer, layer.weight.float() * spread

        for make, most in (
            (lambda child: quantizers.grouped(quantizers.TorchLinear, child, 64, True), 0.05),
            (lambda child: quantizers.grouped(quantizers.AwqTorchLinear, child, 128, False), 0.05),
            (fp8, 0.15),
        ):
            plain, fast = made("llama", torch.bfloat16), made("llama", torch.bfloat16)
            quantizers.replaced(fast, plain, make)
            kind = type(fast.model.layers[0].mlp.up_proj).__name__
            report = str(hone.accelerate(fast, max_tokens=512))
            with self.subTest(kind), torch.no_grad():
                self.assertIn(f"21 layers of {kind}", report)
                for tokens in (50, 9):
                    found, wanted = (model(ids(2, tokens)).logits.double() for model in (fast, plain))
                    self.assertLess(self.relative_error(found, wanted), most)
                self.assertEqual(fast.generate(ids(2, 20), **GREEDY).shape, (2, 80))

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


if __name__ == "__main__":
    unittest.main()

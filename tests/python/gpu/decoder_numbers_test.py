# In 2 parts
"""`hone score` beside transformers: log probabilities of a text in bfloat16, whose errors to float32 are held against those of
transformers in bfloat16.
"""

from __future__ import annotations

import shutil
import tempfile
import unittest
from pathlib import Path
from typing import Any, List

from decoder_support import CONFIGS, TINY_LLAMA, made, part_of, prepare_in_advance, told
from support import DEVICE

import torch
import transformers

IN_BF16 = ("llama", "mistral, a window", "qwen2", "qwen3", "gemma2", "phi3", "gpt2", "mixtral",
           "gemma", "glm", "stablelm", "starcoder2, a window", "glm4", "granite", "olmo2", "gemma3, two rotations",
           "smollm3, layers without rotation", "gpt_neox", "phi", "cohere2", "falcon, two norms", "opt", "olmoe", "gpt_oss")


def setUpModule() -> None:
    prepare_in_advance(torch.bfloat16)


class Bf16(unittest.TestCase):
    """Weights are rounded before, so that what differs is how they are computed with."""

    def of_transformers(self, model: Any, ids: List[int]) -> torch.Tensor:
        with torch.no_grad():
            logits = model(torch.tensor([ids], device=DEVICE)).logits[0, :-1]
        likely = torch.log_softmax(logits.double(), -1)
        return likely.gather(-1, torch.tensor(ids[1:], device=DEVICE)[:, None])[:, 0]

    def loaded(self, folder: Path, dtype: torch.dtype) -> Any:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager")
        if hasattr(model, "set_experts_implementation"):
            model.set_experts_implementation("eager")
        return model.to(DEVICE).eval()

    def errors(self, config: Any, seed: int, ids: List[int], text: Path) -> List[torch.Tensor]:
        """Ours, and those of transformers."""
        config.bos_token_id, config.eos_token_id = 0, 1
        made(config, seed).bfloat16().save_pretrained(text.parent)
        # Read again: bfloat16() rounds the frequencies of rotations, too, which are no weights.
        theirs, exact = (
            self.of_transformers(self.loaded(text.parent, dtype), ids) for dtype in (torch.bfloat16, torch.float32)
        )
        said = told("score", str(text.parent), str(text), "--window", "1024")["log_probabilities"]
        ours = torch.tensor(said, dtype=torch.float64, device=DEVICE)
        self.assertEqual(ours.shape, exact.shape)
        return [ours - exact, theirs - exact]

    def test_log_probabilities_are_as_exact_as_those_of_transformers(self):
        from tokenizers import Tokenizer

        source = TINY_LLAMA
        words = (source / "held_back.txt").read_text(encoding="utf-8")[:2400]
        tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
        ids = [0, *tokenizer.encode(words, add_special_tokens=False).ids]  # as `hone score` begins a window
        self.assertLess(len(ids), 1024)
        for name in part_of(IN_BF16):
            with self.subTest(model=name), tempfile.TemporaryDirectory() as folder:
                shutil.copy(source / "tokenizer.json", folder)
                text = Path(folder) / "text"
                text.write_text(words, encoding="utf-8")
                all_errors = [self.errors(CONFIGS[name](), seed, ids, text) for seed in (7, 8, 9)]
                ours, theirs = (torch.cat(errors).square().mean().sqrt().item() for errors in zip(*all_errors))
                print(f"{name}: error {ours:.4f}, of transformers {theirs:.4f}, {ours / theirs:.2f} times", flush=True)
                self.assertLess(ours, 1.1 * theirs)


if __name__ == "__main__":
    unittest.main()

"""The model of examples/tiny-llama: perplexity by how its weights are kept, beside transformers, and texts that are the same however they
come to be computed: alone, together, in parts, on pages that another text has filled, anew after they gave way.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

from support import DEVICE

import torch

import hone
from hone.program import find_program

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "tiny-llama"
WINDOW = 512


def setUpModule() -> None:
    if not (FOLDER / "model.safetensors").exists():
        raise unittest.SkipTest(f"{FOLDER} has no weights here")


def perplexity(*options: str) -> float:
    words = ("score", str(FOLDER), str(FOLDER / "held_back.txt"), "--window", str(WINDOW), *options, "--json")
    ended = subprocess.run([find_program(), *words], capture_output=True, text=True)
    if ended.returncode != 0:
        raise AssertionError(ended.stdout + ended.stderr)
    return float(json.loads(ended.stdout)["data"]["perplexity"])


class Perplexity(unittest.TestCase):
    """Of text that the model was not trained on. Each bar is relative."""

    BARS: Dict[str, Any] = {"w8a16": 0.003, "fp8": 0.003, "w4a16": 0.02}

    def of_transformers(self) -> float:
        import transformers
        from tokenizers import Tokenizer

        model = transformers.LlamaForCausalLM.from_pretrained(FOLDER, dtype=torch.bfloat16).to(DEVICE).eval()
        tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
        text = (FOLDER / "held_back.txt").read_text(encoding="utf-8")
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        begin = model.config.bos_token_id
        total, count = 0.0, 0
        for at in range(0, len(ids), WINDOW - 1):
            window = torch.tensor([[begin, *ids[at : at + WINDOW - 1]]], device=DEVICE)
            with torch.no_grad():
                logits = model(window).logits[0, :-1].double()
            total -= torch.log_softmax(logits, -1).gather(-1, window[0, 1:, None]).sum().item()
            count += window.shape[1] - 1
        return float(torch.tensor(total / count, dtype=torch.float64).exp())

    def test_numbers_are_as_likely_as_for_transformers(self) -> None:
        try:
            theirs = self.of_transformers()
        except ModuleNotFoundError as missing:
            self.skipTest(str(missing))
        ours = perplexity()
        print(f"bf16 {ours:.4f}, transformers {theirs:.4f}: {ours / theirs - 1:+.5f}", flush=True)
        self.assertLess(abs(ours / theirs - 1), 1e-3)

    def test_codes_are_nearly_as_likely(self) -> None:
        numbers = perplexity()
        for format, bar in self.BARS.items():
            with self.subTest(format=format):
                codes = perplexity("--format", format)
                print(f"{format} {codes:.4f}: {codes / numbers - 1:+.5f}, bar {bar}", flush=True)
                self.assertNotEqual(codes, numbers)
                self.assertLess(abs(codes / numbers - 1), bar)


class Same(unittest.TestCase):
    """In float32, where kernels that add in another order seldom change which token is the likeliest."""

    COUNT, NEW = 24, 200

    @classmethod
    def setUpClass(cls) -> None:
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = str(Path(cls.scratch.name) / "model")
        shutil.copytree(FOLDER, cls.folder)
        from safetensors.torch import load_file, save_file

        file = Path(cls.folder) / "model.safetensors"
        save_file({name: tensor.float() for name, tensor in load_file(str(file)).items()}, str(file), {"format": "pt"})
        config = Path(cls.folder) / "config.json"
        said = json.loads(config.read_text(encoding="utf-8"))
        config.write_text(json.dumps({**said, "torch_dtype": "float32", "dtype": "float32"}), encoding="utf-8")
        draw = random.Random(5)
        cls.prompts: List[List[int]] = [
            [draw.randrange(3, 500) for _ in range(draw.randint(2, 300))] for _ in range(cls.COUNT)
        ]
        with hone.Decoder(cls.folder, max_sequences=1) as decoder:
            cls.alone = [decoder.generate(prompt, max_tokens=cls.NEW, ignore_end=True).ids for prompt in cls.prompts]

    @classmethod
    def tearDownClass(cls) -> None:
        cls.scratch.cleanup()

    def check(self, made: List[Any], least: int = COUNT) -> None:
        same = sum(text.ids == alone for text, alone in zip(made, self.alone))
        print(f"{same} of {self.COUNT} texts as alone", flush=True)
        self.assertGreaterEqual(same, least)

    def test_texts_say_something(self) -> None:
        self.assertGreater(len({token for text in self.alone for token in text}), 50)

    def test_together(self) -> None:
        with hone.Decoder(self.folder, max_sequences=self.COUNT) as decoder:
            self.check(decoder.generate_many(self.prompts, max_tokens=self.NEW, ignore_end=True))

    def test_prompts_in_parts(self) -> None:
        with hone.Decoder(self.folder, max_sequences=self.COUNT, max_step_tokens=40) as decoder:
            self.check(decoder.generate_many(self.prompts, max_tokens=self.NEW, ignore_end=True))

    def test_on_pages_that_another_text_has_filled(self) -> None:
        with hone.Decoder(self.folder, max_sequences=12) as decoder:  # with pages for all of them
            for _ in range(2):
                made = decoder.generate_many(self.prompts, max_tokens=self.NEW, ignore_end=True)
            self.assertGreater(decoder.state()["shared_tokens"], sum(map(len, self.prompts)) / 2)
            self.check(made)

    def test_texts_that_gave_way(self) -> None:
        """In pages for a third of them: as texts grow the youngest give theirs away, and are computed anew."""
        needed = sum((len(prompt) + self.NEW + 15) // 16 for prompt in self.prompts)
        said = json.loads((Path(self.folder) / "config.json").read_text(encoding="utf-8"))
        page_bytes = 16 * 2 * 4 * said["num_hidden_layers"] * said["num_key_value_heads"] * said["head_dim"]
        share = needed / 3 * page_bytes / torch.cuda.mem_get_info()[0]
        with hone.Decoder(
            self.folder, max_sequences=self.COUNT, max_context=512, max_step_tokens=512, memory_share=share
        ) as decoder:
            self.assertLess(decoder.state()["pages"], needed / 2)
            self.check(decoder.generate_many(self.prompts, max_tokens=self.NEW, ignore_end=True))
            self.assertEqual(decoder.state()["pages_used"], 0)


if __name__ == "__main__":
    unittest.main()

# In 5 parts
"""Folders of small models with random weights, written by save_pretrained: texts alone, and beside the prompts of others, in parts
and whole, and on pages that another text has filled. Each of their tokens has to be the likeliest for transformers.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import unittest
from typing import Any, Dict, List, NamedTuple

from decoder_support import CONFIGS, NEW_TOKENS, SIZES, TINY_LLAMA, made, part_of, prepare_in_advance
from support import DEVICE

import torch
import transformers

import hone

COUNT = 10
STEP_TOKENS = 48  # fewer than most prompts: parts of them stand beside texts that grow
CONTEXT = 1024
AS_LIKELY = 1e-3  # logits of float32 so close change places with the kernel
DEVIATIONS = 4  # by how many of its standard ones the share of tokens that are the likeliest may be smaller beside others
IN_16_BITS: Dict[str, Any] = {
    "llama, heads of 128": lambda: transformers.LlamaConfig(**SIZES, head_dim=128),
    **{name: CONFIGS[name] for name in ("mistral, a window", "qwen3", "gemma2", "phi3")},
}

Texts = List[List[int]]


def prompts() -> Texts:
    draw = random.Random(5)
    return [[draw.randrange(3, 1024) for _ in range(draw.choice((2, 17, 64, 130, 300)))] for _ in range(COUNT)]


class Made(NamedTuple):
    """Texts behind the prompts, by how they came to be computed."""

    alone: Texts
    beside: Dict[str, Texts]
    shared: float  # of the prompts' tokens, found on known pages


def texts_of(folder: str, **options: Any) -> Made:
    """`options` are the decoder's."""
    asked = prompts()

    def grown(decoder: hone.Decoder) -> Texts:
        return [text.ids for text in decoder.generate_many(asked, max_tokens=NEW_TOKENS, ignore_end=True)]

    beside = {}
    with hone.Decoder(folder, max_sequences=1, max_context=CONTEXT, **options) as decoder:
        alone = grown(decoder)
    with hone.Decoder(folder, max_sequences=COUNT, max_context=CONTEXT, max_step_tokens=STEP_TOKENS, **options) as decoder:
        beside["in parts"] = grown(decoder)
        before = decoder.state()["shared_tokens"]
        beside["on known pages"] = grown(decoder)
        shared = decoder.state()["shared_tokens"] - before
    with hone.Decoder(folder, max_sequences=COUNT, max_context=CONTEXT, max_step_tokens=2048, **options) as decoder:
        beside["whole prompts"] = grown(decoder)
    return Made(alone, beside, shared / sum(map(len, asked)))


def copy_tokenizer(folder: str) -> None:
    """Of as many tokens as the models have; these texts are ids."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(TINY_LLAMA / name, folder)


def gaps(model: Any, texts: Texts) -> torch.Tensor:
    """By how much the logit of each token is below the largest there."""
    found = []
    for prompt, text in zip(prompts(), texts):
        with torch.no_grad():
            logits = model(torch.tensor([prompt + text], device=DEVICE)).logits[0, len(prompt) - 1 : -1].float()
        chosen = logits.gather(-1, torch.tensor(text, device=DEVICE)[:, None])[:, 0]
        found.append(logits.max(-1).values - chosen)
    return torch.cat(found)


def saved(config: Any, folder: str, dtype: torch.dtype) -> Any:
    """The model of these weights in float32, for transformers."""
    config.bos_token_id, config.eos_token_id = 0, 1
    model = made(config, embedded=0.05 if config.tie_word_embeddings else 1)
    if dtype != torch.float32:
        model = model.to(dtype)
    model.save_pretrained(folder)
    copy_tokenizer(folder)
    if dtype == torch.float32:
        return model
    read = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    if hasattr(read, "set_experts_implementation"):
        read.set_experts_implementation("eager")
    return read.to(DEVICE).eval()


def setUpModule() -> None:
    prepare_in_advance(torch.float32)


class Beside(unittest.TestCase):
    def test_in_float32_each_token_is_the_likeliest(self) -> None:
        for name, config in part_of(CONFIGS.items()):
            with self.subTest(model=name), tempfile.TemporaryDirectory() as folder:
                model = saved(config(), folder, torch.float32)
                texts = texts_of(folder)
                self.assertGreater(texts.shared, 0.8)
                self.assertLess(gaps(model, texts.alone).max().item(), AS_LIKELY, "alone")
                for how, beside in texts.beside.items():
                    same = sum(one == other for one, other in zip(texts.alone, beside))
                    farthest = gaps(model, beside).max().item()
                    print(f"{name}, {how}: {same} of {COUNT} texts as alone, a token at most {farthest:.1e} below the likeliest", flush=True)
                    self.assertLess(farthest, AS_LIKELY, how)

    def test_of_16_bits_as_many_tokens_are_the_likeliest_as_alone(self) -> None:
        """By the kernels that real models have; keys and values as numbers and as codes."""
        for name, config in part_of(IN_16_BITS.items()):
            for cache in (None, "fp8"):
                with self.subTest(model=name, cache=cache), tempfile.TemporaryDirectory() as folder:
                    model = saved(config(), folder, torch.bfloat16)
                    texts = texts_of(folder, kv_cache=cache)
                    alone = gaps(model, texts.alone)
                    share = (alone == 0).double().mean().item()
                    least = share - DEVIATIONS * (2 * share * (1 - share) / len(alone)) ** 0.5
                    for how, beside in texts.beside.items():
                        found = gaps(model, beside)
                        other = (found == 0).double().mean().item()
                        print(f"{name}, cache {cache}, {how}: {other:.4f} of tokens are the likeliest, alone {share:.4f}; the mean is "
                              f"{found.mean().item():.2e} below it, alone {alone.mean().item():.2e}", flush=True)
                        self.assertGreater(other, least, how)


if __name__ == "__main__":
    unittest.main()

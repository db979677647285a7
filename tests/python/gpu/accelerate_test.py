"""hone.accelerate() on a GPU: small models of every architecture beside transformers' own code, with kernels and graphs."""

from __future__ import annotations

import unittest
from typing import Any
from unittest import mock

from accelerate_support import CONFIGS, GREEDY, ModelCase, ids, left_padded, prepare_in_advance
from support import DEVICE

import torch
import transformers

import hone
from hone._accelerated.classes import runner_of
from hone.hub import paged


FEW = {**GREEDY, "max_new_tokens": 24, "min_new_tokens": 24}


def setUpModule() -> None:
    prepare_in_advance("float32")


class Generates(ModelCase):
    def test_greedy_tokens_are_those_of_before(self) -> None:
        mask = left_padded(3, 40)
        for name in CONFIGS:
            plain, fast = self.pair(name)
            with self.subTest(name):
                for prompt in (ids(1, 9), ids(1, 150), ids(5, 33)):
                    self.assert_same_tokens(fast, plain, prompt, **FEW)
                self.assert_same_tokens(fast, plain, ids(3, 40), attention_mask=mask, **FEW)
                self.assertGreater(len(runner_of(fast)._idle[0].graphs), 0)
                hone.restore(fast)
                self.assert_same_tokens(fast, plain, ids(1, 9), **{**FEW, "max_new_tokens": 4, "min_new_tokens": 4})

    def test_beams_sampling_and_assistants(self) -> None:
        plain, fast = self.pair("llama")
        options = {**GREEDY, "max_new_tokens": 20, "min_new_tokens": 20}
        self.assert_same_tokens(fast, plain, ids(2, 40), attention_mask=left_padded(2, 40), num_beams=3, **options)
        self.assert_same_tokens(fast, plain, ids(1, 40).repeat(1, 2), prompt_lookup_num_tokens=4, **options)
        found = []
        for model in (fast, plain):
            torch.manual_seed(5)
            found.append(model.generate(ids(2, 30), do_sample=True, top_k=5, max_new_tokens=20).tolist())
        self.assertEqual(*found)

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
            plain, fast = self.pair(name, attention="sdpa")
            prompts = [ids(1, tokens, tokens)[0].tolist() for tokens in (5, 40, 17)]
            options = {"max_new_tokens": 12, "do_sample": False, "eos_token_id": -1, "pad_token_id": 0}
            config = transformers.GenerationConfig(**options)
            with mock.patch.object(paged, "flash_attn_with_kvcache", wraps=paged.flash_attn_with_kvcache) as over_pages:
                found = fast.generate_batch(inputs=prompts, generation_config=config)
            self.assertGreater(over_pages.call_count, 3 * 3)  # of three layers, in steps of one token a sequence
            made = sorted(found.values(), key=lambda one: len(one.prompt_ids))
            for prompt, one in zip(sorted(prompts, key=len), made):
                alone = torch.tensor([prompt], device=DEVICE)
                wanted = plain.generate(alone, **options)
                self.assertEqual(one.generated_tokens, wanted[0, len(prompt) :].tolist())


if __name__ == "__main__":
    unittest.main()

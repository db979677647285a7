"""What accelerated models stay on a GPU: masks, moves, weights that change, saving, memory, compilation."""

from __future__ import annotations

import tempfile
import time
import unittest
import warnings
from typing import Any

from accelerate_support import GREEDY, ModelCase, ids, left_padded, made, prepare_in_advance
from support import DEVICE

import torch

import hone
from hone.errors import HoneWarning


def setUpModule() -> None:
    prepare_in_advance("float32")


class Accelerated(ModelCase):
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
            self.assert_same_tokens(fast, plain, ids(1, 20), **GREEDY)
            for model in (plain, fast):
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.mul_(1.05)
            self.assert_same_tokens(fast, plain, ids(1, 20), **GREEDY)

    def test_moves_casts_and_hooks(self) -> None:
        plain, fast = self.pair("llama")
        fast.generate(ids(1, 20), **GREEDY)
        fast.cpu()
        with self.assertWarnsRegex(HoneWarning, "it is on the device cpu.*transformers' own code runs"):
            fast(ids(1, 20).cpu())
        fast.to(DEVICE)
        self.assert_same_tokens(fast, plain, ids(1, 20), **GREEDY)
        seen: list = []
        handle = fast.model.layers[1].mlp.register_forward_hook(lambda *_: seen.append(1))
        with self.assertWarnsRegex(HoneWarning, "modules have hooks"):
            self.assert_same_tokens(fast, plain, ids(1, 20), **GREEDY)
        self.assertEqual(len(seen), 60)
        handle.remove()
        for model in (plain, fast):
            model.to(torch.bfloat16)
        self.assertEqual(fast.generate(ids(1, 20), **GREEDY).shape, (1, 80))
        with self.assertWarnsRegex(HoneWarning, "torch.autocast is on"), torch.autocast("cuda"):
            fast(ids(1, 20))

    def test_save_and_load(self) -> None:
        for name in ("qwen2", "mixtral"):
            plain, fast = self.pair(name)
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                fast.save_pretrained(folder)
                loaded = hone.load(folder, max_batch=2, max_tokens=256)
                self.assert_same_tokens(loaded, plain, ids(2, 30), **GREEDY)

    def test_a_generation_that_goes_over_its_memory(self) -> None:
        plain, fast = made("llama"), made("llama")
        hone.accelerate(fast, max_batch=2, max_tokens=64)
        with self.assertWarnsRegex(HoneWarning, "is larger than max_batch=2 and max_tokens=64"):
            self.assert_same_tokens(fast, plain, ids(1, 40), **GREEDY)

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

    def test_it_compiles_without_a_break(self) -> None:
        """Transformers' layers are what is compiled, with Hone's attention as one operator where there is no mask."""
        plain, fast = self.pair("llama", attention="sdpa")
        torch._dynamo.reset()
        with torch.no_grad():
            compiled = torch.compile(fast, fullgraph=True, dynamic=True)
            for tokens in (40, 56):
                found = compiled(ids(2, tokens), use_cache=False).logits
                torch.testing.assert_close(found, plain(ids(2, tokens)).logits, rtol=1e-3, atol=1e-3)

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

# In 2 parts
"""`hone generate` beside transformers: folders of small models with random weights, written by save_pretrained, in float32.

Each of 200 tokens has to be the likeliest for transformers after those before it, which is what equal greedy texts mean.
"""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from decoder_support import CONFIGS, NEW_TOKENS, SIZES, made, part_of, prepare_in_advance, texts
from support import DEVICE

import torch

from safetensors.torch import save_file

PROMPT = 77
AS_LIKELY = 1e-3  # logits of float32 so close change places with the kernel, which is another on another GPU
FEWEST_TOKENS = 20  # different ones of a text: one that says the same over and over would be equal whatever is wrong


def setUpModule() -> None:
    prepare_in_advance(torch.float32)


class Greedy(unittest.TestCase):
    def test_each_token_is_the_likeliest_for_transformers(self):
        generator = torch.Generator().manual_seed(3)
        prompt = torch.randint(SIZES["vocab_size"], (PROMPT,), generator=generator).tolist()
        for name, config in part_of(CONFIGS.items()):
            with self.subTest(model=name), tempfile.TemporaryDirectory() as folder:
                # A head that is the embedding says one token over and over where the stream is mostly its row.
                model = made(config(), embedded=0.05 if config().tie_word_embeddings else 1)
                model.save_pretrained(folder)
                (text,) = texts(folder, prompt)
                self.assertEqual(len(text), NEW_TOKENS)
                self.assertGreaterEqual(len(set(text)), FEWEST_TOKENS, "it says the same over and over")
                with torch.no_grad():
                    logits = model(torch.tensor([prompt + text], device=DEVICE)).logits[0, PROMPT - 1 : -1]
                gaps = [(logits[i].max() - logits[i, text[i]]).item() for i in range(NEW_TOKENS)]
                self.assertLess(max(gaps), AS_LIKELY, "a token is not the likeliest")
                print(f"{name}: {NEW_TOKENS} tokens, {len(set(text))} different ones", flush=True)
                for other in texts(folder, prompt, "--sequences", "5"):
                    for i in range(NEW_TOKENS):
                        if other[i] != text[i]:  # from here on it is another text
                            gap = abs(logits[i, text[i]] - logits[i, other[i]]).item()
                            self.assertLess(gap, AS_LIKELY, f"five side by side differ from the one alone at {i}")
                            break

    def test_internlm2_is_llama_under_other_names(self):
        """Whose code is not in transformers: queries, keys and values stand in one tensor, by heads of keys."""
        if part_of([0]) == []:
            return
        prompt = [1 + 7 * i % 1000 for i in range(PROMPT)]
        model = made(CONFIGS["llama"]())
        names = {"embed_tokens": "tok_embeddings", "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1",
                 "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2", "input_layernorm": "attention_norm",
                 "post_attention_layernorm": "ffn_norm", "lm_head": "output"}  # fmt: skip
        tensors = {}
        for name, value in model.state_dict().items():
            for theirs, other in names.items():
                name = name.replace(theirs, other)
            tensors[name] = value.contiguous()
        groups = SIZES["num_key_value_heads"]
        for layer in range(SIZES["num_hidden_layers"]):
            parts = [tensors.pop(f"model.layers.{layer}.self_attn.{kind}_proj.weight") for kind in "qkv"]
            by_groups = torch.cat([part.reshape(groups, -1, SIZES["hidden_size"]) for part in parts], 1)
            tensors[f"model.layers.{layer}.attention.wqkv.weight"] = by_groups.reshape(-1, SIZES["hidden_size"]).contiguous()
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as llama:
            model.save_pretrained(llama)
            save_file(tensors, Path(folder) / "model.safetensors")
            config = {**SIZES, "model_type": "internlm2", "bias": False, "rms_norm_eps": 1e-6, "torch_dtype": "float32",
                      "rope_scaling": {"type": "dynamic", "factor": 2.0}}  # fmt: skip
            (Path(folder) / "config.json").write_text(json.dumps(config), encoding="utf-8")
            self.assertEqual(texts(folder, prompt), texts(llama, prompt))

    def test_mxfp4_is_what_transformers_widens(self):
        if part_of([0]) == []:
            return
        from transformers.integrations.mxfp4 import convert_moe_packed_tensors

        prompt = [1 + 7 * i % 1000 for i in range(PROMPT)]
        model = made(CONFIGS["gpt_oss"]())
        generator = torch.Generator(device=DEVICE).manual_seed(11)
        with tempfile.TemporaryDirectory() as numbers, tempfile.TemporaryDirectory() as codes:
            tensors = {name: value.contiguous() for name, value in model.state_dict().items()}
            for layer, block in enumerate(model.model.layers):
                for name in ("gate_up_proj", "down_proj"):
                    weight = getattr(block.mlp.experts, name)
                    experts, columns, rows = weight.shape
                    shape = (experts, rows, columns // 32)
                    blocks = torch.randint(256, (*shape, 16), generator=generator, device=DEVICE, dtype=torch.uint8)
                    scales = torch.randint(121, 125, shape, generator=generator, device=DEVICE, dtype=torch.uint8)
                    weight.data.copy_(convert_moe_packed_tensors(blocks, scales, dtype=torch.float32))
                    full = f"model.layers.{layer}.mlp.experts.{name}"
                    del tensors[full]
                    tensors.update({f"{full}_blocks": blocks, f"{full}_scales": scales})
            model.save_pretrained(numbers)
            save_file(tensors, Path(codes) / "model.safetensors")
            config = json.loads((Path(numbers) / "config.json").read_text(encoding="utf-8"))
            config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
            (Path(codes) / "config.json").write_text(json.dumps(config), encoding="utf-8")
            self.assertEqual(texts(codes, prompt), texts(numbers, prompt))


if __name__ == "__main__":
    unittest.main()

"""`hone generate` beside transformers: folders of small models with random weights, written by save_pretrained, in float32.

Each of 200 tokens has to be the likeliest for transformers after those before it, which is what equal greedy texts mean.
In bfloat16 log probabilities of a text, whose errors to float32 are held against those of transformers in bfloat16. And the trained model of
examples/tiny-llama with a cache of fp8 codes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

from support import DEVICE

import torch

from hone.program import find_program

try:
    import transformers
except ModuleNotFoundError:
    raise unittest.SkipTest("transformers is not installed") from None

NEW_TOKENS, PROMPT = 200, 77
AS_LIKELY = 1e-3  # logits of float32 so close change places with the kernel, which is another on another GPU
SIZES: Dict[str, Any] = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "vocab_size": 1024,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": False,
}
QWEN: Dict[str, Any] = {
    "head_dim": 64,
    "moe_intermediate_size": 96,
    "num_experts": 16,
    "num_experts_per_tok": 4,
}
TIED: Dict[str, Any] = {**SIZES, "tie_word_embeddings": True}
SCALED: Dict[str, Any] = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}
CONFIGS: Dict[str, Any] = {
    "llama": lambda: transformers.LlamaConfig(**SIZES),
    "llama, a scaled rotation": lambda: transformers.LlamaConfig(**SIZES, rope_parameters=SCALED),
    "mistral, a window": lambda: transformers.MistralConfig(**SIZES, sliding_window=64),
    "qwen2": lambda: transformers.Qwen2Config(**TIED),
    "qwen3": lambda: transformers.Qwen3Config(**SIZES, head_dim=64),
    "gemma": lambda: transformers.GemmaConfig(**TIED, head_dim=32),
    "glm": lambda: transformers.GlmConfig(**SIZES, head_dim=64, attention_bias=True, pad_token_id=0),
    "starcoder2, a window": lambda: transformers.Starcoder2Config(**TIED, sliding_window=64),
    "stablelm": lambda: transformers.StableLmConfig(**SIZES, use_qkv_bias=True),
    "gemma2": lambda: transformers.Gemma2Config(
        **TIED, head_dim=32, sliding_window=64, query_pre_attn_scalar=32
    ),
    "phi3": lambda: transformers.Phi3Config(**SIZES, pad_token_id=0),
    "gpt2": lambda: transformers.GPT2Config(n_embd=256, n_layer=4, n_head=8, vocab_size=1024, n_positions=1024),
    "mixtral": lambda: transformers.MixtralConfig(
        **SIZES, num_local_experts=8, num_experts_per_tok=2, sliding_window=None
    ),
    "qwen3_moe": lambda: transformers.Qwen3MoeConfig(**SIZES, **QWEN, norm_topk_prob=True),
    "qwen3_moe, weights as they are, one layer without experts": lambda: transformers.Qwen3MoeConfig(
        **SIZES, **QWEN, norm_topk_prob=False, mlp_only_layers=[2]
    ),
    "qwen3_moe, experts in every other layer": lambda: transformers.Qwen3MoeConfig(
        **SIZES, **QWEN, norm_topk_prob=True, decoder_sparse_step=2
    ),
}


def made(config: Any, seed: int = 7, embedded: float = 1) -> Any:
    """Weights large enough that attention and experts are not all alike, and norms that scale."""
    torch.manual_seed(seed)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).to(DEVICE).eval()
    if hasattr(model, "set_experts_implementation"):  # the one that is plain loops over experts
        model.set_experts_implementation("eager")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.uniform_(0.5, 1.5)
            elif "embed" in name:
                parameter.normal_(0, embedded)
            else:
                parameter.normal_(0, 1.5 * parameter.shape[-1] ** -0.5)
    return model


def told(*words: str) -> Any:
    """The data of a command of the program."""
    command = [find_program(), *words, "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise AssertionError(ended.stdout + ended.stderr)
    return json.loads(ended.stdout)["data"]


def texts(folder: str, prompt: List[int], *options: str) -> List[List[int]]:
    """What `hone generate` makes of it."""
    ids = ",".join(map(str, prompt))
    words = ("generate", folder, "--prompt-ids", ids, "--ignore-end", "-n", str(NEW_TOKENS))
    return told(*words, *options)["tokens"]


class Greedy(unittest.TestCase):
    def test_each_token_is_the_likeliest_for_transformers(self):
        generator = torch.Generator().manual_seed(3)
        prompt = torch.randint(SIZES["vocab_size"], (PROMPT,), generator=generator).tolist()
        for name, config in CONFIGS.items():
            if name == "gpt2":
                continue  # of these weights, with biases that are all above 0, it says one token over and over
            with self.subTest(model=name), tempfile.TemporaryDirectory() as folder:
                # A head that is the embedding says one token over and over where the stream is mostly its row.
                model = made(config(), embedded=0.05 if config().tie_word_embeddings else 1)
                model.save_pretrained(folder)
                (text,) = texts(folder, prompt)
                self.assertEqual(len(text), NEW_TOKENS)
                self.assertGreater(len(set(text)), 20, "it says the same over and over")
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


IN_BF16 = ("llama", "mistral, a window", "qwen2", "qwen3", "gemma2", "phi3", "gpt2", "mixtral",
           "gemma", "glm", "stablelm", "starcoder2")


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

        source = CacheOfCodes.FOLDER
        words = (source / "held_back.txt").read_text(encoding="utf-8")[:2400]
        tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
        ids = [0, *tokenizer.encode(words, add_special_tokens=False).ids]  # as `hone score` begins a window
        self.assertLess(len(ids), 1024)
        for name in IN_BF16:
            with self.subTest(model=name), tempfile.TemporaryDirectory() as folder:
                shutil.copy(source / "tokenizer.json", folder)
                text = Path(folder) / "text"
                text.write_text(words, encoding="utf-8")
                all_errors = [self.errors(CONFIGS[name](), seed, ids, text) for seed in (7, 8, 9)]
                ours, theirs = (torch.cat(errors).square().mean().sqrt().item() for errors in zip(*all_errors))
                print(f"{name}: error {ours:.4f}, of transformers {theirs:.4f}, {ours / theirs:.2f} times", flush=True)
                self.assertLess(ours, 1.1 * theirs)


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

    FOLDER = Path(__file__).resolve().parents[3] / "examples" / "tiny-llama"

    def setUp(self):
        if not (self.FOLDER / "model.safetensors").exists():
            self.skipTest(f"{self.FOLDER} has no weights here")

    def test_prompts_are_as_likely(self):
        words = ("score", str(self.FOLDER), str(self.FOLDER / "held_back.txt"))
        numbers = told(*words)["perplexity"]
        codes = told(*words, "--kv-cache", "fp8")["perplexity"]
        print(f"perplexity {numbers:.4f}, with a cache of fp8 {codes:.4f}", flush=True)
        self.assertNotEqual(numbers, codes)
        self.assertLess(abs(codes / numbers - 1), 0.01)

    def test_a_text_is_as_likely(self):
        model = transformers.LlamaForCausalLM.from_pretrained(self.FOLDER, dtype=torch.float32).to(DEVICE).eval()
        prompt = list(range(40, 117))
        likely: Dict[str, int] = {}
        for kind in ("same", "fp8"):
            (text,) = texts(str(self.FOLDER), prompt, "--kv-cache", kind)
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

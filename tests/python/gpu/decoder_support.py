"""What the tests of `hone generate` and `hone score` beside transformers share: small models of every architecture with random
weights. Where transformers is missing, importing this skips the module that does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, Iterable, List

from support import DEVICE, once

import torch

import hone

from hone.program import find_program

try:
    import transformers
except ModuleNotFoundError:
    raise unittest.SkipTest("transformers is not installed") from None

NEW_TOKENS = 200
TINY_LLAMA = Path(__file__).resolve().parents[3] / "examples" / "tiny-llama"
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


def factors_for_each_pair(trained: int) -> Any:
    """A rotation by longrope of a model that was trained with so many positions first."""
    scaling = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": trained,
               "short_factor": [1 + 0.05 * i for i in range(16)], "long_factor": [1 + 0.5 * i for i in range(16)]}  # fmt: skip
    sizes = {**SIZES, "max_position_embeddings": 2048}
    return transformers.Phi3Config(
        **sizes, pad_token_id=0, original_max_position_embeddings=trained, rope_parameters=scaling
    )


CONFIGS: Dict[str, Any] = {
    "llama": lambda: transformers.LlamaConfig(**SIZES),
    "llama, a scaled rotation": lambda: transformers.LlamaConfig(**SIZES, rope_parameters=SCALED),
    "mistral, a window": lambda: transformers.MistralConfig(**SIZES, sliding_window=64),
    "qwen2": lambda: transformers.Qwen2Config(**TIED),
    "qwen3": lambda: transformers.Qwen3Config(**SIZES, head_dim=64),
    "gemma": lambda: transformers.GemmaConfig(**TIED, head_dim=32),
    "glm": lambda: transformers.GlmConfig(**SIZES, head_dim=64, attention_bias=True, pad_token_id=0),
    "glm4": lambda: transformers.Glm4Config(**SIZES, head_dim=64, attention_bias=True, pad_token_id=0),
    "starcoder2, a window": lambda: transformers.Starcoder2Config(**TIED, sliding_window=64),
    "stablelm": lambda: transformers.StableLmConfig(**SIZES, use_qkv_bias=True),
    "granite": lambda: transformers.GraniteConfig(
        **SIZES,
        embedding_multiplier=1.5,
        attention_multiplier=0.25,
        residual_multiplier=0.4,
        logits_scaling=6.0,
    ),
    "olmo2": lambda: transformers.Olmo2Config(**SIZES),
    "olmo2, as many key heads": lambda: transformers.Olmo2Config(**{**SIZES, "num_key_value_heads": 8}),
    "gemma2": lambda: transformers.Gemma2Config(
        **TIED, head_dim=32, sliding_window=64, query_pre_attn_scalar=32
    ),
    "phi3": lambda: transformers.Phi3Config(**SIZES, pad_token_id=0),
    "gpt2": lambda: transformers.GPT2Config(n_embd=256, n_layer=4, n_head=8, vocab_size=1024, n_positions=1024),
    "phi3, factors of short contexts": lambda: factors_for_each_pair(trained=1024),
    "phi3, factors of long contexts": lambda: factors_for_each_pair(trained=64),
    "gemma3, two rotations": lambda: transformers.Gemma3TextConfig(
        **{**TIED, "num_hidden_layers": 6}, head_dim=32, sliding_window=64, query_pre_attn_scalar=32,
        layer_types=["sliding_attention", "full_attention"] * 3,
        rope_parameters={"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1000000.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}},
    ),
    "smollm3, layers without rotation": lambda: transformers.SmolLM3Config(
        **TIED, no_rope_layers=[1, 0, 1, 0], pad_token_id=0
    ),
    "olmo3, windows that are not scaled": lambda: transformers.Olmo3Config(
        **SIZES, sliding_window=64, layer_types=["sliding_attention", "full_attention"] * 2,
        rope_parameters={"full_attention": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                                            "original_max_position_embeddings": 256},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}},
    ),
    "gpt_neox": lambda: transformers.GPTNeoXConfig(**SIZES),
    "gpt_neox, one after the other": lambda: transformers.GPTNeoXConfig(**SIZES, use_parallel_residual=False),
    "gptj": lambda: transformers.GPTJConfig(
        n_embd=256, n_layer=4, n_head=8, vocab_size=1024, n_positions=1024, rotary_dim=16, tie_word_embeddings=False
    ),
    "phi": lambda: transformers.PhiConfig(**SIZES),
    "cohere": lambda: transformers.CohereConfig(**TIED, logit_scale=0.25),
    "cohere2": lambda: transformers.Cohere2Config(
        **TIED, logit_scale=0.25, sliding_window=64, layer_types=["sliding_attention", "full_attention"] * 2
    ),
    "falcon, one head of keys": lambda: transformers.FalconConfig(
        hidden_size=256, num_hidden_layers=4, num_attention_heads=8, vocab_size=1024, alibi=False, bias=False,
        new_decoder_architecture=False, parallel_attn=True, multi_query=True,
    ),
    "falcon, two norms": lambda: transformers.FalconConfig(
        hidden_size=256, num_hidden_layers=4, num_attention_heads=8, num_kv_heads=2, vocab_size=1024, alibi=False, bias=True,
        new_decoder_architecture=True,
    ),
    "gpt_bigcode": lambda: transformers.GPTBigCodeConfig(
        n_embd=256, n_layer=4, n_head=8, vocab_size=1024, n_positions=1024, multi_query=True
    ),
    "opt": lambda: transformers.OPTConfig(
        hidden_size=256, ffn_dim=512, num_hidden_layers=4, num_attention_heads=8, vocab_size=1024, max_position_embeddings=1024,
        word_embed_proj_dim=256,
    ),
    "olmoe": lambda: transformers.OlmoeConfig(**SIZES, num_experts=8, num_experts_per_tok=2),
    "granitemoe": lambda: transformers.GraniteMoeConfig(
        **SIZES, num_local_experts=8, num_experts_per_tok=2, embedding_multiplier=1.5, attention_multiplier=0.25,
        residual_multiplier=0.4, logits_scaling=6.0,
    ),
    "gpt_oss": lambda: transformers.GptOssConfig(
        **SIZES, head_dim=32, num_local_experts=8, num_experts_per_tok=2, sliding_window=64,
        layer_types=["sliding_attention", "full_attention"] * 2,
        rope_parameters={"rope_type": "yarn", "rope_theta": 150000.0, "factor": 4.0, "truncate": False,
                         "original_max_position_embeddings": 256, "beta_fast": 32.0, "beta_slow": 1.0},
    ),
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
    """Weights large enough that attention and experts are not all alike, norms that scale, and biases of both signs: of one sign
    they move the logits of all tokens of a text alike, and it says a few tokens over and over."""
    torch.manual_seed(seed)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).to(DEVICE).eval()
    if hasattr(model, "set_experts_implementation"):  # the one that is plain loops over experts
        model.set_experts_implementation("eager")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(".bias"):
                parameter.uniform_(-0.1, 0.1)
            elif parameter.dim() == 1:
                parameter.uniform_(0.5, 1.5)
            elif "embed" in name or "wte" in name:
                parameter.normal_(0, embedded)
            elif "wpe" in name:  # positions that are learned: as small as other weights, texts would hardly know where they are
                parameter.normal_(0, 1)
            else:
                parameter.normal_(0, 1.5 * parameter.shape[-1] ** -0.5)
    return model


def part_of(those: Iterable[Any]) -> List[Any]:
    """Those of this process: HONE_TEST_PART=2/4 is every fourth one from the second on, and all without it."""
    part, parts = map(int, os.environ.get("HONE_TEST_PART", "1/1").split("/"))
    return list(those)[part - 1 :: parts]


def prepare_in_advance(dtype: torch.dtype) -> None:
    """Compiles what nearly all of these models have in common, once for all programs that share HONE_CACHE: they begin side by side, and each
    would compile all of it."""
    with once(f"decoder-{dtype}") as begins:
        if not begins or not (TINY_LLAMA / "model.safetensors").exists():
            return
        with tempfile.TemporaryDirectory() as folder:
            made(CONFIGS["llama"]()).to(dtype).save_pretrained(folder)
            for name in ("tokenizer.json", "tokenizer_config.json"):
                shutil.copy(TINY_LLAMA / name, folder)
            text = Path(folder) / "text"
            text.write_text((TINY_LLAMA / "held_back.txt").read_text(encoding="utf-8")[:500], encoding="utf-8")
            if dtype == torch.bfloat16:
                told("score", folder, str(text), "--window", "1024")
            for sequences, step_tokens in ((10, 48), (10, 2048), (1, 2048)):
                with hone.Decoder(folder, max_sequences=sequences, max_context=1024, max_step_tokens=step_tokens):
                    pass


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

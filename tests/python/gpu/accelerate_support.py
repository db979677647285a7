"""What the tests of hone.accelerate() share: small models of every architecture, whose sizes are as alike as they can be, so
that they have images in common. Where transformers is missing, importing this skips the module that does.

As a program it fills the cache of images: accelerate_support.py NAME DTYPE [FORMAT].
"""

from __future__ import annotations

import subprocess
import sys
import unittest
from typing import Any

from support import DEVICE, Case, once

import torch

try:
    import transformers
except ModuleNotFoundError:
    raise unittest.SkipTest("transformers is not installed") from None

import hone
from hone._torch import prepared

prepared.FIRST_ROWS = 256  # what is compiled before it is needed; set before the operators are imported

from hone._torch import attention as attention_kernels  # noqa: E402

attention_kernels._PREPARED._first = (8, 256, 256)
transformers.logging.set_verbosity_error()

SIZES = {
    "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 1024, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}  # fmt: skip
CONFIGS = {
    "llama": lambda: transformers.LlamaConfig(**SIZES),
    "llama3": lambda: transformers.LlamaConfig(**SIZES, rope_parameters=LLAMA3),
    "mistral": lambda: transformers.MistralConfig(**SIZES, sliding_window=64),
    "mixtral": lambda: transformers.MixtralConfig(
        **{**SIZES, "intermediate_size": 128}, num_local_experts=16, num_experts_per_tok=4
    ),
    "qwen3_moe": lambda: transformers.Qwen3MoeConfig(
        **SIZES, head_dim=64, num_experts=16, num_experts_per_tok=4, moe_intermediate_size=128, norm_topk_prob=True
    ),
    "qwen2": lambda: transformers.Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen3": lambda: transformers.Qwen3Config(**SIZES, head_dim=64),
    "gemma2": lambda: transformers.Gemma2Config(
        **SIZES, head_dim=64, sliding_window=64, attn_logit_softcapping=5.0, final_logit_softcapping=8.0,
        query_pre_attn_scalar=80,
    ),
    "phi3": lambda: transformers.Phi3Config(
        **SIZES, sliding_window=64,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
    ),
    "gpt2": lambda: transformers.GPT2Config(
        n_embd=256, n_layer=3, n_head=4, n_inner=512, vocab_size=512, n_positions=1024, pad_token_id=0, bos_token_id=1,
        eos_token_id=2,
    ),
}  # fmt: skip
GREEDY = {"do_sample": False, "max_new_tokens": 60, "min_new_tokens": 60}


def made(name: str, dtype: Any = torch.float32, attention: str = "eager") -> Any:
    """With weights that are no two alike; the same numbers whatever the dtype, but for its rounding."""
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS[name](), attn_implementation=attention).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "norm" in key or "ln_" in key:
                parameter.add_(torch.rand_like(parameter) - 0.5)
            else:
                parameter.copy_(torch.randn_like(parameter) * (0.3 if parameter.dim() == 1 else 0.06))
    model.generation_config.pad_token_id = 0
    return model.to(DEVICE).to(dtype)


def ids(sequences: int, tokens: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, 512, (sequences, tokens), generator=generator).to(DEVICE)


def left_padded(sequences: int, tokens: int) -> torch.Tensor:
    mask = torch.ones(sequences, tokens, dtype=torch.long, device=DEVICE)
    mask[0, : tokens // 4], mask[-1, : 3 * tokens // 4] = 0, 0
    return mask


_APART = ("llama", "qwen2", "mixtral", "gemma2", "gpt2")  # they have few images in common; the others have theirs


# Models and formats that are tried with weights of 4 and 8 bits.
CODED = (("llama", "w4a16"), ("llama", "w8a16"), ("llama", "fp8"), ("phi3", "w4a16"))


def prepare_in_advance(dtype: str, coded: tuple = ()) -> None:
    """Compiles what the models need, side by side, a process each: one after the other they would wait for the slowest image
    of each operator. Once for all programs that share HONE_CACHE; the others wait."""
    wanted = [(name, dtype) for name in _APART] + [(name, dtype, format) for name, format in coded if name == "llama"]
    with once(dtype + "-coded" * bool(coded)) as begins:
        children = [subprocess.Popen([sys.executable, "-B", __file__, *words]) for words in wanted if begins]
        for child in children:
            child.wait()  # what one could not do, the test that needs it says


def _prepare(name: str, dtype: str, format: Any = None) -> None:
    model = made(name, getattr(torch, dtype))
    hone.accelerate(model, format, max_batch=8, max_tokens=256)
    options = {**GREEDY, "max_new_tokens": 3, "min_new_tokens": 3}
    if format is not None:
        model.generate(ids(2, 50), **options)
        return
    for prompt, mask in ((ids(1, 9), None), (ids(1, 150), None), (ids(5, 33), None), (ids(3, 40), left_padded(3, 40))):
        model.generate(prompt, attention_mask=mask, **options)
    if name == "llama":
        model.generate(ids(1, 40).repeat(1, 2), prompt_lookup_num_tokens=4, **options)


class ModelCase(Case):
    def pair(self, name: str, dtype: Any = torch.float32, format: Any = None, attention: str = "eager") -> tuple:
        plain, fast = made(name, dtype, attention), made(name, dtype, attention)
        hone.accelerate(fast, format, max_batch=8, max_tokens=256)
        return plain, fast

    def assert_same_tokens(self, fast: Any, plain: Any, *arguments: Any, **options: Any) -> None:
        found, wanted = (model.generate(*arguments, **options) for model in (fast, plain))
        self.assertEqual(found.tolist(), wanted.tolist())


if __name__ == "__main__":
    _prepare(*sys.argv[1:])

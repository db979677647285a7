#!/usr/bin/env python3
"""Models of transformers with random weights: as they are, compiled, and accelerated by Hone, side by side in one process.

    python3 bench/accelerated.py [MODEL] [--ways eager,compiled,hone,w4a16] [--measure tokens,first,prefill,batch]

MODEL is one of SHAPES below. Ways: "eager" is transformers with PyTorch's attention; "compiled" the same with torch.compile:
steps by generate()'s own mode "reduce-overhead" over a static cache, prompts by the default mode; "hone" is
hone.accelerate(), and "w4a16", "w8a16" and "fp8" quantize on the way. What is measured, medians, after warming up:

    tokens   ms a token of greedy generate() behind a prompt: two generations' difference, divided by their tokens
    first    ms of generate() of one token, from the call until the token is on the host
    prefill  ms of a forward pass over --prefill tokens, logits of the last alone
    batch    ms of a step of --batch sequences behind --behind tokens, by the model's forward and its cache
    memory   GB of the most that PyTorch allocated meanwhile

A file that is locked for as long as something is timed (--lock) lets several of these share a GPU while they compile.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import gc
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))  # where hone is not installed

import torch  # noqa: E402
import transformers  # noqa: E402

import hone  # noqa: E402

SHAPES: Dict[str, Callable[[], Any]] = {
    "llama-3-8b": lambda: transformers.LlamaConfig(
        vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, max_position_embeddings=8448, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
    ),
    "qwen2.5-0.5b": lambda: transformers.Qwen2Config(
        vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
        num_key_value_heads=2, max_position_embeddings=8448, tie_word_embeddings=True, rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0},
    ),
    "gpt2": lambda: transformers.GPT2Config(),
    "qwen3-30b-a3b-8-layers": lambda: transformers.Qwen3MoeConfig(
        vocab_size=151936, hidden_size=2048, intermediate_size=6144, moe_intermediate_size=768, num_hidden_layers=8,
        num_attention_heads=32, num_key_value_heads=4, head_dim=128, num_experts=128, num_experts_per_tok=8,
        norm_topk_prob=True, max_position_embeddings=8448,
    ),
}  # fmt: skip
MEASURES = ("tokens", "first", "prefill", "batch", "memory")
LEAST_RUNS = 3


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("model", nargs="?", default="llama-3-8b", choices=sorted(SHAPES))
    parser.add_argument("--ways", default="eager,compiled,hone")
    parser.add_argument("--measure", default=",".join(MEASURES))
    parser.add_argument("--prompt", type=int, default=1024, help="tokens before those that are timed")
    parser.add_argument("--tokens", type=int, default=64, help="tokens that are timed")
    parser.add_argument("--prefill", type=int, default=8192)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--behind", type=int, default=1000, help="tokens before the steps of a batch")
    parser.add_argument("--runs", type=int, default=5, help="of each measurement")
    parser.add_argument("--lock", type=Path, help="a file that is locked while something is timed")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    versions = f"PyTorch {torch.__version__}, transformers {transformers.__version__}"
    print(f"{options.model}, {torch.cuda.get_device_name()}, {versions}, bf16")
    results: List[Dict[str, Any]] = []
    for way in options.ways.split(","):
        row = {"model": options.model, "way": way, **measured(way, options)}
        results.append(row)
        print("  " + "  ".join(f"{key} {shown(value)}" for key, value in row.items()), flush=True)
        gc.collect()
        torch.cuda.empty_cache()
    if options.json:
        options.json.write_text(json.dumps({"schema": "hone.accelerated/1", "results": results}, indent=1) + "\n")
    return 0


def shown(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def made(name: str) -> Any:
    """A model on the GPU with random weights, the same at every call."""
    torch.manual_seed(0)
    config = SHAPES[name]()
    config.pad_token_id, config.bos_token_id, config.eos_token_id = 0, 1, 2
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa")
    model.generation_config.eos_token_id = None  # random weights end where they like
    model.generation_config.pad_token_id = 0
    return model.eval()


def measured(way: str, options: Any) -> Dict[str, Any]:
    model = made(options.model)
    found: Dict[str, Any] = {}
    if way not in ("eager", "compiled"):
        batch = options.batch if "batch" in options.measure.split(",") else 8
        begin = time.perf_counter()
        hone.accelerate(
            model, None if way == "hone" else way, max_batch=batch,
            max_tokens=max(options.prompt + 2 * options.tokens, options.behind + 128),
        )  # fmt: skip
        torch.cuda.synchronize()
        found["accelerate s"] = time.perf_counter() - begin
    torch.cuda.reset_peak_memory_stats()
    for name in options.measure.split(","):
        if name == "memory":
            found["peak GB"] = torch.cuda.max_memory_allocated() / 1e9
        else:
            found.update(_MEASURES[name](model, way, options))
    return found


@contextlib.contextmanager
def alone(options: Any) -> Iterator[None]:
    """While nobody else times something on the GPU."""
    if options.lock is None:
        yield
        return
    with open(options.lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            torch.cuda.synchronize()


def seconds(call: Callable[[], Any]) -> float:
    """From a quiet GPU until the call's work is done."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def ids_of(model: Any, sequences: int, tokens: int) -> torch.Tensor:
    generator = torch.Generator("cuda").manual_seed(tokens)
    return torch.randint(3, model.config.vocab_size, (sequences, tokens), device="cuda", generator=generator)


def generation(model: Any, way: str, ids: torch.Tensor, tokens: int, most: int) -> Callable[[], Any]:
    """Greedy decoding of so many tokens; `most`: of all that shall share what was compiled."""
    given = {"do_sample": False, "max_new_tokens": tokens, "min_new_tokens": tokens, "attention_mask": torch.ones_like(ids)}
    if way != "compiled":
        return lambda: model.generate(ids, **given).cpu()
    cache = transformers.StaticCache(config=model.config, max_cache_len=ids.shape[1] + most)

    def call() -> Any:
        cache.reset()
        return model.generate(ids, past_key_values=cache, **given).cpu()

    return call


def tokens(model: Any, way: str, options: Any) -> Dict[str, float]:
    ids, most = ids_of(model, 1, options.prompt), 4 + options.tokens
    few, many = (generation(model, way, ids, count, most) for count in (4, most))
    for call in (many, few, many):
        call()
    differences = []
    with alone(options):
        for _ in range(max(options.runs, LEAST_RUNS)):
            differences.append((seconds(many) - seconds(few)) / options.tokens * 1e3)
    return {"ms a token": statistics.median(differences)}


def first(model: Any, way: str, options: Any) -> Dict[str, float]:
    call = generation(model, way, ids_of(model, 1, options.prompt), 1, 1)
    for _ in range(3):
        call()
    with alone(options):
        times = [seconds(call) for _ in range(2 * max(options.runs, LEAST_RUNS))]
    return {"first ms": statistics.median(times) * 1e3}


def prefill(model: Any, way: str, options: Any) -> Dict[str, float]:
    ids = ids_of(model, 1, options.prefill)
    if ids.shape[1] > getattr(model.config, "max_position_embeddings", ids.shape[1]):
        return {}
    forward = torch.compile(model.forward, dynamic=False) if way == "compiled" else model.forward

    @torch.no_grad()
    def call() -> Any:
        return forward(input_ids=ids, use_cache=False, logits_to_keep=1).logits

    for _ in range(2):
        call()
    with alone(options):
        times = [seconds(call) for _ in range(max(options.runs, LEAST_RUNS))]
    return {f"prefill {options.prefill} ms": statistics.median(times) * 1e3}


@torch.no_grad()
def batch(model: Any, way: str, options: Any) -> Dict[str, float]:
    if way == "compiled":
        return {}
    behind = min(options.behind, getattr(model.config, "max_position_embeddings", options.behind) - 128)
    past, at = None, 0
    while at < behind:  # in pieces, whose activations fit
        count = min(behind - at, 128)
        out = model(ids_of(model, options.batch, count), past_key_values=past, use_cache=True, logits_to_keep=1)
        past = out.past_key_values
        at += count
    token = ids_of(model, options.batch, 1)
    step = lambda: model(token, past_key_values=past, use_cache=True)  # noqa: E731
    for _ in range(4):
        step()
    with alone(options):  # all of them below 1,024 tokens, where the next graph would be captured
        times = [seconds(step) for _ in range(8)]
        many = seconds(lambda: [step() for _ in range(8)]) / 8
    return {f"step of {options.batch} ms": many * 1e3, "each waited for ms": statistics.median(times) * 1e3}


_MEASURES: Dict[str, Callable[[Any, str, Any], Dict[str, float]]] = {
    "tokens": tokens, "first": first, "prefill": prefill, "batch": batch,
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())

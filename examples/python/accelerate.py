"""A Llama of transformers with Hone's kernels: the same tokens as before, sooner; then with weights of 4 bits, and restored.

    python3 examples/python/accelerate.py [FOLDER]

Needs a GPU, PyTorch, transformers, and the package. Without a FOLDER it takes the small Llama of this tree.
"""

import sys
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

import hone
from checking import check, run

FOLDER = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).resolve().parents[1] / "tiny-llama")
DEVICE = "cuda"
PROMPT = torch.arange(5, 69).view(1, 64)
OPTIONS = {"max_new_tokens": 64, "do_sample": False, "pad_token_id": 0}


def generate(model: torch.nn.Module) -> torch.Tensor:
    model.generate(PROMPT.to(DEVICE), **OPTIONS)  # prepares, and captures the graph
    begin = time.perf_counter()
    ids = model.generate(PROMPT.to(DEVICE), **OPTIONS).cpu()
    print(f"{(time.perf_counter() - begin) / OPTIONS['max_new_tokens'] * 1e3:.2f} ms a token")
    return ids


def six_lines() -> None:
    model = AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32).to(DEVICE).eval()
    with torch.no_grad():
        before, logits = generate(model), model(PROMPT.to(DEVICE)).logits
    print(hone.accelerate(model, max_batch=4, max_tokens=512))
    with torch.no_grad():
        same = torch.equal(generate(model), before)
        check(model(PROMPT.to(DEVICE)).logits, lambda: logits, 1e-4)
    print(f"the same tokens: {same}")
    hone.restore(model)


def with_codes() -> None:
    wide = hone.load(FOLDER, "bf16", device=DEVICE, max_tokens=512)
    packed = hone.load(FOLDER, "bf16", "w8a16", device=DEVICE, max_tokens=512)
    with torch.no_grad():
        logits = wide(PROMPT.to(DEVICE)).logits
        check(packed(PROMPT.to(DEVICE)).logits, lambda: logits, 5e-2)


if __name__ == "__main__":
    run(six_lines, with_codes)

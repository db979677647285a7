"""A Llama of transformers with Hone's kernels: the same tokens as before, sooner; then with weights of 8 bits, saved, and restored.

    python3 examples/python/accelerated_llama.py [FOLDER]

Needs a GPU, PyTorch, transformers, and the package. Without a FOLDER it takes the small Llama of this tree.
"""

import sys
import tempfile
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


def quick_start() -> torch.Tensor:
    inputs = {"input_ids": PROMPT.to(DEVICE), "do_sample": False, "max_new_tokens": 64, "pad_token_id": 0}

    model = AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32).to(DEVICE)
    print(hone.accelerate(model, max_batch=4, max_tokens=512))  # says what it replaced, and what it left and why
    ids = model.generate(**inputs)  # unchanged
    hone.restore(model)  # as it was

    return ids.cpu()


def beside_transformers() -> None:
    model = AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32).to(DEVICE)
    with torch.no_grad():
        before, logits = generate(model), model(PROMPT.to(DEVICE)).logits
    hone.accelerate(model, max_batch=4, max_tokens=512)
    with torch.no_grad():
        check(model(PROMPT.to(DEVICE)).logits, lambda: logits, 1e-4)
    print(f"the same tokens: {torch.equal(generate(model), before) and torch.equal(quick_start(), before)}")


def with_codes() -> None:
    wide = hone.load(FOLDER, "bf16", device=DEVICE, max_tokens=512)
    packed = hone.load(FOLDER, "bf16", format="w8a16", device=DEVICE, max_tokens=512)
    with torch.no_grad():
        logits = wide(PROMPT.to(DEVICE)).logits
        check(packed(PROMPT.to(DEVICE)).logits, lambda: logits, 5e-2)
    with tempfile.TemporaryDirectory() as folder:  # saved, and loaded into a model with codes of the same format
        torch.save(packed.state_dict(), f"{folder}/codes.pt")
        again = hone.load(FOLDER, "bf16", format="w8a16", device=DEVICE, max_tokens=512)
        again.load_state_dict(torch.load(f"{folder}/codes.pt", map_location=DEVICE))
    print(f"the same after saving: {torch.equal(generate(again), generate(packed))}")


if __name__ == "__main__":
    run(beside_transformers, with_codes)

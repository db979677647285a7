#!/usr/bin/env python3
"""What transformers on the CPU makes of the model of this folder: perplexity of held_back.txt, and greedy text.

    python3 examples/tiny-llama/check.py [FOLDER]
"""

import math
import pathlib
import sys

import torch
import transformers

PROMPT = "It is a truth universally acknowledged, that"
WINDOW = 512  # tokens of held-back text that are read together


def perplexity(net: transformers.LlamaForCausalLM, ids: torch.Tensor, begin: int) -> tuple[float, int]:
    """Of tokens, each of which sees those before it in its window, which begins as texts do."""
    total, count = 0.0, 0
    for start in range(0, len(ids), WINDOW - 1):
        window = torch.cat([torch.tensor([begin]), ids[start : start + WINDOW - 1]])[None]
        with torch.no_grad():
            logits = net(input_ids=window).logits[0, :-1].float()
        total += torch.nn.functional.cross_entropy(logits, window[0, 1:], reduction="sum").item()
        count += window.shape[1] - 1
    return math.exp(total / count), count


def main() -> None:
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    text = (folder / "held_back.txt").read_text()
    ids = tokenizer(text, add_special_tokens=False, return_tensors="pt").input_ids[0]
    prompt = tokenizer(PROMPT, return_tensors="pt").input_ids
    for dtype in (torch.bfloat16, torch.float32):
        net = transformers.LlamaForCausalLM.from_pretrained(folder, dtype=dtype).eval()
        found, count = perplexity(net, ids, tokenizer.bos_token_id)
        bits = math.log2(found) * count / len(text.encode())
        print(f"{dtype}: perplexity {found:.4f} a token of {count}, {bits:.4f} bits a byte")
        made = net.generate(prompt, max_new_tokens=60, do_sample=False)[0, prompt.shape[1] :]
        print(f"  {PROMPT}|{tokenizer.decode(made)}")
        print(f"  {made.tolist()}")


if __name__ == "__main__":
    main()

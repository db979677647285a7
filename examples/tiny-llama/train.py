#!/usr/bin/env python3
"""Makes the model of this folder: a Llama of three million parameters that has read Jane Austen's novels.

    apt-get install python3-torch python3-transformers r-cran-janeaustenr
    python3 examples/tiny-llama/train.py --out FOLDER

Written are config.json, generation_config.json, tokenizer.json, tokenizer_config.json, model.safetensors (bf16), and
held_back.txt: text that was kept from training. Seeds are fixed; other versions of PyTorch and other processors
still round differently. What was used is said at the end.
"""

import argparse
import json
import math
import pathlib
import random
import re
import struct
import time
import zlib

import tokenizers
import torch
import transformers

NOVELS = pathlib.Path("/usr/lib/R/site-library/janeaustenr/data/Rdata.rdb")
BEGIN, END = "<|begin_of_text|>", "<|end_of_text|>"
VOCABULARY = 1024  # 256 bytes, the two above, and merges
CONTEXT = 256  # tokens of a training text
HELD_BACK_BYTES = 6000


def characters(stored: bytes):
    """The lines of a vector of strings in R's serialization: each has type 9 (CHARSXP) and its length before it."""
    place, mark = 0, re.compile(rb"\x00[\x04\x00]\x00\x09")
    while found := mark.search(stored, place):
        (length,) = struct.unpack_from(">i", stored, found.end())
        place = found.end() + 4 + max(length, 0)
        yield stored[found.end() + 4 : place].decode()


def novels(path: pathlib.Path) -> list[str]:
    """The texts in R's file of lazily loaded data: a length of four bytes before each, which is compressed."""
    stored, texts = path.read_bytes(), []
    while stored:
        inflate = zlib.decompressobj()
        texts.append(paragraphs("\n".join(characters(inflate.decompress(stored[4:])))))
        stored = inflate.unused_data
    return texts


def paragraphs(text: str) -> str:
    """A line each, without the marks of slanted words."""
    lines = (" ".join(block.split()) for block in re.split(r"\n\s*\n", text.replace("_", "")))
    return "\n".join(line for line in lines if line)


def without_held_back(texts: list[str]) -> tuple[list[str], str]:
    """Out of the middle of the last novel, so that its people are known."""
    last = texts[-1]
    start = last.index("\n", len(last) // 2) + 1
    end = last.index("\n", start + HELD_BACK_BYTES) + 1
    return [*texts[:-1], last[:start], last[end:]], last[start:end]


def trained_tokenizer(texts: list[str]) -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[BEGIN, END],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{BEGIN} $A",
        pair=f"{BEGIN} $A $B",
        special_tokens=[(BEGIN, made.token_to_id(BEGIN))],
    )
    return made


def model(tokenizer: tokenizers.Tokenizer) -> transformers.LlamaForCausalLM:
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=256,
            intermediate_size=512,
            num_hidden_layers=5,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=64,
            max_position_embeddings=1024,
            rms_norm_eps=1e-5,
            tie_word_embeddings=True,
            bos_token_id=tokenizer.token_to_id(BEGIN),
            eos_token_id=tokenizer.token_to_id(END),
            attn_implementation="eager",  # whose backward pass on CPUs is the fastest
        )
    )


class Samples:
    """Texts of CONTEXT + 1 tokens that begin with a sentence, as what users ask for does."""

    def __init__(self, texts: list[str], tokenizer: tokenizers.Tokenizer):
        self.begin, self.random = tokenizer.token_to_id(BEGIN), random.Random(1)
        ids, starts = [], []
        for text in texts:
            for line in text.splitlines(keepends=True):
                for sentence in re.split(r"(?<=[.!?]) ?(?= )", line):
                    starts.append(len(ids))
                    ids += tokenizer.encode(sentence, add_special_tokens=False).ids
            ids.append(tokenizer.token_to_id(END))
        self.ids = torch.tensor(ids)
        self.starts = [start for start in starts if start + CONTEXT <= len(ids)]

    def batch(self, size: int) -> torch.Tensor:
        rows = [self.ids[start : start + CONTEXT] for start in self.random.choices(self.starts, k=size)]
        begins = torch.full((size, 1), self.begin)
        return torch.cat([begins, torch.stack(rows)], dim=1)


def train(net: transformers.LlamaForCausalLM, samples: Samples, steps: int, batch: int, rate: float) -> None:
    """In bf16, as the model is written; what the optimizer changes are copies in fp32, in which small steps count."""
    net.to(torch.bfloat16)
    weights = list(net.parameters())
    copies = [weight.detach().float() for weight in weights]
    matrices, others = [c for c in copies if c.dim() > 1], [c for c in copies if c.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], betas=(0.9, 0.98)
    )
    begun, mean = time.monotonic(), None
    for step in range(steps):
        warm, left = min(1, (step + 1) / 100), 0.5 * (1 + math.cos(math.pi * step / steps))
        for group in optimizer.param_groups:
            group["lr"] = rate * warm * max(left, 0.02)
        ids = samples.batch(batch)
        loss = net(input_ids=ids, labels=ids).loss
        loss.backward()
        for weight, copy in zip(weights, copies):
            copy.grad, weight.grad = weight.grad.float(), None
        torch.nn.utils.clip_grad_norm_(copies, 1.0)
        optimizer.step()
        for weight, copy in zip(weights, copies):
            weight.data.copy_(copy)
        mean = loss.item() if mean is None else 0.98 * mean + 0.02 * loss.item()
        if step % 50 == 49:
            print(f"step {step + 1}: loss {mean:.3f}, {time.monotonic() - begun:.0f} s", flush=True)


def write(folder: pathlib.Path, net: transformers.LlamaForCausalLM, tokenizer: tokenizers.Tokenizer, held: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    net.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"bos_token": BEGIN, "eos_token": END, "model_max_length": 1024}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({**names, "tokenizer_class": "PreTrainedTokenizerFast"}, indent=2) + "\n"
    )
    (folder / "held_back.txt").write_text(held)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder to write")
    parser.add_argument("--novels", type=pathlib.Path, default=NOVELS, help="the data of r-cran-janeaustenr")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    texts, held_back = without_held_back(novels(options.novels))
    tokenizer = trained_tokenizer(texts)
    samples = Samples(texts, tokenizer)
    net = model(tokenizer)
    print(
        f"{sum(map(len, texts))} characters, {len(samples.ids)} tokens; {net.num_parameters()} parameters; "
        f"torch {torch.__version__}, transformers {transformers.__version__}, tokenizers {tokenizers.__version__}",
        flush=True,
    )
    train(net, samples, options.steps, options.batch, options.rate)
    write(options.out, net, tokenizer, held_back)


if __name__ == "__main__":
    main()

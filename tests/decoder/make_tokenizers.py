#!/usr/bin/env python3
"""Makes the small tokenizers below tests/decoder/data/ and what Hugging Face's and sentencepiece's own code does with them.

    make_tokenizers.py OUTPUT_FOLDER TEXT_FILE

It needs the packages tokenizers and sentencepiece (Debian: python3-tokenizers, python3-sentencepiece). TEXT_FILE is UTF-8 in many
scripts to train on; what is committed was trained with tokenizers 0.23.1 and sentencepiece 0.2.2 on translated messages of
Debian's packages. Each folder has a tokenizer.json or tokenizer.model and expected.json.
"""

import json
import pathlib
import sys

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

VOCABULARY = 420

# How model families cut text.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)

LINES = [
    "",
    " ",
    "Hello world",
    "  two spaces,   three    four\t\ttabs\n\nlines\r\n  end  ",
    "I'm, you're, they'll, WE'VE, it'ſ 's's",
    "3.14159 and 12345678 or ½ Ⅷ ① ३४५ ３",
    "Grüße aus Köln, café naïve Œuvre ŁÓDŹ",
    "Καλημέρα κόσμε, Доброе утро, мир; Добрий ранок",
    "שלום עולם مرحبا بالعالم سلام دنیا",
    "नमस्ते दुनिया สวัสดีชาวโลก வணக்கம்",
    "你好，世界。こんにちは世界 カタカナ 안녕하세요 세계",
    "e\u0301 a\u0323\u0307 \u1100\u1161\u11a8 \u212b \ufb01 \u0315\u0300\u05ae\u0316",
    "😀 👩‍👩‍👧 🇩🇪 👍🏽 ❤️ 𝕳𝖊𝖑𝖑𝖔 𠀀",
    "\u0000\u0001\u0085\u00a0\u180e\u200b\u200d\u2028\u3000\ufeff\ufffd\U000e0100\U0010ffff",
    "<s>begin</s> middle <unk> <0x0A> ▁mark ▁▁▁ two",
    "<|im_start|>user\nhi<|im_end|>\n<|endoftext|>",
    "a<left> b <right>  c  <both>  d <word> x<word>y <word>. <Norm> <norm>",
    "    def f(x):\n        return x ** 2  # twice\n\n\n\n",
    "https://example.org/path?query=1&other=%20#part",
    "{\"key\": [1, 2.5e-3, null, true], 'x': \"\\n\"}",
    "x" * 70,
    "ab" * 40 + " " * 33 + "é" * 20 + "中" * 20,
    " leading and trailing ",
    "\n",
    "…“quoted” — dash – ‚low‘ «guillemets» ¿qué? ¡sí!",
]


def flagged_tokens():
    return [
        AddedToken("<left>", lstrip=True, normalized=False),
        AddedToken("<right>", rstrip=True, normalized=False),
        AddedToken("<both>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("<word>", single_word=True, normalized=False),
        AddedToken("<Norm>", normalized=True),
    ]


def byte_level(train, pre_tokenizer, normalizer=None, specials=("<|endoftext|>",), **model):
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(train, trainer)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in specials])
    return tokenizer


def split(regex):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(regex), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def template(token, tokenizer):
    ids = [(token, tokenizer.token_to_id(token))]
    return processors.TemplateProcessing(single=f"{token} $A", pair=f"{token} $A {token} $B", special_tokens=ids)


def marked(train, normalizer=None, pre_tokenizer=None, strip=True, normalized=False):
    """BPE on characters, U+2581 for spaces, bytes for what has no token."""
    trained = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trained.train_from_iterator(
        train,
        trainers.BpeTrainer(vocab_size=VOCABULARY + 200, limit_alphabet=90, special_tokens=specials, show_progress=False),
    )
    # The bytes are tokens of the model alone.
    content = json.loads(trained.to_str())
    content["added_tokens"] = []
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.add_special_tokens([AddedToken(token, normalized=normalized) for token in specials[:3]])
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if strip else []))
    tokenizer.post_processor = template("<s>", tokenizer)
    return tokenizer


def hugging_face(train):
    prepend = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    gpt2 = byte_level(train, pre_tokenizers.ByteLevel(add_prefix_space=False))
    llama3 = byte_level(train, split(LLAMA3), specials=("<|begin_of_text|>", "<|endoftext|>"), ignore_merges=True)
    llama3.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False), template("<|begin_of_text|>", llama3)]
    )
    digits = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    phi3 = marked(train, prepend)
    phi3.add_tokens(flagged_tokens())
    spaced = byte_level(train, pre_tokenizers.ByteLevel(add_prefix_space=True))
    spaced.add_tokens(flagged_tokens())
    return {
        "gpt2": gpt2,
        "prefix_space": spaced,
        "llama3": llama3,
        "qwen": byte_level(train, split(QWEN), normalizers.NFC(), ("<|endoftext|>", "<|im_start|>", "<|im_end|>")),
        "tekken": byte_level(train, split(TEKKEN), normalizers.NFKC(), ("<s>", "</s>")),
        "smollm": byte_level(train, digits),
        "llama2": marked(train, prepend),
        "llama2_first": marked(train, pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first", split=False)),
        "metaspace": marked(train, pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="always", split=True)),
        "gemma": marked(train, normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous"), False),
        "phi3": phi3,
    }


def write(folder, cases):
    lines = ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases)
    (folder / "expected.json").write_text('{"cases": [\n' + lines + "\n]}\n")


def write_tokenizer(folder, tokenizer):
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    cases = []
    for text in LINES:
        ids = tokenizer.encode(text).ids
        tokenizer.encode_special_tokens = True
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = False
        decode = lambda some, skip: tokenizer.decode(some, skip_special_tokens=skip)
        cases.append(
            {
                "text": text,
                "ids": ids,
                "plain": plain,
                "decoded": decode(ids, False),
                "skipped": decode(ids, True),
                "half": decode(ids[::2], False),
            }
        )
    write(folder, cases)


def write_sentencepiece(folder, train, kind):
    # Few scripts, so that the alphabet leaves room.
    few = [line for line in train if line and max(line) < "\u0460"]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(few),
        model_prefix=str(folder / "tokenizer"),
        model_type=kind,
        vocab_size=VOCABULARY + 200,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        character_coverage=0.98,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (folder / "tokenizer.vocab").unlink()
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    cases = []
    for line in LINES:
        ids = processor.encode(line)
        cases.append({"text": line, "plain": ids, "bos": processor.bos_id(), "decoded": processor.decode(ids)})
    write(folder, cases)


def main():
    output, text = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    train = text.read_text(encoding="utf-8").split("\n")
    for name, tokenizer in hugging_face(train).items():
        folder = output / name
        folder.mkdir(parents=True, exist_ok=True)
        write_tokenizer(folder, tokenizer)
    for kind in ("bpe", "unigram"):
        folder = output / f"sentencepiece_{kind}"
        folder.mkdir(parents=True, exist_ok=True)
        write_sentencepiece(folder, train, kind)


if __name__ == "__main__":
    main()

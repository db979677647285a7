#!/usr/bin/env python3
"""Makes tests/decoder/data/lines.json: what Hugging Face's tokenizers make of ten thousand lines in many scripts.

    make_lines.py                            # writes the file (package tokenizers; what is committed: 0.23.2)
    make_lines.py --lines FILE               # the lines alone, for another binding of the same library

The lines are drawn as lines.h draws them. Of each hundred lines' ids the file has a hash, FNV-1a of 32 bits.
"""

import json
import pathlib
import sys

DATA = pathlib.Path(__file__).parent / "data"
COUNT, BLOCK = 10_000, 100

# First and last character of runs that have had all their letters for long: newer ones are letters in some versions of Unicode.
SCRIPTS = [
    (0xC0, 0xD6), (0xF8, 0x17F), (0x3B1, 0x3C9), (0x410, 0x44F), (0x561, 0x586), (0x5D0, 0x5EA), (0x621, 0x63A), (0x64B, 0x652),
    (0x905, 0x939), (0x93E, 0x94D), (0xE01, 0xE30), (0xE31, 0xE3A), (0x10D0, 0x10F0), (0x1100, 0x1112), (0x1161, 0x1175),
    (0x11A8, 0x11C2), (0x1780, 0x17B3), (0x1E00, 0x1E95), (0x1F00, 0x1F07), (0x2160, 0x217F), (0x2460, 0x249B), (0x3041, 0x3096),
    (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0xFB00, 0xFB06), (0xFF21, 0xFF3A), (0x300, 0x314), (0x1D400, 0x1D433),
    (0x1F600, 0x1F640), (0x1F1E6, 0x1F1FF), (0x20000, 0x2A6D6),
]  # fmt: skip
DIGITS = [0x30, 0x30, 0x30, 0x660, 0x966, 0xFF10]
WORDS = (
    "the of and to in is for not file error option cannot Print with warning package Datei nicht kann der die fichier impossible "
    "le de la archivo no se puede файл не для ошибка пакет ファイル できません 文件 无法 파일 없음 ملف خطأ def return int main http www"
).split()
MARKS = (
    ". , ; : ! ? ... — – - _ ( ) [ ] { } \" ' « » “ ” ‘ ’ / \\ | @ # $ % ^ & * + = < > ~ ` § © ½ ² € № 、 。 ¿ ¡ · "
    "'s 're 'LL n't 'd 've <s> </s> <unk> <left> <right> <both> <word> <Norm> ▁ ▁▁ <0x0A> 👩‍👩‍👧 ❤️ 👍🏽 é Å"
).split(" ")
GAPS = [" ", " ", " ", " ", " ", "", "  ", "   ", "\t", " \t ", "\u00a0", "\u3000", "\u2009", "\n", "\r\n", " \n "]


class Draw:
    """The upper bits of a linear congruential generator."""

    def __init__(self, seed):
        self.state = seed

    def below(self, count):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % count

    def one(self, of):
        return of[self.below(len(of))]


def piece(draw):
    kind = draw.below(10)
    if kind < 2:
        return "".join(chr(ord("a") + draw.below(26)) for _ in range(1 + draw.below(9)))
    if kind < 4:
        word = draw.one(WORDS)
        return word.upper() if word.isascii() and draw.below(6) == 0 else word
    if kind < 7:
        first, last = draw.one(SCRIPTS)
        return "".join(chr(first + draw.below(last - first + 1)) for _ in range(1 + draw.below(7)))
    if kind < 8:
        zero = draw.one(DIGITS)
        return "".join(chr(zero + draw.below(10)) for _ in range(1 + draw.below(7)))
    return draw.one(MARKS)


def line(draw):
    text = ""
    for _ in range(1 + draw.below(14)):
        text += piece(draw)
        text += draw.one(GAPS)
    return text


def lines():
    draw = Draw(2026)
    return [line(draw) for _ in range(COUNT)]


def hash_of(texts):
    value = 0x811C9DC5
    for ids in texts:
        for number in [*ids, 0xFFFFFFFF]:
            for byte in number.to_bytes(4, "little"):
                value = (value ^ byte) * 0x01000193 % 2**32
    return f"{value:08x}"


def expected(encoded):
    return [hash_of(encoded[at : at + BLOCK]) for at in range(0, COUNT, BLOCK)]


def kinds():
    return sorted(path.parent.name for path in DATA.glob("*/tokenizer.json"))


def main():
    if sys.argv[1:2] == ["--lines"]:
        pathlib.Path(sys.argv[2]).write_text(json.dumps(lines()))
        return
    from tokenizers import Tokenizer

    texts = lines()
    hashes = {}
    for kind in kinds():
        tokenizer = Tokenizer.from_file(str(DATA / kind / "tokenizer.json"))
        hashes[kind] = expected([one.ids for one in tokenizer.encode_batch(texts)])
    (DATA / "lines.json").write_text(json.dumps(hashes, indent=0) + "\n")


if __name__ == "__main__":
    main()

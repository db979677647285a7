#!/usr/bin/env python3
"""hone.Decoder on the model of this folder.

    python3 examples/tiny-llama/generate.py

Needs a GPU and the package: installed from its wheel, or from this tree with PYTHONPATH=python.
"""

import pathlib

import hone

FOLDER = pathlib.Path(__file__).parent


def main() -> None:
    with hone.Decoder(FOLDER) as decoder:
        made = decoder.generate("It is a truth universally acknowledged, that", max_tokens=64)
        print(f"{made.text}\n{len(made.ids)} tokens, ended by {made.end}")

        for piece in decoder.stream("Emma", temperature=0.8, top_p=0.95, seed=7, stop="\n"):
            print(piece, end="", flush=True)
        print()

        prompts = ["Mr. Darcy", "Her mother", "The carriage"]
        for prompt, made in zip(prompts, decoder.generate_many(prompts, max_tokens=32, stop=".")):
            print(f"{prompt}{made}.")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes tests/decoder/data/chats.json: what transformers makes of some conversations by the chat templates of models.

    make_chats.py TEMPLATE_FOLDER OUTPUT_FILE

It needs the package transformers. TEMPLATE_FOLDER has NAME.jinja for each name in TEMPLATES below, the template of that model; these are
their makers' and not kept here. What is committed was made with transformers 5.12.1.
"""

import datetime
import json
import pathlib
import sys

import transformers.utils.chat_template_utils as chat_template_utils

# Names of BOS and EOS.
TEMPLATES = {
    "llama3": ("<|begin_of_text|>", "<|eot_id|>"),
    "llama3.1": ("<|begin_of_text|>", "<|eot_id|>"),
    "llama3.2": ("<|begin_of_text|>", "<|eot_id|>"),
    "qwen2": ("", "<|im_end|>"),
    "qwen2.5": ("", "<|im_end|>"),
    "qwen3": ("", "<|im_end|>"),
    "mistral0.1": ("<s>", "</s>"),
    "mistral0.2": ("<s>", "</s>"),
    "mistral0.3": ("<s>", "</s>"),
    "mistral-nemo": ("<s>", "</s>"),
    "gemma2": ("<bos>", "<eos>"),
    "phi3": ("<s>", "<|endoftext|>"),
    "phi3.5": ("<s>", "<|endoftext|>"),
}

S, U, A = "system", "user", "assistant"
CONVERSATIONS = [
    [(U, "Hello")],
    [(U, "")],
    [(U, "  spaces and\n\nlines \n")],
    [(U, "\u00a0no-break\u2003\u200b\x1c")],
    [(S, "Be brief."), (U, "Hello")],
    [(S, " \tBe brief.\n"), (U, "Hello"), (A, " Hi! "), (U, "And now?\n")],
    [(S, ""), (U, "Hello")],
    [(U, "1"), (A, "2"), (U, "3"), (A, "4"), (U, "5")],
    [(U, "1"), (A, "2")],
    [(U, "1"), (A, "<think>\nhm\n</think>\n\n2"), (U, "3")],
    [(U, "1"), (A, "<think>\nhm\n\n</think>\n\n2")],
    [(U, "1"), (A, "a"), (A, "<think>b</think>c"), (A, "d")],
    [(U, "1"), (A, "<think>a</think>b</think>c"), (U, "3")],
    [(U, "1"), (U, "2")],
    [(A, "1"), (U, "2")],
    [(U, "1"), (S, "2"), (U, "3")],
    [(S, "1"), (S, "2"), (U, "3")],
    [(S, "alone")],
    [(A, "alone")],
    [(U, "<tool_response>x</tool_response>"), (A, "y")],
    [(U, "Grüße, 世界 🙂 {{ bos_token }} {% if x %}'\"\\n")],
]


def fixed_now(form):
    return datetime.date(2026, 1, 5).strftime(form)


def rendered(template, bos, eos, messages):
    try:
        texts, _ = chat_template_utils.render_jinja_template(
            conversations=[messages],
            chat_template=template,
            add_generation_prompt=True,
            bos_token=bos,
            eos_token=eos,
            strftime_now=fixed_now,
        )
        return {"text": texts[0]}
    except Exception as error:
        return {"error": str(error)}


def main():
    templates, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    made = {}
    for name, (bos, eos) in TEMPLATES.items():
        template = (templates / f"{name}.jinja").read_text(encoding="utf-8")
        cases = []
        for conversation in CONVERSATIONS:
            messages = [{"role": role, "content": content} for role, content in conversation]
            cases.append({"messages": messages, **rendered(template, bos, eos, messages)})
        made[name] = {"bos": bos, "eos": eos, "cases": cases}
    output.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

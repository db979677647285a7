#!/usr/bin/env python3
"""Makes tests/decoder/data/chats.json: what Jinja, set up as transformers does it, makes of some conversations by chat templates,
and of some statements.

    make_chats.py OUTPUT_FILE

It needs Jinja (Debian: python3-jinja2). The templates are our own words for what those of the models that they are called after write;
what is committed was made with Jinja 3.1.6. The texts of the first 13 are those that transformers 5.12.1 made by the models' own.
"""

import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

LLAMA3 = """{{ bos_token }}{%- for m in messages %}
    {{- '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' if add_generation_prompt }}"""

LLAMA3_DATED = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = DATE %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message, messages = messages[0]['content']|trim, messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\nCutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" + system_message + "<|eot_id|>" }}
{%- for m in messages %}
    {{- '<|start_header_id|>%s<|end_header_id|>\\n\\n' | format(m.role) }}{{ m.content | trim }}<|eot_id|>
{%- endfor %}
{%- if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>{{ "\\n\\n" }}{% endif %}"""

CHATML = """SYSTEM{% for message in messages %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def chatml(default_system=None):
    system = "" if default_system is None else (
        "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\\n" + default_system + "<|im_end|>\\n' }}{% endif %}\n"
    )  # fmt: skip
    return CHATML.replace("SYSTEM", system)


QWEN3 = """{%- set ns = namespace(query=messages|length - 1, seen=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- set answers_tool = message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>') %}
    {%- if not ns.seen and message.role == "user" and not answers_tool %}
        {%- set ns.seen = true %}{%- set ns.query = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content, thoughts = message.content, '' %}
    {%- if message.role == "assistant" %}
        {%- if message.reasoning_content is string %}
            {%- set thoughts = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thoughts = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.query and (loop.last or (not loop.last and thoughts)) %}
            {%- set content = '<think>\\n' + thoughts.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') %}
        {%- endif %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}
{%- endif %}
"""

MISTRAL1 = """{{ bos_token }}{% for message in messages %}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}
{%- if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}
{%- elif message['role'] == 'assistant' %}{{ message['content'] + eos_token }}
{%- else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}
{%- endfor %}"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if (message["role"] == "user") != (loop.index0 % 2 == 0) %}
        {{- raise_exception("After the optional system message, conversation roles must alternate user/assistant") }}
    {%- endif %}
    {%- if message["role"] == "user" %}
        {{- OPEN }}{% if loop.WHERE and system_message is defined %}{{ system_message ~ "\\n\\n" }}{% endif %}{{ message["content"] + CLOSE }}
    {%- elif message["role"] == "assistant" %}
        {{- ANSWER + eos_token }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, with the exception of an initial system message!") }}
    {%- endif %}
{%- endfor %}"""


def mistral(where, opening, closing, answer):
    return (
        MISTRAL.replace("WHERE", where).replace("OPEN", repr(opening)).replace("CLOSE", repr(closing)).replace("ANSWER", answer)
    )


GEMMA2 = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- for message in messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {%- endif %}
    {%- set role = {'assistant': 'model'}.get(message['role'], message['role']) %}
    {{- '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"""

PHI3 = """{% for message in messages %}
{%- if message['role'] in ['user', 'assistant'] or WITH_SYSTEM %}
{{- '<|' ~ message.role ~ '|>\\n' ~ message.content ~ '<|end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"""

LLAMA2 = """{% set system = messages[0].content if messages[0].role == 'system' %}
{%- for m in messages if m.role != 'system' %}
    {%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}
    {%- set content = '<<SYS>>\\n' ~ system ~ '\\n<</SYS>>\\n\\n' ~ m.content if loop.first and system is defined else m.content %}
    {{- bos_token ~ '[INST] ' ~ content | trim ~ ' [/INST]' if m.role == 'user' else ' ' ~ content | trim ~ ' ' ~ eos_token }}
{%- endfor %}"""

# Names of BOS and EOS, and the template.
TEMPLATES = {
    "llama3": ("<|begin_of_text|>", "<|eot_id|>", LLAMA3),
    "llama3.1": ("<|begin_of_text|>", "<|eot_id|>", LLAMA3_DATED.replace("DATE", '"26 Jul 2024"')),
    "llama3.2": ("<|begin_of_text|>", "<|eot_id|>", LLAMA3_DATED.replace("DATE", 'strftime_now("%d %b %Y")')),
    "qwen2": ("", "<|im_end|>", chatml("You are a helpful assistant.")),
    "qwen2.5": ("", "<|im_end|>", chatml("You are Qwen, created by Alibaba Cloud. You are a helpful assistant.")),
    "qwen3": ("", "<|im_end|>", QWEN3),
    "mistral0.1": ("<s>", "</s>", MISTRAL1),
    "mistral0.2": ("<s>", "</s>", mistral("first", " [INST] ", " [/INST]", '" " + message["content"]')),
    "mistral0.3": ("<s>", "</s>", mistral("last", "[INST] ", "[/INST]", '" " + message["content"]|trim')),
    "mistral-nemo": ("<s>", "</s>", mistral("last", "[INST]", "[/INST]", 'message["content"]')),
    "gemma2": ("<bos>", "<eos>", GEMMA2),
    "phi3": ("<s>", "<|endoftext|>", PHI3.replace("WITH_SYSTEM", "message.role == 'system'")),
    "phi3.5": ("<s>", "<|endoftext|>", PHI3.replace("WITH_SYSTEM", "message.role == 'system' and message.content")),
    "chatml": ("", "<|im_end|>", chatml()),
    "phi4": (
        "", "<|im_end|>",
        "{% for m in messages %}{{ '<|im_start|>' ~ m.role ~ '<|im_sep|>' ~ m.content ~ '<|im_end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}",
    ),
    "llama2": ("<s>", "</s>", LLAMA2),
    "zephyr": (
        "<s>", "</s>",
        "{% for m in messages %}\n{{ '<|' ~ m.role ~ '|>\\n' ~ m.content ~ eos_token }}\n{% endfor %}\n"
        "{% if add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n",
    ),
    "olmo2": (
        "<|endoftext|>", "<|endoftext|>",
        "{{ bos_token }}{% for m in messages %}{{ '<|%s|>\\n%s' % (m.role, m.content) }}{{ eos_token if m.role == 'assistant' }}"
        "{{ '\\n' if not (m.role == 'assistant' and loop.last) }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}",
    ),
    "granite": (
        "<|end_of_text|>", "<|end_of_text|>",
        "{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content'] %}{%- set rest = messages[1:] %}"
        "{%- else %}{%- set system_message = 'Today is ' + strftime_now('%B %d, %Y') + '.' %}{%- set rest = messages %}{%- endif %}\n"
        "{%- macro turn(role, text, end='<|end_of_text|>\\n') %}<|start_of_role|>{{ role }}<|end_of_role|>{{ text }}{{ end }}"
        "{%- endmacro %}\n"
        "{{- turn('system', system_message) }}{% for m in rest %}{{ turn(m.role, m.content) }}{% endfor %}"
        "{% if add_generation_prompt %}{{ turn('assistant', '', end='') }}{% endif %}",
    ),
    "command-r": (
        "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>",
        "{{ bos_token }}{% set names = {'system': 'SYSTEM', 'user': 'USER', 'assistant': 'CHATBOT'} %}{% for m in messages %}"
        "{{ '<|START_OF_TURN_TOKEN|><|' ~ names[m.role] ~ '_TOKEN|>' ~ m.content.strip() ~ '<|END_OF_TURN_TOKEN|>' }}{% endfor %}"
        "{%- if add_generation_prompt -%}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{%- endif %}",
    ),
    "deepseek": (
        "<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>",
        "{%- set ns = namespace(first=true, system='') %}{%- for m in messages if m.role == 'system' %}"
        "{%- set ns.system = m.content if ns.first else ns.system + '\\n\\n' + m.content %}{%- set ns.first = false %}{%- endfor %}"
        "{{ bos_token }}{{ ns.system }}{%- for m in messages | rejectattr('role', 'equalto', 'system') %}{%- if m.role == 'user' %}"
        "{{ '<\uff5cUser\uff5c>' + m.content }}{%- else %}{{ '<\uff5cAssistant\uff5c>' + m.content.split('</think>')[-1] + "
        "'<\uff5cend\u2581of\u2581sentence\uff5c>' }}{%- endif %}{%- endfor -%}"
        "{% if add_generation_prompt %}{{ '<\uff5cAssistant\uff5c>' }}{% endif %}",
    ),
    "glm4": (
        "", "<|endoftext|>",
        "[gMASK]<sop>\n{%- for m in messages %}\n<|{{ m.role }}|>\n{{ m.content }}\n{%- endfor %}"
        "{% if add_generation_prompt %}<|assistant|>\n{% endif %}",
    ),
    "falcon": (
        "", "<|endoftext|>",
        "{% for m in messages %}{% if not loop.first %}{{ '\\n' }}{% endif %}{{ m.role | capitalize + ': ' + m.content.strip()"
        ".replace('\\r\\n', '\\n').replace('\\n\\n', '\\n') }}{% endfor %}{% if add_generation_prompt %}{{ '\\n\\nAssistant:' }}{% endif %}",
    ),
    "gemma3": (
        "<bos>", "<eos>",
        "{{ bos_token }}\n{%- if messages[0]['role'] == 'system' -%}\n    {%- if messages[0]['content'] is string -%}\n"
        "        {%- set prefix = messages[0]['content'] + '\\n\\n' -%}\n    {%- endif -%}\n    {%- set rest = messages[1:] -%}\n"
        "{%- else -%}\n    {%- set prefix = '' -%}\n    {%- set rest = messages -%}\n{%- endif -%}\n"
        "{%- for m in rest -%}\n    {%- set role = 'model' if m['role'] == 'assistant' else m['role'] -%}\n"
        "    {{ '<start_of_turn>' + role + '\\n' + (prefix if loop.first else '') }}\n"
        "    {%- if m['content'] is iterable and m['content'] is not string -%}\n        {%- for part in m['content'] -%}"
        "{{ part['text'] | trim }}{%- endfor -%}\n    {%- else -%}\n        {{ m['content'] | trim }}\n    {%- endif -%}\n"
        "    {{ '<end_of_turn>\\n' }}\n{%- endfor -%}\n{%- if add_generation_prompt -%}\n    {{'<start_of_turn>model\\n'}}\n{%- endif -%}\n",
    ),
    "vicuna": (
        "<s>", "</s>",
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% elif m.role == 'user' %}"
        "{{ ' USER: ' + m.content }}{% else %}{{ ' ASSISTANT: ' + m.content + eos_token }}{% endif %}{% endfor %}"
        "{{ ' ASSISTANT:' }}",
    ),
    "llama-factory": (
        "", "<|im_end|>",
        "{% set has_own = messages[0].role == 'system' %}{{ '<|im_start|>system\\n' ~ (messages[0].content if has_own else "
        "'You are helpful.') ~ '<|im_end|>\\n' }}{% for m in messages[1 if has_own else 0:] %}{{ '<|im_start|>user\\n' ~ m.content ~ "
        "'<|im_end|>\\n<|im_start|>assistant\\n' if m.role == 'user' else m.content ~ '<|im_end|>\\n' }}{% endfor %}",
    ),
}  # fmt: skip

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

# Statements, with the variables below.
VARIABLES = {
    "s": "Grüße", "t": " a b\t", "n": 7, "f": 2.5, "xs": ["b", "a", "C"], "d": {"a": 1, "items": "mine"}, "none_": None, "yes": True,
    "messages": [{"role": S, "content": "S"}, {"role": U, "content": "U\n"}, {"role": A, "content": "A"}],
}  # fmt: skip
STATEMENTS = [
    # White space around tags.
    "a\n{% if yes %}\n  b\n  {% endif %}\nc\n", "  {%- if yes -%}  \n b \n {%- endif %}\n\n", "{% if yes +%}\n x{% endif %}", "  {%+ if yes %}x{% endif %}",
    "{{ n }}\n", "{{ n }}\n\n", "{{- n -}} \n x", "\n  {# c #}\n x {#- c -#} \n y", "{% raw %} {{ n }} {% endraw %}\nx", "{%- raw -%} {% if %} {%- endraw -%} x",
    "a\r\n{% if yes %}\r\nb\r{% endif %}c", "{{ 'a\r\nb' }}", "x {# {{ #} y", "{{-1}}", "{{ {'a': {'b': 1}}.a.b }}",
    # Literals.
    r"{{ 'a\n\t\x41\u4e16\\\'\"\101\q' }}", "{{ 'a' \"b\" }}", "{{ [1_000, 1e3, 1.50, 2E-7, 1e16, 1e22] }}", "{{ true ~ False ~ none ~ None }}", "{{ (1,) }}{{ () }}{{ 1, 2 }}",
    "{{ [s, t, '\\'', '\"\\'', '\\n\\x00\\xa0\u200b\U0001f642'] }}", "{{ {'a': none, 1: [true], 'b': 0.1, 'a': 2} }}",
    # Operators.
    "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 ** 2 }} {{ 2 ** -1 }} {{ -7.5 // 2 }} {{ 7.5 % -2 }}",
    "{{ 1 + 2 * 3 - 4 }} {{ 'a' ~ 1 + 2 }} {{ 'ab' * 3 }} {{ [1] * 2 + [3] }} {{ yes + 1 }} {{ -yes }} {{ +f }}",
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 == 1.0 }} {{ 1 == yes }} {{ 'a' in s }} {{ 'r' in s }} {{ 1 not in [2] }} {{ 'a' in d }}",
    "{{ not n == 7 }} {{ n and s }} {{ '' or none_ or 'x' }} {{ 'x' if none_ }} {{ 'x' if yes else 'y' if 1 else 'z' }} {{ 1 if 0 else 2 if 0 else 3 }}",
    "{{ missing }}|{{ missing == other }}|{{ missing in xs }}|{{ 'x' in missing }}|{{ d.nothing }}|{{ xs[9] }}|{{ missing is defined }}|{{ missing | length }}",
    "{{ missing.x }}", "{{ missing + 'a' }}", "{{ missing() }}", "{{ none_.x.y }}", "{{ 1 / 0 }}", "{{ 1 % 0 }}", "{{ 'a' + 1 }}", "{{ 1 < 'a' }}", "{{ none_ | length }}", "{{ nothing | nofilter }}",
    "{{ '%s is %d%%' % ('a', 2) }}", "{{ '{} {} {x} {{}}'.format(1, 2, x=3) }}{{ '{1}{0}'.format(1, 2) }}",
    # Places and slices.
    "{{ s[0] }}{{ s[-1] }}{{ s[2:4] }}{{ s[::-1] }}{{ s[-3:] }}{{ s[:99] }}{{ s[4:1:-2] }}{{ s[5:2] }}", "{{ xs[0] }}{{ xs[1:] }}{{ xs[::-1] }}{{ xs[-2:] }}{{ xs[5:] }}{{ xs.1 }}",
    "{{ d.a }}{{ d['a'] }}{{ d['items'] }}{{ d.get('a') }}{{ d.get('zz') }}{{ d.get('zz', 5) }}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{{ d.items() | list }}{{ d.keys() | list }}{{ d.values() | list }}",
    # Methods.
    "{{ t.strip() }}|{{ t.lstrip() }}|{{ t.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'xyax'.lstrip('yx') }}", "{{ 'a,b,,c'.split(',') }}{{ ' a  b '.split() }}{{ 'a,b,c'.split(',', 1) }}{{ 'a,b,c'.rsplit(',', 1) }}{{ ' a b c'.split(none, 1) }}",
    "{{ 'äÖ'.upper() }}{{ 'ÄÖ'.lower() }}{{ \"hello wORLD it's\".title() }}{{ 'hELLO'.capitalize() }}", "{{ s.startswith('Gr') }}{{ s.endswith(('x', 'e')) }}{{ 'abc'.find('c') }}{{ 'abc'.find('z') }}{{ s.find('e') }}",
    "{{ 'aXbX'.replace('X', '-') }}{{ 'aXbX'.replace('X', '-', 1) }}{{ 'ab'.replace('', '-') }}", "{{ 'a\nb\\r\\nc\\n'.splitlines() }}{{ '-'.join(xs) }}{{ 'a-b-c'.partition('-') }}{{ 'banana'.count('an') }}",
    "{{ '12'.isdigit() }}{{ 'ab'.isalpha() }}{{ ' '.isspace() }}{{ ''.isdigit() }}{{ 'AB'.isupper() }}{{ 'a1'.isalnum() }}", "{{ xs.index('a') }}{{ xs.count('a') }}", "{{ xs.append(1) }}", "{{ d.update({}) }}", "{{ s.nomethod() }}", "{{ s.__class__ }}", "{{ 'ab'.removeprefix('a') }}{{ 'ab'.removesuffix('b') }}",
    # Filters.
    "{{ t | trim }}|{{ s | length }}|{{ xs | first }}|{{ xs | last }}|{{ xs | join('-') }}|{{ [] | first }}|{{ [1, none] | join }}", "{{ xs | sort }}{{ xs | sort(reverse=true) }}{{ xs | sort(case_sensitive=true) }}{{ messages | sort(attribute='content') | map(attribute='role') | list }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ messages | rejectattr('role', 'in', ['user']) | map(attribute='role') | join(',') }}{{ [0, 1, 2] | select('odd') | list }}{{ [0, '', 1] | select | list }}{{ [1, none] | reject('none') | list }}",
    "{{ {'b': '<ü>\"\\n', 'a': [1, 2.5, none, true]} | tojson }}", "{{ {'b': [], 'a': {'c': [1]}} | tojson(indent=2) }}", "{{ {'b': s, 'a': '🙂'} | tojson(ensure_ascii=true, sort_keys=true) }}", "{{ [1, {}] | tojson(separators=(',', ':')) }}",
    "{{ missing | default('x') }}{{ '' | default('x') }}{{ '' | default('x', true) }}{{ none_ | d('x') }}", "{{ '3.7' | int }}{{ 'x' | int }}{{ 'x' | int(5) }}{{ ' 12 ' | int }}{{ 3.9 | int }}{{ '1.5' | float }}{{ 'x' | float }}{{ 2.5 | round }}{{ 3.5 | round }}{{ 2.345 | round(2) }}{{ 2.1 | round(0, 'ceil') }}{{ 7 | round }}",
    "{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(1, blank=true) }}|{{ 'a\n' | indent('--') }}", "{{ 'hello wORLD (foo) a-b' | title }}{{ 'hELLO' | capitalize }}{{ s | reverse }}{{ [1, 2] | reverse | list }}{{ 'ab' | list }}", "{{ [1, 2, 3] | sum }}{{ [3, 1, 2] | min }}{{ xs | max }}{{ -3 | abs }}{{ [1, 1, 2] | unique | list }}{{ messages | map(attribute='content') | map('trim') | list }}",
    "{{ {'b': 1, 'A': 2} | dictsort }}{{ {'a': 1} | items | list }}", "{% set g = xs | map('upper') %}{{ g | list }}{{ g | list }}", "{{ (xs | map('upper')) | length }}", "{{ 1 | string + 'a' }}{{ none_ | string }}", "{{ '<a>' | safe }}{{ s | replace('ß', 's') | upper }}",
    # Tests.
    "{{ n is odd }}{{ n is even }}{{ n is divisibleby 7 }}{{ n is number }}{{ f is float }}{{ yes is integer }}{{ yes is number }}{{ yes is boolean }}{{ s is string }}{{ d is mapping }}{{ xs is sequence }}{{ d is iterable }}{{ n is iterable }}{{ none_ is none }}{{ missing is undefined }}{{ n is not none }}{{ yes is true }}{{ 1 is true }}",
    "{{ n is eq 7 }}{{ n is in [7] }}{{ n is gt(3) }}{{ n is sameas 7 }}{{ range is callable }}{{ 'A' is upper }}{{ n is defined and s is defined }}", "{{ n is notest }}",
    # Statements.
    "{% for x in xs %}{{ loop.index }}/{{ loop.length }}{{ x }}{{ loop.first }}{{ loop.last }}{{ loop.revindex0 }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('o', 'e') }};{% endfor %}", "{% for x in [] %}x{% else %}none{% endfor %}{% for x in [1] %}{% continue %}{% else %}left{% endfor %}",
    "{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x > 4 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in xs if x != 'a' %}{{ loop.index }}{{ x }}{% endfor %}", "{% for x in [[1, [2]], [3]] recursive %}{% if x is iterable %}({{ loop(x) }}{{ loop.depth }}){% else %}{{ x }}{% endif %}{% endfor %}",
    "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 2 %}{% endfor %}{{ x }}", "{% set ns = namespace(x=1) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "{% set a, b = 1, [2] %}{{ a }}{{ b }}", "{% set a = 1 %}{% set a.x = 1 %}", "{% set x %}a{{ n }}{% endset %}{{ x }}{% set y | upper %}b{% endset %}{{ y }}",
    "{% macro m(a, b='B', c) %}", "{% macro m(a, b='B') %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(b=3) }}{{ m() }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}", "{% macro m() %}<{{ caller('x') }}>{% endmacro %}{% call(a) m() %}{{ a }}{{ n }}{% endcall %}", "{% filter upper | trim %} x{{ t }} {% endfilter %}|{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% if n == 1 %}1{% elif n == 7 %}7{% else %}x{% endif %}", "{{ range(3) | list }}{{ range(1, 8, 3) | list }}{{ range(3, 0, -1) | list }}{{ dict(z=1, **d) }}{{ strftime_now('%d %b %Y') }}", "{% generation %}x{{ n }}{% endgeneration %}", "{{ raise_exception('no, ' ~ s) }}", "{% break %}", "{% if n %}", "{{ n", "{% nonsense %}", "{{ ) }}", "{{ 'a }}", "{# a", "{% for %}",
    "{{ messages[-1].role }}{{ messages | map(attribute='role') | unique | join }}{{ messages[1:] | length }}{{ (messages | last).content }}{{ messages[0]['content'][0] }}",
]  # fmt: skip


class Generation(jinja2.ext.Extension):
    """As transformers has it, which looks for what the assistant said there."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_written"), [], [], body).set_lineno(line)

    def _written(self, caller):
        return caller()


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = datetime.datetime(2026, 1, 5).strftime
    return made


def rendered(template, variables):
    try:
        return {"text": environment().from_string(template).render(**variables)}
    except Exception as error:
        return {"error": str(error)}


def conversation_case(template, bos, eos, conversation):
    messages = [{"role": role, "content": content} for role, content in conversation]
    variables = {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": True}
    return {"messages": messages, **rendered(template, {**variables, "bos_token": bos, "eos_token": eos})}


def main():
    chats = {
        name: {
            "bos": bos,
            "eos": eos,
            "template": template,
            "cases": [conversation_case(template, bos, eos, conversation) for conversation in CONVERSATIONS],
        }
        for name, (bos, eos, template) in TEMPLATES.items()
    }
    statements = [{"template": template, **rendered(template, VARIABLES)} for template in STATEMENTS]
    made = {"chats": chats, "variables": VARIABLES, "statements": statements}
    pathlib.Path(sys.argv[1]).write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

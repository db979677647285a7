"""What the Python package knows of libhone: structs and numbers, descriptions, and the calls of operators."""
import pathlib
import re
import textwrap
import typing

from generate import abi
from generate.enums import DTYPE_SYNONYMS, DTYPES, ENUMS, STATUSES
from generate.operators import Call, Given, Operator, snake
from generate.words import in_python

CTYPES = {"uint32_t": "c_uint32", "int32_t": "c_int32", "int64_t": "c_int64", "float": "c_float"}
FIELD_DTYPES = DTYPES[:3]
RENAMED = {"in": "in_features", "out": "out_features"}  # fields: `in` is no name in Python
CLASSES = {"Norm": "Norm", "RmsNormBackward": "NormBackward"}  # of prepared operators; others: LinearOperator
BASES = "python/hone/_operators/description.py"  # what descriptions compute of their fields
WIDTH = 110


def class_name(call: Call) -> str:
    return CLASSES.get(call.title, f"{call.title}Operator")


def field_name(name: str) -> str:
    return RENAMED.get(name, name)


def origin(says: str) -> typing.List[str]:
    return [*wrapped(f'"""{says}', 0), "",
            "Generated from kernel_templates/*/operators.py by `./hone generate`.", '"""', "",
            "from __future__ import annotations", ""]


def wrapped(text: str, indent: int, width: int = WIDTH) -> typing.List[str]:
    """Paragraphs; lines that begin with spaces stay as they are."""
    lead, lines = " " * indent, []
    for paragraph in text.split("\n"):
        more = " " * (len(paragraph) - len(paragraph.lstrip()))
        lines += textwrap.wrap(paragraph, width, initial_indent=lead, subsequent_indent=lead + more,
                               break_long_words=False, break_on_hyphens=False) or [""]
    return lines


def filled(head: str, items: typing.Sequence[str], tail: str, indent: int) -> typing.List[str]:
    """head + items + tail in one line, or items in lines of their own below it."""
    one = " " * indent + head + ", ".join(items) + tail
    if len(one) <= WIDTH:
        return [one]
    lead = " " * (indent + 4)
    whole = " ".join(item.replace(" ", "\0") + "," for item in items)
    body = textwrap.wrap(whole, WIDTH, initial_indent=lead, subsequent_indent=lead, break_long_words=False,
                         break_on_hyphens=False)
    return [" " * indent + head, *(line.replace("\0", " ") for line in body), " " * indent + tail]


def calls_of(operators: typing.Sequence[Operator]) -> typing.List[typing.List[Operator]]:
    """Operators with the same call, one after the other; functions are none."""
    found: typing.Dict[str, typing.List[Operator]] = {}
    for operator in operators:
        if not operator.is_function:
            found.setdefault(operator.call.name, []).append(operator)
    return list(found.values())


# structs.py


def _struct(struct: abi.Struct) -> typing.List[str]:
    title = "".join(part.title() for part in struct.name.split("_"))
    lines = ["", "", f"class {title}(ctypes.Structure):", f'    """hone_{struct.name}"""', "",
             "    _fields_ = ["]
    run: typing.List[str] = []
    kind = ""
    for member in [*struct.members, None]:
        found = CTYPES.get(member.type, "c_void_p") if member else ""
        if found != kind and run:
            lines += _members(kind, run)
            run = []
        kind = found
        if member:
            run.append(member.name)
    return [*lines, "    ]"]


def _members(kind: str, names: typing.List[str]) -> typing.List[str]:
    if len(names) == 1:
        return [f'        ("{names[0]}", {kind}),']
    rows = textwrap.wrap(" ".join(names), WIDTH - 26 - len(kind))
    return [f'        *members({kind}, "{row}"),' for row in rows]


def structs_source(operators: typing.List[Operator], lock: abi.Lock) -> str:
    lines = origin("The structs of runtime/hone.h that describe operators and their calls, and the numbers of words.")
    lines += ["import ctypes", "import struct",
              "from ctypes import c_float, c_int32, c_int64, c_uint32, c_void_p",
              "from typing import Any, List, Tuple, Type", ""]
    lines.append(_numbers("DTYPES", FIELD_DTYPES))
    lines.append("# What frameworks call them.")
    lines += ["DTYPE_SYNONYMS = {", *(f'    "{text}": "{dtype}",' for text, dtype in DTYPE_SYNONYMS.items()), "}"]
    for enum in ENUMS.values():
        lines.append(_numbers(f"{snake(enum.name).upper()}S", [value.name for value in enum.values]))
    lines += ["", "", "def members(kind: Any, names: str) -> List[Tuple[str, Any]]:",
              "    return [(name, kind) for name in names.split()]"]
    for struct in abi.structs(operators, lock):
        lines += _struct(struct)
    lines += ["", "", "# What struct calls them.",
              'CODES = {c_uint32: "I", c_float: "f", c_void_p: "P", c_int64: "q"}', "", "",
              "def packing(kind: Type[ctypes.Structure]) -> struct.Struct:",
              '    """Makes the bytes of the arguments of a call, several times faster than filling a ctypes structure."""',
              '    return struct.Struct("@" + "".join(CODES[field[1]] for field in kind._fields_))', "", "",
              "# What hone_<name>_prepare() and hone_<name>_explain() take, and how many sizes a call has.",
              "OPERATORS = {"]
    lines += [f'    "{operator.name}": ({operator.title}, {len(operator.call.sizes)}),'
              for operator in operators if not operator.is_function]
    lines += ["}", "# How many sizes hone_<name>_run() takes.", "CALLS = {"]
    lines += [f'    "{group[0].call.name}": {len(group[0].call.sizes)},' for group in calls_of(operators)]
    return "\n".join([*lines, "}", ""])


def _numbers(name: str, words: typing.Sequence[str]) -> str:
    return f"{name} = {{" + ", ".join(f'"{word}": {i}' for i, word in enumerate(words)) + "}"


def statuses_block() -> typing.List[str]:
    lines = ["_KINDS: Dict[int, Type[HoneError]] = {"]
    lines += [f"    {status.number}: {status.kind}," for status in STATUSES if status.number]
    return [*lines, "}"]


# descriptions.py


def python_fields(operator: Operator) -> typing.List[Given]:
    """Those that a description takes first, and the others."""
    first = operator.python.split()
    return [next(given for given in operator.fields if given.name == name) for name in first] + [
        given for given in operator.fields if given.name not in first]


def _annotated(given: Given, required: bool) -> str:
    kind = {"int64": "int", "flag": "bool"}.get(given.kind, "str")
    default = given.default
    if given.kind == "enum":
        default = next(value.name for value in ENUMS[given.enum].values if value.word == default)
    text = f"    {field_name(given.name)}: {kind}"
    return text if required else f"{text} = " + (f'"{default}"' if kind == "str" else str(default))


def _field_words(given: Given, operator: Operator) -> str:
    words = given.words.replace("`in`", "in_features").replace("`out`", "out_features").replace("`", "")
    allowed = given.allowed
    if given.kind == "enum":
        allowed = ", ".join(f'"{value.name}"' for value in given.values)
    elif given.kind == "dtype" and ":" not in words:
        field = operator.family.field(given.field) if operator.family else None
        choices = field.choices[field.least:] if field else FIELD_DTYPES
        allowed = f"{', '.join(choices[:-1])} or {choices[-1]}, or a torch.dtype"
    return in_python("; ".join(filter(None, [words, allowed])))


def _base(operator: Operator) -> str:
    """OfLinear, or what is named after its call, where description.py has it."""
    written = (pathlib.Path(__file__).parents[1] / BASES).read_text(encoding="utf-8")
    for title in (operator.title, operator.call.title):
        if re.search(rf"^class Of{title}\(", written, re.MULTILINE):
            return f"Of{title}"
    return "Description"


def _description(operator: Operator) -> typing.List[str]:
    lines = ["", "", "@dataclass(frozen=True)", f"class {operator.title}({_base(operator)}):"]
    says = wrapped('"""' + in_python(operator.says), 4)
    lines += says + ['    """', ""] if len(says) > 1 or len(says[0]) + 3 > WIDTH else [says[0] + '"""', ""]
    required = True
    for given in python_fields(operator):
        required = required and given.kind == "int64" and given.default == 0
        text, words = _annotated(given, required), _field_words(given, operator)
        if words and len(text) + 4 + len(words) > WIDTH:
            lines += [f"    # {line}" for line in textwrap.wrap(words, WIDTH - 6, break_on_hyphens=False)]
            words = ""
        lines.append(f"{text}  # {words}" if words else text)
    return lines + _description_constants(operator)


def _family_constants(operator: Operator) -> typing.List[str]:
    """The family whose problem a description is, and what the family does not know."""
    if operator.family is None:
        return []
    lines = [f'    FAMILY = "{operator.family_name}"']
    other = [f'"{field_name(given.name)}"' for given in operator.fields if not given.field]
    return lines + ([f"    NOT_IN_FAMILY = ({', '.join(other)}{',' * (len(other) == 1)})"] if other else [])


def _description_constants(operator: Operator) -> typing.List[str]:
    sizes = [field_name(given.name) for given in python_fields(operator) if given.kind == "int64"]
    limit = next(given for given in operator.fields if given.name.startswith("max_"))
    lines = ["", f'    C_NAME = "{operator.name}"', f"    STRUCT = structs.{operator.title}"]
    lines += _family_constants(operator)
    lines += filled("SIZES = (", [f'"{name}"' for name in sizes], ("," if len(sizes) == 1 else "") + ")", 4)
    lines.append(f'    LIMIT = "{limit.name}"')
    lines += ["    ROWS_ARE_SEQUENCES = True"] if limit.sequences else []
    words = {field_name(given.name): "DTYPES" if given.kind == "dtype" else f"{snake(given.enum).upper()}S"
             for given in operator.fields if given.kind in ("dtype", "enum")}
    lines += filled("WORDS = {", [f'"{name}": structs.{table}' for name, table in words.items()], "}", 4)
    renamed = [f'"{field_name(given.name)}": "{given.name}"' for given in operator.fields
               if given.name in RENAMED]
    if renamed:
        lines.append(f"    C_FIELDS = {{{', '.join(renamed)}}}")
    if len(operator.call.sizes) > 1:
        names = ", ".join(f'"{size}"' for size in operator.call.sizes)
        lines.append(f"    CALL_SIZES = ({names})")
    return lines


def descriptions_source(operators: typing.List[Operator]) -> str:
    prepared = [operator for operator in operators if not operator.is_function]
    lines = origin("What an operator is: frozen values that :func:`hone.prepare` and :func:`hone.explain` take.")
    bases = sorted({_base(operator) for operator in prepared})
    lines += ["from dataclasses import dataclass", "", "from ._native import structs",
              "from ._operators.description import (", *(f"    {base}," for base in bases), ")", "", "__all__ = ["]
    lines += [f'    "{title}",' for title in sorted(operator.title for operator in prepared)] + ["]"]
    for operator in prepared:
        lines += _description(operator)
    return "\n".join([*lines, ""])

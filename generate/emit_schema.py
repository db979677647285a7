"""runtime/c_api/schema.cpp: the declarations as JSON, for bindings in other languages and for tools."""
import json
import typing

from generate import abi, cpp
from generate.emit_c_api import NOTE
from generate.enums import ENUMS, STATUSES
from generate.operators import CallArgument, Given, Operator
from generate.words import in_c


def _given(given: Given) -> typing.Dict[str, typing.Any]:
    record = {"name": given.name, "kind": given.kind, "default": given.default, "says": in_c(given.words)}
    if given.enum:
        record["choices"] = [value.word for value in ENUMS[given.enum].values]
    if given.allowed:
        record["allowed"] = given.allowed
    return record


def _argument(argument: CallArgument, workspace: str) -> typing.Dict[str, typing.Any]:
    record = {"name": argument.name, "kind": argument.kind, "members": argument.c_members(),
              "says": in_c(abi.argument_words(argument), workspace)}
    for key in ("role", "shape", "when"):
        if getattr(argument, key):
            record[key] = getattr(argument, key)
    if argument.kind in ("int64", "float"):
        record["default"] = argument.default
    return record


def _struct(struct: abi.Struct) -> typing.Dict[str, typing.Any]:
    return {"name": f"hone_{struct.name}", "size": struct.size,
            "members": [[member.name, member.type, member.offset] for member in struct.members]}


def schema(operator: Operator, lock: abi.Lock) -> typing.Dict[str, typing.Any]:
    """One operator, as docs/json-output.md describes it."""
    return {"name": operator.name, "title": operator.title, "says": in_c(operator.says),
            "sizes": operator.call.sizes,
            "fields": [_given(given) for given in operator.fields],
            "arguments": [_argument(argument, operator.c_workspace) for argument in operator.call.arguments],
            "description": _struct(abi.description(operator, lock)),
            "args": _struct(abi.arguments(operator.call, lock)),
            "run": "" if operator.is_function else f"hone_{operator.call.name}_run",
            "statuses": {status.c: status.number for status in STATUSES}}


def _literal(text: str) -> typing.List[str]:
    """A string constant in lines, of which the last has room for what closes it; a quote and a backslash take two
    places."""
    pieces, line = [], ""
    for place, letter in enumerate(text):
        shown = "\\" + letter if letter in '"\\' else letter
        closes = 1 if place + 1 == len(text) else 0
        if len(line) + len(shown) > cpp.WIDTH - 8 - closes:
            pieces.append(line)
            line = ""
        line += shown
    return [f'     "{piece}"' for piece in [*pieces, line]]


def source(operators: typing.List[Operator], lock: abi.Lock) -> str:
    lines = [*cpp.comment(f"hone_schema(). {NOTE}", mark="//"), "#include <string_view>", "",
             '#include "runtime/c_api/guard.h"', "", "namespace {", "", "struct Schema {",
             "    std::string_view name;",
             "    const char* json;", "};", "", "// clang-format off", "constexpr Schema schemas[] = {"]
    for operator in operators:
        pieces = _literal(json.dumps(schema(operator, lock), separators=(",", ":")))
        lines += [f'    {{"{operator.name}",', *pieces[:-1], pieces[-1] + "},"]
    lines += ["};", "// clang-format on", "", "}  // namespace", "",
              "const char* hone_schema(const char* name) {",
              "    if (name == nullptr) return nullptr;", "    for (const Schema& schema : schemas) {",
              "        if (schema.name == name) return schema.json;", "    }", "    return nullptr;", "}", ""]
    return "\n".join(lines)

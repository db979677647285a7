"""tests/runtime/conversions_test.cpp: every member of a C struct, set off its default, arrives in C++; and
visit_pointers.h there, for what holds for the arguments of every operator."""
import typing

from generate import abi, cpp, emit_c
from generate.emit_c_api import NOTE
from generate.operators import CallArgument, Given, Operator


class _Numbers:
    """Values that no other member has."""

    def __init__(self):
        self.last = 1

    def next(self) -> int:
        self.last += 1
        return self.last


def _given(given: Given, numbers: _Numbers) -> typing.Tuple[str, str]:
    """What C gets, and what C++ then has."""
    if given.kind == "int64":
        number = numbers.next()
        return str(number), str(number)
    if given.kind == "flag":
        return str(int(not given.default)), "false" if given.default else "true"
    if given.kind == "dtype":
        return "HONE_FP16", "Dtype::fp16"
    value = next(value for value in reversed(given.values) if value.word != given.default)
    return value.c, f"{given.enum}::{value.name}"


def _descriptions(operator: Operator, lock: abi.Lock) -> typing.List[str]:
    numbers, sets, checks = _Numbers(), [], []
    for given in operator.fields:
        in_c, in_cpp = _given(given, numbers)
        sets.append(f"    c.{given.name} = {in_c};")
        checks.append(f"    CHECK(description.{given.name} == {in_cpp});")
    has_reserved = any(member.name == "reserved" for member in abi.description(operator, lock).members)
    refused = ["    c.reserved = 1;",
               "    CHECK_THROWS_AS(static_cast<void>(from_c(c)), Error);"] if has_reserved else []
    flags = [given.name for given in operator.fields if given.kind != "int64"]
    wrong = [line for name in flags for line in (f"    CHECK(refuses(c, &hone_{operator.name}::{name}));",)]
    return [f'TEST_CASE("hone_{operator.name}: every member arrives, and numbers that are none are refused") {{',
            f"    hone_{operator.name} c = HONE_{operator.name.upper()}_INIT;", *sets,
            f"    const {operator.title} description = from_c(c);", *checks, *wrong, *refused, "}", ""]


def _argument(argument: CallArgument, numbers: _Numbers) -> typing.List[typing.Tuple[str, str, str]]:
    """Member of C, its value, and the member of C++."""
    if argument.kind == "weight":
        parts = zip(argument.parts, ("codes", "scales", "zeros"))
        return [(name, f"at({numbers.next()})", f"{argument.name}.{part}") for name, part in parts]
    if argument.kind == "strides":
        lead = argument.name[:-len("strides")]
        return [(name, str(numbers.next()), f"{argument.name}.{name[len(lead):-len('_stride')]}")
                for name in argument.parts]
    if argument.kind == "tensor":
        element = argument.type.replace("const ", "").rstrip("*").replace("std::", "")
        cast = f"at({numbers.next()})" if element == "void" else f"at<{element}>({numbers.next()})"
        return [(argument.name, cast, argument.name)]
    return [(argument.name, f"{numbers.next()}" + (".5F" if argument.kind == "float" else ""), argument.name)]


def _arguments(operator: Operator) -> typing.List[str]:
    call, numbers = operator.call, _Numbers()
    members = [member for argument in call.arguments for member in _argument(argument, numbers)]
    return [f'TEST_CASE("hone_{call.name}_args: every member arrives") {{',
            f"    hone_{call.name}_args c = HONE_{call.name.upper()}_ARGS_INIT;",
            *(f"    c.{name} = {value};" for name, value, _ in members),
            f"    const {call.title}Args args = from_c(c);",
            *(f"    CHECK(args.{there} == {value});" for _, value, there in members), "}", ""]


def source(operators: typing.List[Operator], lock: abi.Lock) -> str:
    lines = [*cpp.comment(f"From C to C++, member by member. {NOTE}", mark="//"),
             '#include "runtime/c_api/conversions.h"',
             "", "#include <doctest/doctest.h>", "", "#include <cstdint>", "", "namespace hone::c_api {",
             "namespace {", "",
             "template <class T = void>", "T* at(std::uintptr_t address) {",
             "    return reinterpret_cast<T*>(address);",
             "}", "", "/// Whether a description with a number that is none is refused.",
             "template <class Struct>",
             "bool refuses(Struct given, std::int32_t Struct::*member) {", "    given.*member = 77;",
             "    try {",
             "        static_cast<void>(from_c(given));", "    } catch (const Error& error) {",
             "        return error.kind() == ErrorKind::bad_argument;", "    }", "    return false;", "}", ""]
    for operator in operators:
        lines += _descriptions(operator, lock)
    for group in emit_c.groups(operators):
        lines += _arguments(group[0])
    return "\n".join([*lines, "}  // namespace", "}  // namespace hone::c_api", ""])


def _described(operator: Operator, has_all: bool) -> str:
    """A small description, as it is by default or with everything off its default."""
    members: typing.List[str] = []
    for given in operator.fields:
        if given.largest:
            members.append(f".{given.name} = 8")
        elif given.kind == "int64":
            most = operator.family.field(given.field).most if given.field else 64
            members.append(f".{given.name} = {min(64, most)}")
        elif has_all:
            members.append(f".{given.name} = {_given(given, _Numbers())[1]}")
    before = len("    visit(")
    return "\n".join(cpp.braced(operator.title, members, ",", before))[before:-1]


def _small_calls(operator: Operator) -> typing.List[str]:
    """Two visits of an operator that is one family's call."""
    numbers = {argument.name for argument in operator.call.arguments if argument.kind == "int64"}
    rows = [pointer.rows for pointer in operator.family.pointers if pointer.rows]
    members = [f".{name} = 100" for name in rows if name in numbers]
    args = f"{operator.call.title}Args{{{', '.join(members)}}}"
    return [line for has_all in (False, True)
            for line in cpp.filled("    visit(", [_described(operator, has_all), args], ");")]


def _visit_small_calls(operators: typing.List[Operator]) -> typing.List[str]:
    """Those whose fields may be whatever their ranges say, whatever the others are: not formats of weights."""
    simple = [operator for operator in operators
              if operator.family is not None and not operator.is_function and not operator.is_checked
              and all(argument.kind != "weight" for argument in operator.call.arguments)]
    return ["/// Each operator that is one family's call, by default and with every choice off its default, and the",
            "/// numbers of a call of up to 8 rows.",
            "template <class Visit>", "void visit_small_calls(const Visit& visit) {",
            *(line for operator in simple for line in _small_calls(operator)), "}", ""]


def visitors(operators: typing.List[Operator]) -> str:
    """tests/runtime/visit_pointers.h: each pointer of a call with its name in C, and small calls."""
    lines = [*cpp.comment(f"The pointers of each operator's arguments, with their names. {NOTE}", mark="//"),
             "#pragma once",
             "", '#include "hone/hone.h"', "", "namespace hone::test {", ""]
    for group in emit_c.groups([operator for operator in operators if not operator.is_function]):
        call = group[0].call
        lines += ["template <class Visit>",
                  f"void visit_pointers({call.title}Args& args, const Visit& visit) {{"]
        for argument in call.arguments:
            if argument.kind == "weight":
                lines += [f'    visit("{name}", args.{argument.name}.{part});' for name, part in
                          zip(argument.parts, ("codes", "scales", "zeros"))]
            elif argument.kind == "tensor":
                lines.append(f'    visit("{argument.name}", args.{argument.name});')
        lines += ["}", ""]
    lines += _visit_small_calls(operators)
    return "\n".join([*lines, "}  // namespace hone::test", ""])


def initializers(structs: typing.List[abi.Struct]) -> str:
    """In C: every hone_*_init() writes what its macro has."""
    note = ("Whether every hone_*_init() writes what its macro has. Generated from the declarations, "
            "kernel_templates/<folder>/operators.py, by `./hone generate`.")
    lines = [*emit_c.block_comment(note), "#include <string.h>", "", '#include "hone.h"', "",
             "/* For program.c: the name of a struct whose function and macro differ; NULL when there is none. */",
             "const char* differing_initializer(void);", ""]
    for made in structs:
        lines += _differs(made)
    lines.append("const char* differing_initializer(void) {")
    lines += [f'    if ({made.name}_differs()) return "{made.name}";' for made in structs]
    return "\n".join([*lines, "    return NULL;", "}", ""])


def _differs(made: abi.Struct) -> typing.List[str]:
    compared = [f"made.{member.name} != wanted.{member.name}" for member in made.members]
    return [f"static int {made.name}_differs(void) {{", f"    hone_{made.name} made;",
            f"    const hone_{made.name} wanted = HONE_{made.name.upper()}_INIT;",
            "    memset(&made, 0xff, sizeof made);",
            f"    if (hone_{made.name}_init(&made, sizeof made) != HONE_OK) return 1;",
            *(f"    {'return ' if i == 0 else '       '}{text}{';' if i + 1 == len(compared) else ' ||'}"
              for i, text in enumerate(compared)), "}", ""]

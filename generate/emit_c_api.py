"""runtime/c_api/{conversions.h,conversions.cpp,operators.cpp}: from the structs of C to the types of C++ and back to
a status."""
import typing

from generate import abi, cpp, emit_c
from generate.emit_enums import snake
from generate.enums import ENUMS, STATUSES, Enum, Value
from generate.operators import Call, CallArgument, Given, Operator

NOTE = "Generated from the declarations, kernel_templates/*/operators.py and generate/enums.py, by `./hone generate`."
DTYPE = Enum("Dtype", "dtype", "", [Value(word, f"HONE_{word.upper()}") for word in ("fp32", "fp16", "bf16")])


def _begin(says: str) -> typing.List[str]:
    return cpp.comment(f"{says} {NOTE}", mark="//")


def _given(given: Given) -> str:
    value = f"given.{given.name}"
    if given.kind == "int64":
        return f".{given.name} = {value}"
    convert = {"flag": "flag_from", "dtype": "dtype_from"}.get(given.kind) or f"{snake(given.enum)}_from"
    return f'.{given.name} = {convert}("{given.name}", {value})'


def _description(operator: Operator, lock: abi.Lock) -> typing.List[str]:
    lines = [f"{operator.title} from_c(const hone_{operator.name}& given) {{"]
    if any(member.name == "reserved" for member in abi.description(operator, lock).members):
        lines.append("    check_reserved(given.reserved);")
    return [*lines, *cpp.braced("return ", [_given(given) for given in operator.fields], ";", 4), "}", ""]


def _argument(argument: CallArgument) -> str:
    if argument.kind == "weight":
        codes, scales, zeros = argument.parts
        return f".{argument.name} = {{.codes = args.{codes}, .scales = args.{scales}, .zeros = args.{zeros}}}"
    if argument.kind == "strides":
        parts = ["0"] * (3 - len(argument.parts)) + [f"args.{part}" for part in argument.parts]
        return f".{argument.name} = {{{', '.join(parts)}}}"
    return f".{argument.name} = args.{argument.name}"


def _arguments(call: Call) -> typing.List[str]:
    head = f"[[nodiscard]] inline {call.title}Args from_c("
    taken = f"const hone_{call.name}_args& args) noexcept {{"
    opening = [head + taken] if len(head + taken) <= cpp.WIDTH else [head, f"    {taken}"]
    return [*opening,
            *cpp.braced("return ", [_argument(argument) for argument in call.arguments], ";", 4), "}", ""]


def conversions_header(operators: typing.List[Operator]) -> str:
    lines = [*_begin("The structs and numbers of C as the types of C++. Internal to the C interface."),
             "#pragma once", "",
             '#include "hone/hone.h"', '#include "runtime/hone.h"', "", "namespace hone::c_api {", "",
             "/// Each throws Error (bad_argument) for a number that is none: \"dtype is 7; allowed: ...\".",
             "[[nodiscard]] bool flag_from(const char* field, std::int32_t given);"]
    for enum in [DTYPE, *ENUMS.values()]:
        lines.append(f"[[nodiscard]] {enum.name} {snake(enum.name)}_from(const char* field, std::int32_t given);")
    lines += [f"[[nodiscard]] {operator.title} from_c(const hone_{operator.name}& given);"
              for operator in operators]
    lines.append("")
    for group in emit_c.groups(operators):
        lines += _arguments(group[0].call)
    lines += ["/// What a C function returns for what run() does.",
              "[[nodiscard]] hone_status to_c(Status status) noexcept;"]
    return "\n".join([*lines, "", "}  // namespace hone::c_api", ""])


def _enum(enum: Enum) -> typing.List[str]:
    allowed = ", ".join(f"{value.c} ({i})" for i, value in enumerate(enum.values))
    head = "        refuse(field, given,"
    lines = [f'{head} "{allowed}");']
    if len(lines[0]) > cpp.WIDTH:
        lines = [head, *cpp.string(allowed, len("        refuse("), ");")]
    condition = f"    if (given < 0 || given >= {len(enum.values)})"
    lines = [condition, *lines]
    if len(lines) == 2 and len(condition + lines[1].lstrip()) < cpp.WIDTH:
        lines = [f"{condition} {lines[1].lstrip()}"]
    return [f"{enum.name} {snake(enum.name)}_from(const char* field, std::int32_t given) {{", *lines,
            f"    return static_cast<{enum.name}>(given);", "}", ""]


def _statuses() -> typing.List[str]:
    lines = ["hone_status to_c(Status status) noexcept {", "    switch (status) {"]
    lines += [f"        case Status::{status.cpp}: return HONE_{status.c};" for status in STATUSES
              if status.cpp]
    return [*lines, "    }", "    return HONE_FAILED;", "}", ""]


def _sentences() -> typing.List[str]:
    lines = ["const char* hone_status_string(hone_status status) {", "    switch (status) {"]
    for status in STATUSES:
        lines += cpp.case(f"HONE_{status.c}", status.sentence)
    return [*lines, "    }", '    return "unknown status";', "}", ""]


def conversions_source(operators: typing.List[Operator], lock: abi.Lock) -> str:
    lines = [*_begin(""), '#include "runtime/c_api/conversions.h"', "", '#include "runtime/c_api/operator.h"',
             "",
             "namespace hone::c_api {", ""]
    lines[0] = lines[0].replace("//  ", "// ")
    for enum in [DTYPE, *ENUMS.values()]:
        lines += _enum(enum)
    for operator in operators:
        lines += _description(operator, lock)
    lines += _statuses() + ["}  // namespace hone::c_api", ""] + _sentences()
    return "\n".join(lines)


def _size(call: Call) -> str:
    return call.sizes[0] if len(call.sizes) == 1 else f"hone::{call.title}Sizes{{{', '.join(call.sizes)}}}"


def _returned(head: str, values: typing.List[str]) -> typing.List[str]:
    return [*cpp.filled(f"return {head}(", values, ");", 4), "}", ""]


def _initializer(made: abi.Struct) -> typing.List[str]:
    name = f"hone_{made.name}"
    out = "args" if made.name.endswith("_args") else "description"
    return [*cpp.filled(f"hone_status {name}_init(", emit_c.init_parameters(made), ") {"),
            f"    constexpr {name} defaults = {name.upper()}_INIT;",
            *_returned("initialize", [out, "struct_size", "defaults"])]


def operators_source(operators: typing.List[Operator], lock: abi.Lock) -> str:
    lines = [*_begin("init, prepare, run, explain and workspace of every operator."), '#include "runtime/c_api/conversions.h"',
             '#include "runtime/c_api/operator.h"', "", "using namespace hone::c_api;", ""]
    for made in abi.structs(operators, lock):
        lines += _initializer(made)
    for group in emit_c.groups([operator for operator in operators if not operator.is_function]):
        call = group[0].call
        for operator in group:
            name = f"hone_{operator.name}_prepare"
            lines += cpp.filled(f"hone_status {name}(", emit_c.prepare_parameters(operator), ") {")
            lines += _returned("prepare", ["runtime", "description", "op", f'"{name}"'])
        lines += cpp.filled(f"hone_status hone_{call.name}_run(", emit_c.run_parameters(call), ") {")
        lines.append(f"    constexpr hone_{call.name}_args defaults = HONE_{call.name.upper()}_ARGS_INIT;")
        lines += _returned(f"run<hone::{call.title}Kernel>",
                           ["op", "stream", "args", "defaults", _size(call)])
        for operator in group:
            name = f"hone_{operator.name}_explain"
            lines += cpp.filled(f"hone_status {name}(", emit_c.explain_parameters(operator), ") {")
            lines += _returned("explain",
                               ["runtime", "description", _size(call), "{format, text, capacity, length}",
                                           f'"{name}"'])
        if len(call.sizes) > 1:
            name = f"hone_{call.name}_workspace"
            lines += cpp.filled(f"hone_status {name}(",
                                ["const hone_operator* op", *emit_c.sizes(call), "size_t* bytes"], ") {")
            lines += _returned(f"workspace<hone::{call.title}Kernel>", ["op", _size(call), "bytes", f'"{name}"'])
    return "\n".join(lines)


def layout_source(structs: typing.List[abi.Struct]) -> str:
    """What callers compiled against earlier headers rely on."""
    lines = [*_begin("Where every member of the interface's structs stands."), "#include <cstddef>", "",
             '#include "runtime/hone.h"', ""]
    for struct in structs:
        name = f"hone_{struct.name}"
        lines.append(f"static_assert(sizeof({name}) == {struct.size});")
        lines += [f"static_assert(offsetof({name}, {member.name}) == {member.offset});"
                  for member in struct.members]
    return "\n".join([*lines, ""])

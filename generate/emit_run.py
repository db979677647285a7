"""runtime/operators/<call>.{h,cpp} of operators that are one problem and one call of a family: the problem, the call
in the family's order, run() and what it refuses."""
import re
import typing

from generate import cpp
from generate.emit_cpp import origin, size_parameter, type_of
from generate.families import Pointer
from generate.operators import Call, Operator
from generate.state import kept, value_of


def call_parameters(operator: Operator) -> typing.List[str]:
    return [*(f"{type_of(given)} {given.name}" for given in kept(operator)),
            f"const {operator.call.title}Args& args",
            size_parameter(operator.call)]


def call_values(operator: Operator) -> typing.List[str]:
    return [*(f"{given.name}_" for given in kept(operator)), "args", operator.call.sizes[0]]


def _pointers(operator: Operator) -> typing.List[str]:
    lines = []
    names = {pointer.name for pointer in operator.family.pointers}
    for argument in operator.call.arguments:
        parts = zip(argument.parts, (".codes", ".scales", ".zeros")) if argument.kind == "weight" else \
            [(argument.name, "")]
        for name, part in parts:
            value = f"args.{argument.name}{part}"
            value = f"pointer({value})" if part or argument.type.startswith("const") else value
            if name in names:
                lines.append(f"    call.pointers[{operator.family.name}::{name}] = {value};")
    return lines


def _call(operator: Operator) -> typing.List[str]:
    family, call = operator.family, operator.call
    lines = ["/// The arguments in the family's order, strides filled in.",
             *cpp.filled(f"[[nodiscard]] inline Call call_of(", call_parameters(operator),
                         ") noexcept {"),
             "    Call call;", *_pointers(operator)]
    described = "description." if kept(operator)[0].name == "description" else ""
    for scalar in family.scalars:
        value = re.sub(r"\bd\.", described, value_of(operator, scalar))
        left, right = f"    call.scalars[{family.name}::{scalar.name}] =", f"Scalar::of({value});"
        if len(left + right) < cpp.WIDTH:
            lines.append(f"{left} {right}")
        elif len(right) + 8 <= cpp.WIDTH:
            lines += [left, " " * 8 + right]
        else:
            lines += [left + " Scalar::of(", *(" " * 12 + part for part in re.split(r" (?=[?:] )", value))]
            lines[-3], lines[-1] = lines[-3][4:], lines[-1] + ");"
    return [*lines, "    return call;", "}", ""]


def header(group: typing.List[Operator]) -> str:
    first, family = group[0], group[0].family
    lines = [*origin(first.folder,
                     f"{' and '.join(o.title for o in group)} as the family's problems and calls."),
             "#pragma once", "", f'#include "hone/{first.call.name}.h"',
             f'#include "kernel_templates/{family.header}"', '#include "runtime/operators/call_arguments.h"',
             "",
             "namespace hone::runtime {", "",
             "/// The problem of the largest call. Throws std::invalid_argument naming "
             "field, value and what is allowed."]
    lines += [f"[[nodiscard]] Problem problem_of(const {operator.title}& description);" for operator in group]
    if first.is_checked:
        lines += ["/// What the family does not know, written by hand. Throws the same.",
                  f"void check_description(const {first.title}& description);"]
    return "\n".join([*lines, "", *_call(first), "}  // namespace hone::runtime", ""])


def _word(given, family_field) -> str:
    if given.kind == "int64":
        return f"description.{given.name}"
    if given.kind == "flag":
        return f"yes_no(description.{given.name})"
    return f"word(description.{given.name})" if given.kind == "enum" else f"dtype_name(description.{given.name})"


def _problem(operator: Operator) -> typing.List[str]:
    fields = [given for given in operator.fields if given.field and not given.largest]
    pairs = [f'{{"{given.field}", {_word(given, None)}}}' for given in fields]
    by_name = {given.field: given for given in operator.fields if given.largest}
    maxima = []
    for field in operator.family.fields:
        if field.name in by_name:
            given = by_name[field.name]
            maxima.append(f'{{"{given.name}", description.{given.name}}}')
    head = f'    return describe_problem("{operator.family_name}",'
    lead = " " * len("    return describe_problem(")
    check = ["    check_description(description);"] if operator.is_checked else []
    return [f"Problem problem_of(const {operator.title}& description) {{", *check, head,
            f"{lead}{{{pairs[0]},",
            *(f"{lead} {pair}," for pair in pairs[1:-1]), f"{lead} {pairs[-1]}}},",
            f"{lead}{{{', '.join(maxima)}}});",
            "}", ""]


def _entry(operator: Operator) -> typing.List[str]:
    values = ["maker.dispatcher.prepare(problem_of(description))",
              *(given.name if given.name == "description" else f"description.{given.name}"
                for given in kept(operator))]
    if operator.has_indices:
        values.append("maker.checking != nullptr")
    size = operator.call.sizes[0]
    run_time = [field.name for field in operator.family.fields if field.kind in ("dynamic", "free")]
    explained = [f"    return dispatcher.explain(problem_of(description), {{{size}}});"]
    if len(run_time) > 1:  # others stay as the problem has them
        explained = ["    const Problem largest = problem_of(description);", "    Sizes sizes = sizes_of(largest);",
                     f"    sizes[{run_time.index(size)}] = {size};",
                     "    return dispatcher.explain(largest, sizes);"]
    return [*cpp.filled(f"{operator.title}Kernel prepare_with(",
                        ["const Maker& maker", f"const {operator.title}& description"], ") {"),
            *cpp.braced("return ", values, ";", 4), "}", "",
            *cpp.filled("Explanation explain_with(", ["const Dispatcher& dispatcher",
                                                      f"const {operator.title}& description",
                                                      size_parameter(operator.call)], ") {"),
            *explained, "}", ""]


def _row_ids(pointer: Pointer) -> typing.List[str]:
    """The members of a RowIds: the ids, whether they have 64 bits, and the rows of their table."""
    computed = re.fullmatch(r"p\.(\w+)_type\(\)", pointer.dtype)
    is_wide = f"description_.{computed[1]} == IndexType::int64" if computed else \
        "true" if pointer.dtype == "int64" else "false"
    ids = f"args.{pointer.name}"
    if pointer.when:
        ids = f"description_.{pointer.when} ? {ids} : nullptr"
    return [ids, is_wide, f"args.{pointer.rows}"]


def _checked_indices(operator: Operator) -> typing.List[str]:
    if operator.checks_indices:
        return ["    if (checks_indices_) {", "        const Status wrong =",
                "            runtime::check_indices(runtime::single(*prepared_), stream, call, description_, args, "
                f"{operator.call.sizes[0]});",
                "        if (wrong != Status::ok) return wrong;", "    }"]
    tensors = [line for pointer in operator.family.pointers if pointer.rows
               for line in cpp.braced("", _row_ids(pointer), ",", 12)]
    return ["    if (checks_indices_) {", "        const runtime::RowIds ids[] = {",
            *tensors, "        };",
            "        const Status wrong = runtime::check_rows(runtime::single(*prepared_), stream, call, "
            f"{operator.call.sizes[0]}, ids);",
            "        if (wrong != Status::ok) return wrong;", "    }"]


def _run(group: typing.List[Operator]) -> typing.List[str]:
    first = group[0]
    call = first.call
    size = call.sizes[0]
    built = f"runtime::call_of({', '.join(call_values(first))})"
    parameters = ["CUstream_st* stream", f"const {call.title}Args& args", size_parameter(call)]
    return [*cpp.filled(f"Status {call.title}Kernel::run(", parameters, ") const noexcept {"),
            "    if (!*this) return Status::not_prepared;", f"    const Call call = {built};",
            *(_checked_indices(first) if first.has_indices else []),
            f"    return runtime::single(*prepared_).run(stream, call, {{{size}}});", "}", "",
            *cpp.filled(f"std::string {call.title}Kernel::refusal(", parameters[1:], ") const {"),
            '    if (!*this) runtime::throw_not_prepared("refusal()");',
            f"    const Call call = {built};",
            f"    return runtime::single(*prepared_).refusal(call, {{{size}}});", "}", ""]


def source(group: typing.List[Operator]) -> str:
    call = group[0].call
    lines = [*origin(group[0].folder,
                     f"{' and '.join(o.title for o in group)}: the problem, run() and what it refuses."),
             f'#include "runtime/operators/{call.name}.h"', "",
             '#include "runtime/dispatch/prepared_operator.h"',
             '#include "runtime/dispatch/public_error.h"', '#include "runtime/operators/describe_problem.h"',
             '#include "runtime/operators/entry.h"',
             *(['#include "runtime/operators/index_check.h"'] if group[0].has_indices else []), "",
             "namespace hone {", "namespace runtime {", ""]
    for operator in group:
        lines += _problem(operator) + _entry(operator)
    lines += ["}  // namespace runtime", "", *_run(group), "}  // namespace hone", ""]
    return "\n".join(lines)

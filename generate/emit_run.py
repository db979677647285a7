"""runtime/operators/<call>.{h,cpp} of operators that are one problem and one call of a family: the problem, the call
in the family's order, run() and what it refuses."""
import re
import typing

from generate import cpp
from generate.families import Scalar
from generate.emit_cpp import kept, origin, size_parameter, type_of
from generate.operators import Operator


def _value(operator: Operator, scalar: Scalar) -> str:
    """What a scalar of the family is in a call."""
    call = operator.call
    argument = next((argument for argument in call.arguments if argument.name == scalar.name), None)
    if scalar.name in call.given:
        value = re.sub(r"\bd\.", "", call.given[scalar.name])
        return f"Scalar::of({value})" if scalar.kind == "float" else f"Scalar::of(std::int64_t{{{value}}})"
    if argument is not None and scalar.of:
        return f"stride(args.{scalar.name}, {scalar.value})"
    if argument is not None:
        return f"Scalar::of(args.{scalar.name})"
    return f"Scalar::of({scalar.value})"  # a size, or a stride that no caller gives


def needed(operator: Operator) -> typing.Set[str]:
    """Names of the description that a call needs."""
    if operator.family is None:
        return set()
    names = {given.name for given in operator.fields}
    texts = [_value(operator, scalar) for scalar in operator.family.scalars]
    found = {word for text in texts for word in re.findall(r"(?<![\w.:>])[a-z_]\w*(?!\w|\()", text)}
    return found & names - set(operator.call.sizes)


def call_parameters(operator: Operator) -> typing.List[str]:
    return [f"const {operator.call.title}Args& args", *(f"{type_of(given)} {given.name}" for given in kept(operator)),
            size_parameter(operator.call)]


def call_values(operator: Operator) -> typing.List[str]:
    return ["args", *(f"{given.name}_" for given in kept(operator)), operator.call.sizes[0]]


def _call(operator: Operator) -> typing.List[str]:
    family, call = operator.family, operator.call
    lines = ["/// The arguments in the family's order, strides filled in.",
             *cpp.filled(f"[[nodiscard]] inline Call {call.name}_call(", call_parameters(operator), ") noexcept {"),
             "    Call call;"]
    for pointer in family.pointers:
        argument = next((argument for argument in call.arguments if argument.name == pointer.name), None)
        if argument is not None:
            value = f"pointer(args.{pointer.name})" if argument.type.startswith("const") else f"args.{pointer.name}"
            lines.append(f"    call.pointers[{family.name}::{pointer.name}] = {value};")
    for scalar in family.scalars:
        lines.append(f"    call.scalars[{family.name}::{scalar.name}] = {_value(operator, scalar)};")
    return [*lines, "    return call;", "}", ""]


def header(group: typing.List[Operator]) -> str:
    first, family = group[0], group[0].family
    lines = [*origin(first.folder, f"{' and '.join(o.title for o in group)} as the family's problems and calls."),
             "#pragma once", "", f'#include "hone/{first.call.name}.h"',
             f'#include "kernel_templates/{family.name}/declaration.h"', '#include "runtime/operators/call_arguments.h"', "",
             "namespace hone::runtime {", "", "/// The problem of the largest call. Throws std::invalid_argument naming "
             "field, value and what is allowed."]
    lines += [f"[[nodiscard]] Problem problem_of(const {operator.title}& description);" for operator in group]
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
    return [f"Problem problem_of(const {operator.title}& description) {{", head, f"{lead}{{{pairs[0]},",
            *(f"{lead} {pair}," for pair in pairs[1:-1]), f"{lead} {pairs[-1]}}},", f"{lead}{{{', '.join(maxima)}}});",
            "}", ""]


def _entry(operator: Operator) -> typing.List[str]:
    values = ["maker.dispatcher.prepare(problem_of(description))",
              *(f"description.{given.name}" for given in kept(operator))]
    size = operator.call.sizes[0]
    return [*cpp.filled(f"{operator.title}Kernel prepare_with(",
                        ["const Maker& maker", f"const {operator.title}& description"], ") {"),
            *cpp.braced("return ", values, ";", 4), "}", "",
            *cpp.filled("Explanation explain_with(", ["const Dispatcher& dispatcher",
                                                      f"const {operator.title}& description",
                                                      size_parameter(operator.call)], ") {"),
            f"    return dispatcher.explain(problem_of(description), {{{size}}});", "}", ""]


def _run(group: typing.List[Operator]) -> typing.List[str]:
    first = group[0]
    call = first.call
    size = call.sizes[0]
    built = f"runtime::{call.name}_call({', '.join(call_values(first))})"
    parameters = ["CUstream_st* stream", f"const {call.title}Args& args", size_parameter(call)]
    return [*cpp.filled(f"Status {call.title}Kernel::run(", parameters, ") const noexcept {"),
            "    if (!*this) return Status::not_prepared;", f"    const Call call = {built};",
            f"    return runtime::single(*prepared_).run(stream, call, {{{size}}});", "}", "",
            *cpp.filled(f"std::string {call.title}Kernel::refusal(", parameters[1:], ") const {"),
            '    if (!*this) runtime::throw_not_prepared("refusal()");',
            f"    const Call call = {built};",
            f"    return runtime::single(*prepared_).refusal(call, {{{size}}});", "}", ""]


def source(group: typing.List[Operator]) -> str:
    call = group[0].call
    lines = [*origin(group[0].folder, f"{' and '.join(o.title for o in group)}: the problem, run() and what it refuses."),
             f'#include "runtime/operators/{call.name}.h"', "", '#include "runtime/dispatch/prepared_operator.h"',
             '#include "runtime/dispatch/public_error.h"', '#include "runtime/operators/describe_problem.h"',
             '#include "runtime/operators/entry.h"', "",
             "namespace hone {", "namespace runtime {", ""]
    for operator in group:
        lines += _problem(operator) + _entry(operator)
    lines += ["}  // namespace runtime", "", *_run(group), "}  // namespace hone", ""]
    return "\n".join(lines)

"""runtime/operators/<call>.{h,cpp} of operators that no single family declares: the problems and calls of their parts,
and the kernel object's way to the class that is written by hand."""
import re
import typing

from generate import cpp
from generate.emit_cpp import origin, size_parameter
from generate.enums import ENUMS
from generate.families import Field, Scalar
from generate.operators import Operator, Part


def _over(text: str) -> str:
    return re.sub(r"\bd\b", "description", text)


def _value(operator: Operator, part: Part, field: Field) -> typing.Optional[str]:
    """What a field of the family is; None: its default."""
    names = {given.name for given in operator.fields}
    said = part.fields.get(field.name)
    if said is not None:
        return cpp.number(said) if isinstance(said, int) else _over(said)
    for name in (field.name, f"max_{field.name}"):
        if name in names:
            return f"description.{name}"
    if field.default_as:
        return _value(operator, part, part.family.field(field.default_as))
    return None if field.default is not None else part.refuse(f"does not say {field.name}")


def _word(field: Field, value: str) -> str:
    """The value as describe_problem() takes it; of a choice that is the folder's own it is the word."""
    convert = {"Dtype": "dtype_name", "bool": "yes_no"}.get(field.enum, "word" if field.enum in ENUMS else "")
    return f"{convert}({value})" if convert else value


def _described(family: str, fields: typing.List[str], maxima: typing.List[str]) -> typing.List[str]:
    """return describe_problem(...); the maxima in one line where there is room for that."""
    one = f"{{{', '.join(maxima)}}});"
    lead = " " * len("    return describe_problem(")
    head = [f'    return describe_problem("{family}",']
    if len(lead + one) > cpp.WIDTH >= len(one) + 8:
        lead = " " * 8
        head = ["    return describe_problem(", f'{lead}"{family}",']
    last = [lead + one] if len(lead + one) <= cpp.WIDTH else _one_each(maxima, lead, ");")
    return [*head, *_one_each(fields, lead, ","), *last]


def _one_each(items: typing.List[str], lead: str, last: str) -> typing.List[str]:
    marks = ["{"] + [" "] * (len(items) - 1)
    ends = [","] * (len(items) - 1) + ["}" + last]
    return [f"{lead}{mark}{item}{end}" for mark, item, end in zip(marks, items, ends)]


def _problem_parameters(operator: Operator, part: Part) -> typing.List[str]:
    return [f"const {operator.title}& description", *(f"std::int64_t {name}" for name in part.takes.split())]


def _problem(operator: Operator, part: Part) -> typing.List[str]:
    fields, maxima = [], []
    for field in part.family.fields:
        value = _value(operator, part, field)
        if value is None:
            continue
        if field.kind in ("dynamic", "free"):
            name = f"max_{field.name}" if value == f"description.max_{field.name}" else field.name
            maxima.append(f'{{"{name}", {value}}}')
        else:
            fields.append(f'{{"{field.name}", {_word(field, value)}}}')
    return [*cpp.filled(f"Problem {part.name}_problem(", _problem_parameters(operator, part), ") {"),
            *_described(part.family.name, fields, maxima), "}", ""]


def _scalar(operator: Operator, part: Part, scalar: Scalar) -> str:
    call = operator.call
    said = part.given.get(scalar.name)
    if said is not None:
        return _over(said)
    if scalar.name in call.sizes:
        return scalar.name if len(call.sizes) == 1 else f"sizes.{scalar.name}"
    tensor = re.fullmatch(r"(\w+)_(batch|token|head)_stride", scalar.name)
    if tensor and tensor[1] in part.let:
        return f"{tensor[1]}.{tensor[2]}"
    if all(argument.name != scalar.name for argument in call.arguments):
        part.refuse(f"does not give {scalar.name}")
    return f"args.{scalar.name}"


def _assigned(left: str, right: str) -> typing.List[str]:
    one = f"    {left} = {right};"
    return [one] if len(one) <= cpp.WIDTH else [f"    {left} =", f"        {right};"]


def _call(operator: Operator, part: Part) -> typing.List[str]:
    parameters = [f"const {operator.title}& description", f"const {operator.call.title}Args& args",
                  size_parameter(operator.call)]
    lines = ["/// The arguments in the family's order, strides filled in.",
             *cpp.filled(f"[[nodiscard]] inline Call {part.name}_call(", parameters, ") noexcept {")]
    for name, text in part.let.items():
        lines += _assigned(f"const auto {name}", _over(text))
    lines.append("    Call call;")
    arguments = {argument.name for argument in operator.call.arguments}
    for pointer in part.family.pointers:
        said = part.given.get(pointer.name)
        if said is None and pointer.name not in arguments:
            part.refuse(f"does not give {pointer.name}")
        value = f"args.{pointer.name}" if said is None else _over(said)
        lines += _assigned(f"call.pointers[{part.family.name}::{pointer.name}]", f"pointer({value})")
    for scalar in part.family.scalars:
        lines += _assigned(f"call.scalars[{part.family.name}::{scalar.name}]",
                           f"Scalar::of({_scalar(operator, part, scalar)})")
    return [*lines, "    return call;", "}", ""]


def _sizes(operator: Operator, part: Part) -> typing.List[str]:
    """Where all of them are sizes of a call."""
    names = [field.name for field in part.family.fields if field.kind in ("dynamic", "free")]
    if len(names) == 1 or not set(names) <= set(operator.call.sizes):
        return []
    return ["/// A call's sizes in the order of the family.",
            f"[[nodiscard]] constexpr Sizes {part.name}_sizes({operator.call.title}Sizes sizes) noexcept {{",
            f"    return {{{', '.join(f'sizes.{name}' for name in names)}}};", "}", ""]


def _names(part: Part) -> typing.List[str]:
    """What texts call a pointer or stride that the family calls otherwise."""
    found = {}
    for pointer in part.family.pointers:
        plain = re.fullmatch(r"args\.(\w+)", part.given.get(pointer.name, ""))
        found[pointer.name] = plain[1] if plain else pointer.name
    for scalar in part.family.scalars:
        said = re.fullmatch(r"(\w+)\.(batch|token|head)", part.given.get(scalar.name, "")) or \
            re.fullmatch(r"(\w+)_(batch|token|head)_stride", scalar.name)
        tensor = said and re.search(r"args\.(\w+)_strides", part.let.get(said[1], ""))
        found[scalar.name] = f"{tensor[1]}_{said[2]}_stride" if tensor else scalar.name
    pairs = [f'{{"{name}", "{called}"}}' for name, called in found.items() if name != called]
    if not pairs:
        return []
    return ["/// What a caller calls otherwise than the family.",
            *cpp.braced(f"inline constexpr CallName {part.name}_names[] = ", pairs, ";"), ""]


def header(operator: Operator) -> str:
    headers = [f"hone/{operator.call.name}.h", *(f"kernel_templates/{part.family.header}" for part in operator.parts),
               "runtime/operators/call_arguments.h", operator.helpers]
    headers += ["runtime/dispatch/call_text.h"] if any(_names(part) for part in operator.parts) else []
    lines = [*origin(operator.folder, f"{operator.title} as problems and calls of families."), "#pragma once", "",
             *(f'#include "{header}"' for header in sorted(filter(None, headers))), "",
             "namespace hone::runtime {", "",
             "/// Problems of the largest call. Each throws std::invalid_argument naming field, value and what is "
             "allowed."]
    for part in operator.parts:
        lines += cpp.filled(f"[[nodiscard]] Problem {part.name}_problem(", _problem_parameters(operator, part), ");")
    lines.append("")
    for part in operator.parts:
        lines += _sizes(operator, part) + _call(operator, part) + _names(part)
    return "\n".join([*lines, "}  // namespace hone::runtime", ""])


def _entry(operator: Operator) -> typing.List[str]:
    title, size = operator.title, operator.call.sizes[0] if len(operator.call.sizes) == 1 else "sizes"
    told = "std::array<Explanation, 2>" if operator.halves else "Explanation"
    return [*cpp.filled(f"{title}Kernel prepare_with(", ["const Maker& maker", f"const {title}& description"], ") {"),
            f"    return {title}Kernel(std::make_shared<const Prepared{title}>(maker, description));", "}", "",
            *cpp.filled(f"{told} explain_with(", ["const Dispatcher& dispatcher", f"const {title}& description",
                                                  size_parameter(operator.call)], ") {"),
            f"    return Prepared{title}::explain(dispatcher, description, {size});", "}", ""]


def _run(operator: Operator) -> typing.List[str]:
    call, title = operator.call, operator.title
    size = call.sizes[0] if len(call.sizes) == 1 else "sizes"
    parameters = ["CUstream_st* stream", f"const {call.title}Args& args", size_parameter(call)]
    found = f"    return static_cast<const runtime::Prepared{title}&>(*prepared_)"
    lines = [*cpp.filled(f"Status {title}Kernel::run(", parameters, ") const noexcept {"),
             "    if (!*this) return Status::not_prepared;", f"{found}.run(stream, args, {size});", "}", "",
             *cpp.filled(f"std::string {title}Kernel::refusal(", parameters[1:], ") const {"),
             '    if (!*this) runtime::throw_not_prepared("refusal()");', f"{found}.refusal(args, {size});", "}", ""]
    if len(call.sizes) > 1:
        members = ", ".join(f"sizes.{size}" for size in call.sizes)
        lines += [f"std::int64_t {title}Kernel::workspace_bytes({call.title}Sizes sizes) const {{",
                  '    if (!*this) runtime::throw_not_prepared("workspace_bytes()");',
                  '    return runtime::guarded("workspace_bytes()", [&] {',
                  f"        return prepared_->workspace_bytes({{{members}}});", "    });", "}", ""]
    return lines


def source(operator: Operator) -> str:
    own = operator.parts and f"runtime/operators/{operator.call.name}.h"
    headers = ["runtime/operators/describe_problem.h"] if operator.parts else []
    if operator.prepared:
        headers += ["runtime/dispatch/public_error.h", "runtime/operators/entry.h", operator.prepared]
    problems = [line for part in operator.parts for line in _problem(operator, part)]
    entry = _entry(operator) if operator.prepared else []
    says = f"{operator.title}: {'its problems' if operator.parts else 'what a kernel object does'}."
    lines = [*origin(operator.folder, says),
             *([f'#include "{own}"', ""] if own else []), *(f'#include "{header}"' for header in sorted(headers)), "",
             "namespace hone {", "namespace runtime {", "", *problems, *entry, "}  // namespace runtime", "",
             *(_run(operator) if operator.prepared else []), "}  // namespace hone", ""]
    return "\n".join(lines)

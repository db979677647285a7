"""kernel_templates/<folder>/declaration.h and .cpp of a declared family."""
import typing

from generate import cpp
from generate.families import Family, Field, Pointer, Scalar
from generate.enums import DTYPES, ENUMS

COMMAND = "./hone generate"


def origin(folder: str, says: str) -> typing.List[str]:
    return cpp.comment(f"{says} Generated from {folder}/operators.py by `{COMMAND}`.", mark="//")


def _enum(name: str, records, count: str) -> typing.List[str]:
    names = [record.name for record in records] + [count]
    words = [record.words for record in records] + [""]
    line = f"enum {name} : int {{ {', '.join(names)} }};"
    if len(line) <= cpp.WIDTH and not any(words):
        return [line]
    return [f"enum {name} : int {{", *cpp.one_a_line(names, 4, words), "};"]


def _own_enums(family: Family) -> typing.List[str]:
    lines: typing.List[str] = []
    for field in family.fields:
        if field.kind == "choice" and field.enum not in ENUMS and field.enum not in ("bool", "Dtype") \
                and "::" not in field.enum:
            lines += [f"/// Choices of the field `{field.name}`, in order.",
                      f"enum class {field.enum} : std::int64_t {{ {', '.join(field.choices)} }};", ""]
    return lines


def _enumerator(field: Field, index: int) -> str:
    if field.enum in ENUMS:
        return f"{field.enum}::{ENUMS[field.enum].values[index].name}"
    return f"{field.enum}::{field.choices[index]}"


def _initial(field: Field) -> str:
    default = 0 if field.only else field.default or 0  # without the field as if it were off
    if field.kind != "choice":
        return str(default)
    if field.enum == "bool":
        return "true" if default else "false"
    if field.enum == "Dtype" and field.default is None and "bf16" in field.choices:
        return "Dtype::bf16"
    return _enumerator(field, default)


def _value(field: Field, index: int) -> str:
    text = f"problem[{index}]"
    if field.kind != "choice":
        return text
    if field.enum == "bool":
        return text + " != 0"
    first = DTYPES.index(field.choices[0]) if field.enum == "Dtype" else 0
    return f"static_cast<{field.enum}>({text}{f' + {first}' if first else ''})"


def _choices(field: Field) -> str:
    return {"bool": "yes_no"}.get(field.enum, field.name + "_choices")


def _choice_arrays(family: Family) -> typing.List[str]:
    lines: typing.List[str] = []
    for field in family.fields:
        if field.kind == "choice":
            words = ["no", "yes"] if field.enum == "bool" else field.choices
            made = cpp.listed(f"inline constexpr std::string_view {_choices(field)}[] = ", [f'"{word}"' for word in words])
            if made[0] not in lines:
                lines += made
    return lines + [""] if lines else []


def _field(field: Field) -> typing.List[str]:
    parts = [f'.name = "{field.name}"', f".kind = Field::Kind::{field.kind}", f'.meaning = "{field.words}"']
    if field.least != 1:
        parts.append(f".min = {cpp.number(field.least)}")
    if field.most != 1:
        parts.append(f".max = {cpp.number(field.most)}")
    if field.default is not None:
        parts.append(f".default_value = {field.default}")
    if field.kind == "choice":
        parts.append(f".choices = {_choices(field)}")
    if field.default_as:
        parts.append(f'.default_as = "{field.default_as}"')
    if field.quiet_default:
        parts.append(".quiet_default = true")
    if field.finer:
        parts.append(".finer = true")
    return cpp.braced("", parts, ",", 4)


def _fields_of(family: Family, name: str) -> typing.List[Field]:
    return [field for field in family.fields if field.only in ("", name)]


def _array(family: Family, name: str) -> str:
    return "fields" if len(family.says) == 1 else f"{name}_fields"


def _field_arrays(family: Family) -> typing.List[str]:
    lines = _choice_arrays(family)
    for name in family.says:
        lines.append(f"inline constexpr Field {_array(family, name)}[] = {{")
        for field in _fields_of(family, name):
            lines += _field(field)
        lines += ["};", ""]
    return lines


def _fields_struct(family: Family) -> typing.List[str]:
    lines = ["/// A problem's fields by their names."
             + (" `Problem::family` says which of the families it is of." if len(family.says) > 1 else ""),
             "struct Fields {"]
    for name in list(family.says)[1:]:
        lines.append(f"    bool {name} = false;  ///< the family, not {list(family.says)[0]}")
    lines += [f"    {field.type} {field.name} = {_initial(field)};" for field in family.fields]
    return lines + ["};"]


def _returned(family: Family, name: str, indent: int) -> typing.List[str]:
    values = [f".{name} = true"] if name != list(family.says)[0] else []
    values += [f".{field.name} = {_value(field, i)}" for i, field in enumerate(_fields_of(family, name))]
    return cpp.braced("return ", values, ";", indent)


def _fields_function(family: Family) -> typing.List[str]:
    lines = ["[[nodiscard]] inline Fields fields_of(const Problem& problem) {"]
    names = list(family.says)
    for name in names[1:]:
        lines += [f"    if (problem.family->fields.data() == {name}_fields) {{",
                  *_returned(family, name, 8), "    }"]
    return [*lines, *_returned(family, names[0], 4), "}"]


def _problem_struct(family: Family) -> typing.List[str]:
    lines = ["/// A problem as numbers.", f"struct {family.problem} : Fields {{", f"    {family.problem}() = default;",
             f"    explicit {family.problem}(const Problem& problem) : Fields(fields_of(problem)) {{}}", ""]
    if any(field.name == "dtype" for field in family.fields):
        lines.append("    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }")
    for field in family.fields:
        if field.enum == "IndexType":
            lines += [f"    [[nodiscard]] Dtype {field.name}_type() const {{",
                      f"        return {field.name} == IndexType::int64 ? wide_index_dtype : index_dtype;", "    }"]
    return [*lines, "};"]


def _call_arg(record) -> str:
    maker = "pointer" if isinstance(record, Pointer) else record.kind
    return f'{maker}_arg({record.name}, "{record.name}"),'


def _call_args(family: Family) -> typing.List[str]:
    return ["/// The whole call, as most kernels take it.",
            "inline constexpr KernelArg call_args[] = {",
            *cpp.columns([_call_arg(record) for record in [*family.pointers, *family.scalars]], 4), "};"]


def _row_strides(family: Family) -> typing.List[str]:
    rows = [scalar for scalar in family.scalars if scalar.of]
    if not rows:
        return []
    return ["/// The scalars that are distances between rows, and whose.",
            "inline constexpr RowStride row_strides[] = {",
            *cpp.columns([f"{{{scalar.name}, {scalar.of}}}," for scalar in rows], 4), "};"]


def _declared(family: Family, name: str) -> typing.List[str]:
    function = "declared" if len(family.says) == 1 else f"declared_{name}"
    lines = [f"[[nodiscard]] constexpr Family {function}(Family own) {{", f'    own.name = "{name}";',
             *cpp.assignment(f'    own.summary = "{family.says[name]}"', ";", 4)]
    if family.name != name:
        lines.append(f'    own.device_namespace = "{family.name}";')
    lines += [f"    own.fields = {_array(family, name)};", "    own.call_args = call_args;"]
    if any(scalar.of for scalar in family.scalars):
        lines.append("    own.row_strides = row_strides;")
    return lines + ["    own.arguments = declared_arguments;", "    own.scalars = declared_scalars;",
                    "    return own;", "}"]


def _includes(family: Family) -> typing.List[str]:
    lines = ["#include <cstdint>", "#include <string_view>", "#include <vector>", ""]
    if any(field.enum in ENUMS for field in family.fields):
        lines.append('#include "kernel_templates/enums.h"')
    others = sorted({field.enum.split("::")[0] for field in family.fields if "::" in field.enum and
                     not field.enum.startswith("std::")})
    return lines + ['#include "kernel_templates/family.h"',
                    *(f'#include "kernel_templates/{folder}/declaration.h"' for folder in others), ""]


def header(family: Family) -> str:
    lines = [*origin(f"kernel_templates/{family.name}",
                     f"What {' and '.join(family.says)} declare{'s' if len(family.says) == 1 else ''}: fields, pointers and scalars."),
             "#pragma once", "", *_includes(family), f"namespace hone::{family.name} {{", "",
             "/// Index of each pointer of a call.", *_enum("Pointer", family.pointers, "pointer_count"),
             "/// Index of each scalar of a call. Strides count elements.",
             *_enum("CallScalar", family.scalars, "scalar_count"), "", *_own_enums(family),
             *_field_arrays(family), *_fields_struct(family), *_fields_function(family),
             *(_problem_struct(family) if family.declares_problem else []), "",
             *_call_args(family), *_row_strides(family), "",
             "/// The arguments as tuning passes them.",
             "[[nodiscard]] std::vector<Argument> declared_arguments(const Problem& problem);",
             "[[nodiscard]] std::vector<ScalarArgument> declared_scalars(const Problem& problem);", "",
             "/// Adds what is declared to what is a family's own: variants, rules, tolerance, work, reference."]
    for name in family.says:
        lines += _declared(family, name)
    return "\n".join([*lines, "", f"}}  // namespace hone::{family.name}", ""])


def _dtype(family: Family, text: str) -> str:
    if text in DTYPES:
        return f"Dtype::{text}"
    return {"int32": "index_dtype", "int64": "wide_index_dtype", "untyped": "untyped_dtype"}.get(text) or family.cpp(text)


def _real(family: Family, value) -> str:
    return cpp.number(float(value)) if not isinstance(value, str) else f"static_cast<double>({family.cpp(value)})"


def _argument(family: Family, pointer: Pointer) -> typing.List[str]:
    shape = ["1"] * (4 - len(pointer.shape)) + [family.cpp(extent) for extent in pointer.shape]
    parts = [".name = " + (family.cpp(pointer.called) if pointer.called else f'"{pointer.name}"')]
    if pointer.role != "input":
        parts.append(f".role = Role::{pointer.role}")
    if pointer.dtype != "fp32":
        parts.append(f".dtype = {_dtype(family, pointer.dtype)}")
    if shape != ["1"] * 4:
        parts.append(f".shape = {{{', '.join(shape)}}}")
    kind, scale, offset = pointer.fill.kind, pointer.fill.scale, pointer.fill.offset
    if kind != "normal":
        parts.append(".fill = " + (f"Fill::{kind}" if kind.isidentifier() else family.cpp(kind)))
    if scale != 1.0:
        parts.append(f".fill_scale = {_real(family, scale)}")
    if offset != 0.0:
        parts.append(f".fill_offset = {_real(family, offset)}")
    if pointer.when:
        parts.append(f".present = {family.cpp(pointer.when)}")
    if pointer.appended:
        parts.append(".appended = true")
    return cpp.braced("", parts, ",", 8)


def _scalar(family: Family, scalar: Scalar) -> typing.List[str]:
    value = family.cpp(scalar.value)
    if scalar.kind != "float" and value.lstrip("-").isdigit():
        value = f"std::int64_t{{{value}}}"
    return cpp.braced("", [f'.name = "{scalar.name}"', f".tuning_value = Scalar::of({value})"], ",", 8)


def source(family: Family) -> str:
    body: typing.List[str] = []
    for pointer in family.pointers:
        body += _argument(family, pointer)
    scalars = [line for scalar in family.scalars for line in _scalar(family, scalar)]
    text = "\n".join(body + scalars)
    standard = [f"#include <{header}>" for header,
                sign in (("algorithm", "std::max"), ("algorithm", "std::min"),
                                                            ("cmath", "std::sqrt")) if sign in text]
    problem = f"    const {family.problem} p(problem);"
    lines = [f'#include "kernel_templates/{family.name}/declaration.h"', "", *sorted(set(standard)),
             *([""] if standard else []),
             *(['#include "kernel_templates/kit/ids.h"', ""] if "id_step(" in text else []),
             *([] if family.declares_problem else [f'#include "kernel_templates/{family.header}"', ""]),
             f"namespace hone::{family.name} {{", "",
             "std::vector<Argument> declared_arguments(const Problem& problem) {", problem, "    return {",
             *body,
             "    };", "}", "", "std::vector<ScalarArgument> declared_scalars(const Problem& problem) {",
             problem, "    return {", *scalars, "    };", "}", "",
             f"}}  // namespace hone::{family.name}", ""]
    first = cpp.comment(f"Generated from kernel_templates/{family.name}/operators.py by `{COMMAND}`.",
                        mark="//")
    return "\n".join(first + lines)

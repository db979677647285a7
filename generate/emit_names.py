"""kernel_templates/declared_names.cpp: public operators with their families, and synonyms of element types."""
import typing

from generate.emit_family import origin
from generate.enums import DTYPE_SYNONYMS
from generate.operators import Operator


def families_of(operator: Operator) -> typing.List[str]:
    """An operator of halves has no family of its own: it launches those of the folder that declares it."""
    if operator.family_name:
        return [operator.family_name]
    return [part.family.name for part in operator.parts] or [operator.folder]


def _columns(items: typing.List[str]) -> typing.List[str]:
    """Two a line, as clang-format has them."""
    width = max(map(len, items[::2]))
    rows = [items[i : i + 2] for i in range(0, len(items), 2)]
    return ["    " + (f"{row[0]:<{width}} {row[1]}" if len(row) > 1 else row[0]) for row in rows]


def _entry(operator: Operator) -> str:
    members = [f'.title = "{operator.title}"', f".families = {operator.name}"]
    members += [f".problems = {operator.name}_problems"] if operator.problems else []
    members += [".halves = true"] if operator.halves else []
    return f"    {{{', '.join(members)}}},"


def source(operators: typing.List[Operator]) -> str:
    lines = origin("kernel_templates/*", "What kernel_templates/names.h lists.")
    lines += ["", '#include "kernel_templates/names.h"', "", "namespace hone {", "namespace {", ""]
    ordered = sorted(operators, key=lambda operator: operator.title)
    for operator in ordered:
        names = ", ".join(f'"{name}"' for name in families_of(operator))
        lines.append(f"constexpr std::string_view {operator.name}[] = {{{names}}};")
        if operator.problems:
            conditions = ", ".join(f'"{condition}"' for condition in operator.problems)
            lines.append(f"constexpr std::string_view {operator.name}_problems[] = {{{conditions}}};")
    lines += ["", "constexpr OperatorName operators[] = {"]
    lines += [_entry(operator) for operator in ordered]
    lines += ["};", "", "constexpr DtypeSynonym synonyms[] = {"]
    lines += _columns([f'{{.text = "{text}", .dtype = "{dtype}"}},' for text, dtype in DTYPE_SYNONYMS.items()])
    lines += ["};", "", "}  // namespace", "",
              "std::span<const OperatorName> operator_names() { return operators; }",
              "std::span<const DtypeSynonym> dtype_synonyms() { return synonyms; }", "", "}  // namespace hone", ""]
    return "\n".join(lines)

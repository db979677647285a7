"""kernel_templates/enums.h."""
import typing

from generate import cpp
from generate.enums import ENUMS, Enum


def snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() and i else letter.lower()
                   for i, letter in enumerate(name))


def _enum(enum: Enum) -> typing.List[str]:
    names = [value.name for value in enum.values]
    words = [value.says for value in enum.values]
    quoted = ", ".join(f'"{value.word}"' for value in enum.values)
    lines = [*cpp.comment(enum.says), f"enum class {enum.name} : std::uint8_t {{"]
    lines += cpp.one_a_line(names, 4, words, last_comma=True)
    names_line = f"inline constexpr std::array<std::string_view, {len(names)}> {snake(enum.name)}_names"
    return [*lines, "};", "/// Their words, by number.", *cpp.filled(names_line + "{", quoted.split(", "), "};"), ""]


def header() -> str:
    lines = ["// Choices that operators offer, with their numbers, which never change their meaning, and their words.",
             "// Generated from generate/enums.py by `./hone generate`.", "#pragma once", "", "#include <array>",
             "#include <cstdint>", "#include <string_view>", "", "namespace hone {", ""]
    for enum in ENUMS.values():
        lines += _enum(enum)
    return "\n".join([*lines, "}  // namespace hone", ""])

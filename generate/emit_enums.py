"""kernel_templates/enums.h, and runtime/operators/words.{h,cpp}: the words of choices."""
import typing

from generate import cpp
from generate.enums import ENUMS, Enum


def snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() and i else letter.lower()
                   for i, letter in enumerate(name))


def _enum(enum: Enum) -> typing.List[str]:
    names = [value.name for value in enum.values]
    words = [value.says for value in enum.values]
    quoted = [f'"{value.word}"' for value in enum.values]
    lines = [*cpp.comment(enum.says), f"enum class {enum.name} : std::uint8_t {{"]
    lines += cpp.one_a_line(names, 4, words, last_comma=True)
    names_line = f"inline constexpr std::array<std::string_view, {len(names)}> {snake(enum.name)}_names"
    return [*lines, "};", "/// Their words, by number.",
            *cpp.listed(names_line, quoted), ""]


def header() -> str:
    lines = ["// Choices that operators offer, with their numbers, which never change their meaning, and their words.",
             "// Generated from generate/enums.py by `./hone generate`.", "#pragma once", "",
             "#include <array>",
             "#include <cstdint>", "#include <string_view>", "", "namespace hone {", ""]
    for enum in ENUMS.values():
        lines += _enum(enum)
    return "\n".join([*lines, "}  // namespace hone", ""])


NOTE = "Generated from generate/enums.py by `./hone generate`."


def words_header() -> str:
    lines = [f"// Words of choices, as problems spell them. {NOTE}", "#pragma once", "",
             "#include <string_view>", "",
             '#include "kernel_templates/enums.h"', "", "namespace hone::runtime {", "",
             "/// Each throws std::invalid_argument for a number that is none, naming the field and what is allowed."]
    lines += [f"[[nodiscard]] std::string_view word({enum.name} {enum.field or enum.c});"
              for enum in ENUMS.values()]
    return "\n".join([*lines, "", "}  // namespace hone::runtime", ""])


def words_source() -> str:
    lines = [f"// {NOTE}", '#include "runtime/operators/words.h"', "", "#include <fmt/format.h>",
             "#include <fmt/ranges.h>", "", "#include <span>", "#include <stdexcept>", "",
             "namespace hone::runtime {", "namespace {", "",
             "std::string_view word_of(std::string_view field, std::size_t number,",
             "                         std::span<const std::string_view> names) {",
             "    if (number < names.size()) return names[number];",
             '    throw std::invalid_argument(fmt::format("{} is {}; allowed: {}", field, number, fmt::join(names, ", ")));',
             "}", "", "}  // namespace", ""]
    for enum in ENUMS.values():
        name = enum.field or enum.c
        lines += [f"std::string_view word({enum.name} {name}) {{",
                  f'    return word_of("{name}", static_cast<std::size_t>({name}), {snake(enum.name)}_names);', "}", ""]
    return "\n".join([*lines, "}  // namespace hone::runtime", ""])

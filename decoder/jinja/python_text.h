// What Python's str does: templates call its methods. Texts are well-formed UTF-8, and places in them are
// counted in characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone::decoder::jinja {

/// str.isspace() of one character.
[[nodiscard]] bool is_space(char32_t c);
[[nodiscard]] std::string_view without_leading_spaces(std::string_view text);
[[nodiscard]] std::string_view without_trailing_spaces(std::string_view text);
/// lstrip(characters) and rstrip(characters).
[[nodiscard]] std::string_view without_leading(std::string_view text, std::string_view characters);
[[nodiscard]] std::string_view without_trailing(std::string_view text, std::string_view characters);

/// Where each character begins, and the text's end.
[[nodiscard]] std::vector<std::size_t> character_places(std::string_view text);
/// The text from one character up to another.
[[nodiscard]] std::string_view part_of(std::string_view text, std::size_t from, std::size_t to);

/// `most` is how often it is cut; -1 for always. Separators are not empty.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, std::string_view separator,
                                                  std::int64_t most);
[[nodiscard]] std::vector<std::string_view> split_from_end(std::string_view text, std::string_view separator,
                                                           std::int64_t most);
/// At runs of spaces, none of which is in a part.
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text, std::int64_t most = -1);
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text, bool with_ends);

/// text.find(part, from) in a time that does not grow with their product, whatever they are.
[[nodiscard]] std::size_t find_in(std::string_view text, std::string_view part, std::size_t from = 0);
/// How often `part` is in it, one behind the other, up to `most` (-1: all).
[[nodiscard]] std::size_t count_of(std::string_view text, std::string_view part, std::int64_t most);
/// `most` is how often; -1 for always.
[[nodiscard]] std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                                   std::int64_t most);

// Throw Fault for characters whose other case depends on where they stand, or is several characters.
[[nodiscard]] std::string upper(std::string_view text);
[[nodiscard]] std::string lower(std::string_view text);
[[nodiscard]] std::string capitalized(std::string_view text);
/// str.title().
[[nodiscard]] std::string titled(std::string_view text);
/// isalpha(), isdigit(), isalnum(), isspace(), isupper() or islower(), by that name.
[[nodiscard]] bool is_all(std::string_view text, std::string_view method);

/// The inside of a literal in quotes, with its escapes resolved. Throws Fault.
[[nodiscard]] std::string unescaped(std::string_view literal);
/// repr() of a text and of a number.
[[nodiscard]] std::string quoted(std::string_view text);
[[nodiscard]] std::string number_text(double number);

}  // namespace hone::decoder::jinja

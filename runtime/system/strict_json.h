// JSON from outside, parsed so that its tree hides nothing: repeated keys and deep nesting are refused.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace hone::runtime {

/// The object at the top; // and /* */ comments allowed. Throws InputError with file and line for what is
/// not JSON, nesting above 32 levels, a key that stands twice in its object, and anything but an object at
/// the top.
[[nodiscard]] nlohmann::json parse_json_object(const std::string& text, const std::string& file_name);

/// The first half of that: throws InputError for deeper nesting, keys that stand twice and zero bytes, and
/// leaves what is not JSON to the parser. Takes as long as the text is, where a callback of the parser does
/// not.
void check_json_structure(std::string_view text, const std::string& name, std::size_t most_levels);

/// What the parser has to say, without its name and number of the error: "[json.exception.parse_error.101] ".
[[nodiscard]] std::string json_reason(const nlohmann::json::exception& error);

/// Whether a value is this text. nlohmann's own comparison with a literal makes a copy where it must not
/// throw, and ends the process where memory ends.
[[nodiscard]] bool is_text(const nlohmann::json& value, std::string_view text) noexcept;

/// Line of the n-th byte, counted from 1.
[[nodiscard]] int line_at(std::string_view text, std::size_t offset);

}  // namespace hone::runtime

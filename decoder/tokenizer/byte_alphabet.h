// The 256 characters that stand for bytes in vocabularies of GPT-2's kind: a byte that is a visible character
// of Latin-1 is itself, the others follow from U+0100 on. So a space is U+0120.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace hone::decoder {

/// The character of each byte, as UTF-8.
[[nodiscard]] const std::array<std::string, 256>& byte_characters();
/// Bytes as their characters.
[[nodiscard]] std::string as_byte_characters(std::string_view bytes);
/// The bytes that well-formed text stands for; none where a character of it stands for no byte.
[[nodiscard]] std::optional<std::string> bytes_of_characters(std::string_view text);

}  // namespace hone::decoder

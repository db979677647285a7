// UTF-8 by the byte: well-formed sequences (RFC 3629), and text in pieces that may cut a character. Knows no
// property of a character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hone::decoder {

/// U+FFFD, which stands for what is no character.
inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

enum class SequenceState : std::uint8_t {
    whole,
    broken,  ///< no character begins like that
    cut,     ///< the text ends before the character does
};

/// The first character of a text: its bytes or, where it is broken or cut, those of the longest beginning of
/// one (at least one byte), which U+FFFD stands for.
struct Sequence {
    std::size_t length = 0;
    SequenceState state = SequenceState::whole;
};
/// `text` has at least one byte.
[[nodiscard]] Sequence first_sequence(std::string_view text);

[[nodiscard]] bool is_ascii(std::string_view text);
[[nodiscard]] bool is_utf8(std::string_view text);
/// The text with U+FFFD in place of what is no character.
[[nodiscard]] std::string lossy_utf8(std::string_view text);

/// Characters of well-formed text.
[[nodiscard]] std::size_t count_characters(std::string_view text);
/// The first character of well-formed text that is not empty.
[[nodiscard]] char32_t first_code_point(std::string_view text);
/// Bytes of the first character of well-formed text that is not empty.
[[nodiscard]] std::size_t first_length(std::string_view text);
void append_code_point(std::string& text, char32_t code_point);

/// Bytes that come in pieces, as text: a character is given out once all of its bytes are there.
class Utf8Stream {
  public:
    [[nodiscard]] std::string push(std::string_view bytes);
    /// U+FFFD for a character that was cut, and ready for another text.
    [[nodiscard]] std::string finish();

  private:
    std::string waiting_;  ///< the beginning of a character
};

}  // namespace hone::decoder

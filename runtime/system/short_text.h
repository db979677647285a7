// Messages that quote what came from outside, however long that was. Used where messages leave the program.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hone::runtime {

/// Bytes that a message shows of one value.
inline constexpr std::size_t max_shown_bytes = 200;
/// Bytes that a message has at most, whatever its values.
inline constexpr std::size_t max_message_bytes = 16384;

/// The message with each long value, text without white space or between quotes, as its first and last bytes
/// and its length: 'aaaa...aaaa (1048576 bytes)'. A message that is too long even so loses its middle. Cuts
/// no UTF-8 sequence.
[[nodiscard]] std::string with_short_words(std::string_view message);

/// Control characters (C0 without line feed where `keep_newlines`, DEL, C1) and bytes that are no UTF-8 as
/// \xNN: a string from a file or a driver cannot steer the terminal.
[[nodiscard]] std::string escape_controls(std::string_view text, bool keep_newlines = false);

/// The same for a message that is printed behind a word like "warning:": its further lines are indented, so
/// that no name with a line feed can begin a line, and pass for a message of its own.
[[nodiscard]] std::string escape_message(std::string_view message);

}  // namespace hone::runtime

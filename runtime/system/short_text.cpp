#include "runtime/system/short_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel_templates/text.h"

namespace hone::runtime {
namespace {

constexpr std::string_view white_space = " \t\n\r";

/// As many bytes from the front, or a few less.
std::string_view front_of(std::string_view text, std::size_t bytes) {
    constexpr std::size_t longest_sequence = 4;
    std::size_t end = bytes;
    while (end > bytes - longest_sequence && is_utf8_continuation(text[end])) --end;
    return text.substr(0, end);
}

/// The same from the back.
std::string_view back_of(std::string_view text, std::size_t bytes) {
    constexpr std::size_t longest_sequence = 4;
    std::size_t begin = text.size() - bytes;
    const std::size_t most = begin + longest_sequence;
    while (begin < most && is_utf8_continuation(text[begin])) ++begin;
    return text.substr(begin);
}

std::string shortened(std::string_view value) {
    constexpr std::size_t from_back = 60;
    if (value.size() <= max_shown_bytes) return std::string(value);
    return fmt::format("{}...{} ({} bytes)", front_of(value, max_shown_bytes - from_back),
                       back_of(value, from_back), value.size());
}

/// Quotes begin a value only behind one of these; elsewhere they are apostrophes, or end one.
bool may_open(char quote, char before) {
    constexpr std::string_view openers = " \t\n\r([{=:,";
    return (quote == '\'' || quote == '"') && openers.find(before) != std::string_view::npos;
}

/// Where the value ends that begins at `first`: at white space, or behind a quote that opens at its kind.
std::size_t end_of_value(std::string_view text, std::size_t first, char before) {
    if (may_open(text[first], before)) {
        const std::size_t quote = text.find(text[first], first + 1);
        if (quote != std::string_view::npos && quote - first > max_shown_bytes) return quote + 1;
    }
    std::size_t end = std::min(text.find_first_of(white_space, first), text.size());
    constexpr std::string_view punctuation = ":;,.";
    while (end > first + 1 && punctuation.find(text[end - 1]) != std::string_view::npos) --end;
    return end;
}

bool is_control(std::string_view character) {
    const auto first = static_cast<unsigned char>(character[0]);
    if (character.size() == 1) return first < 0x20 || first == 0x7F;
    return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

std::string without_middle(const std::string& message) {
    if (message.size() <= max_message_bytes) return message;
    constexpr std::size_t kept = max_message_bytes / 2 - 64;
    return fmt::format("{}\n... ({} bytes in all) ...\n{}", front_of(message, kept), message.size(),
                       back_of(message, kept));
}

}  // namespace

std::string with_short_words(std::string_view message) {
    if (message.size() <= max_shown_bytes) return std::string(message);
    std::string text;
    for (std::size_t at = 0; at < message.size();) {
        const std::size_t end = end_of_value(message, at, at == 0 ? ' ' : message[at - 1]);
        text += shortened(message.substr(at, end - at));
        const std::size_t next = std::min(message.find_first_not_of(white_space, end), message.size());
        text += message.substr(end, next - end);
        at = next;
    }
    return without_middle(text);
}

std::string escape_controls(std::string_view text, bool keep_newlines) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
        const bool kept_newline = keep_newlines && character == "\n";
        if (length > 0 && (kept_newline || !is_control(character))) {
            out += character;
        } else {
            for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
        text.remove_prefix(character.size());
    }
    return out;
}

std::string escape_message(std::string_view message) {
    constexpr std::string_view indent = "  ";
    std::string lines = escape_controls(message, true);
    for (std::size_t at = lines.find('\n'); at != std::string::npos; at = lines.find('\n', at + 1))
        lines.insert(at + 1, indent);
    return lines;
}

}  // namespace hone::runtime

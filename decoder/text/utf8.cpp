#include "decoder/text/utf8.h"

#include <cstring>
#include <utility>

namespace hone::decoder {
namespace {

/// What may follow a first byte: how many bytes, and the range of the next one. All others are 80..BF.
struct Followers {
    std::size_t count = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
};

/// No overlong forms, no surrogates, nothing above U+10FFFF. A count of 0: no character begins so.
Followers followers_of(unsigned char first) {
    if (first >= 0xC2 && first <= 0xDF) return {1};
    if (first == 0xE0) return {2, 0xA0, 0xBF};
    if (first == 0xED) return {2, 0x80, 0x9F};
    if (first >= 0xE1 && first <= 0xEF) return {2};
    if (first == 0xF0) return {3, 0x90, 0xBF};
    if (first == 0xF4) return {3, 0x80, 0x8F};
    if (first >= 0xF1 && first <= 0xF3) return {3};
    return {};
}

/// Bytes of ASCII at the beginning, eight at a time.
std::size_t ascii_length(std::string_view text) {
    std::size_t length = 0;
    for (; length + 8 <= text.size(); length += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data() + length, 8);
        if ((word & 0x8080808080808080) != 0) break;
    }
    while (length < text.size() && static_cast<unsigned char>(text[length]) < 0x80) ++length;
    return length;
}

}  // namespace

Sequence first_sequence(std::string_view text) {
    const auto first = static_cast<unsigned char>(text[0]);
    if (first < 0x80) return {1, SequenceState::whole};
    const Followers followers = followers_of(first);
    if (followers.count == 0) return {1, SequenceState::broken};
    for (std::size_t i = 1; i <= followers.count; ++i) {
        if (i == text.size()) return {i, SequenceState::cut};
        const auto byte = static_cast<unsigned char>(text[i]);
        const bool fits = i == 1 ? byte >= followers.low && byte <= followers.high : (byte & 0xC0) == 0x80;
        if (!fits) return {i, SequenceState::broken};
    }
    return {followers.count + 1, SequenceState::whole};
}

bool is_ascii(std::string_view text) { return ascii_length(text) == text.size(); }

bool is_utf8(std::string_view text) {
    while (true) {
        text.remove_prefix(ascii_length(text));
        if (text.empty()) return true;
        const Sequence sequence = first_sequence(text);
        if (sequence.state != SequenceState::whole) return false;
        text.remove_prefix(sequence.length);
    }
}

std::string lossy_utf8(std::string_view text) {
    Utf8Stream stream;
    std::string out = stream.push(text);
    return out += stream.finish();
}

std::size_t count_characters(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

char32_t first_code_point(std::string_view text) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t length = first_length(text);
    if (length == 1) return first;
    char32_t code_point = first & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i)
        code_point = code_point << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
    return code_point;
}

std::size_t first_length(std::string_view text) {
    const auto first = static_cast<unsigned char>(text[0]);
    return first < 0x80 ? 1 : followers_of(first).count + 1;
}

void append_code_point(std::string& text, char32_t code_point) {
    const auto append = [&](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (code_point < 0x80) return append(code_point);
    if (code_point < 0x800) {
        append(0xC0 | code_point >> 6);
    } else if (code_point < 0x10000) {
        append(0xE0 | code_point >> 12);
        append(0x80 | (code_point >> 6 & 0x3F));
    } else {
        append(0xF0 | code_point >> 18);
        append(0x80 | (code_point >> 12 & 0x3F));
        append(0x80 | (code_point >> 6 & 0x3F));
    }
    append(0x80 | (code_point & 0x3F));
}

std::string Utf8Stream::push(std::string_view bytes) {
    const std::string all = std::exchange(waiting_, {}).append(bytes);
    std::string out;
    for (std::string_view rest = all; !rest.empty();) {
        const Sequence sequence = first_sequence(rest);
        if (sequence.state == SequenceState::cut) {
            waiting_ = rest;
            break;
        }
        out +=
            sequence.state == SequenceState::whole ? rest.substr(0, sequence.length) : replacement_character;
        rest.remove_prefix(sequence.length);
    }
    return out;
}

std::string Utf8Stream::finish() {
    return std::string(std::exchange(waiting_, {}).empty() ? "" : replacement_character);
}

}  // namespace hone::decoder

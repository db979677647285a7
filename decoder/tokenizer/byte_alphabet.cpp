#include "decoder/tokenizer/byte_alphabet.h"

#include <cstddef>

#include "decoder/text/utf8.h"

namespace hone::decoder {
namespace {

constexpr std::size_t alphabet_end = 0x144;  ///< one above the last of the 256 characters

bool is_visible(std::size_t byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

std::array<char32_t, 256> make_code_points() {
    std::array<char32_t, 256> code_points{};
    char32_t next = 0x100;
    for (std::size_t byte = 0; byte < 256; ++byte)
        code_points[byte] = is_visible(byte) ? static_cast<char32_t>(byte) : next++;
    return code_points;
}

std::array<std::string, 256> make_characters() {
    std::array<std::string, 256> characters;
    const std::array<char32_t, 256> code_points = make_code_points();
    for (std::size_t byte = 0; byte < 256; ++byte) append_code_point(characters[byte], code_points[byte]);
    return characters;
}

/// By code point: the byte, or -1.
std::array<int, alphabet_end> make_bytes() {
    std::array<int, alphabet_end> bytes{};
    bytes.fill(-1);
    const std::array<char32_t, 256> code_points = make_code_points();
    for (std::size_t byte = 0; byte < 256; ++byte) bytes[code_points[byte]] = static_cast<int>(byte);
    return bytes;
}

}  // namespace

const std::array<std::string, 256>& byte_characters() {
    static const std::array<std::string, 256> characters = make_characters();
    return characters;
}

std::string as_byte_characters(std::string_view bytes) {
    std::string out;
    for (const char byte : bytes) out += byte_characters()[static_cast<unsigned char>(byte)];
    return out;
}

std::optional<std::string> bytes_of_characters(std::string_view text) {
    static const std::array<int, alphabet_end> bytes = make_bytes();
    std::string out;
    for (; !text.empty(); text.remove_prefix(first_length(text))) {
        const char32_t code_point = first_code_point(text);
        if (code_point >= alphabet_end || bytes[code_point] < 0) return std::nullopt;
        out += static_cast<char>(static_cast<unsigned char>(bytes[code_point]));
    }
    return out;
}

}  // namespace hone::decoder

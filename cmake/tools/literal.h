// Texts of files, and the same as string literals of C++, for build-time tools.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

inline std::string read_text(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path.string() + ": cannot be read");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_text(const std::filesystem::path& path, std::string_view text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << text;
    if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

/// One literal a line of text: readable in the generated file, and no literal gets long.
inline std::string as_literal(std::string_view text) {
    std::string literal = "\"";
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c == '\n') {
            literal += i + 1 == text.size() ? "\\n" : "\\n\"\n    \"";
        } else if (c == '"' || c == '\\') {
            literal += '\\';
            literal += static_cast<char>(c);
        } else if (c < 0x20 || c >= 0x7f || c == '?') {  // '?': no trigraphs
            for (const int shift : {6, 3, 0}) {
                if (shift == 6) literal += '\\';
                literal += static_cast<char>('0' + ((c >> shift) & 7));
            }
        } else {
            literal += static_cast<char>(c);
        }
    }
    return literal + '"';
}

// C++ text as far as a content hash is concerned: without comments and white space. Used by the embed tool
// and by the include-direction test.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace detail {

/// End of the string or character literal that starts at `begin`: one past its closing quote, or the end of
/// the line.
inline std::size_t literal_end(std::string_view text, std::size_t begin) {
    std::size_t i = begin + 1;
    while (i < text.size() && text[i] != text[begin] && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
    return i < text.size() ? i + 1 : text.size();
}

/// End of the raw string whose opening quote (after R) is at `begin`.
inline std::size_t raw_string_end(std::string_view text, std::size_t begin) {
    const std::size_t open = text.find('(', begin);
    if (open == std::string_view::npos) return text.size();
    const std::string close = ")" + std::string(text.substr(begin + 1, open - begin - 1)) + "\"";
    const std::size_t end = text.find(close, open);
    return end == std::string_view::npos ? text.size() : end + close.size();
}

/// Whether the apostrophe at `at` stands inside a number (1'000, 0xff'ff).
inline bool is_digit_separator(std::string_view text, std::size_t at) {
    const auto continues = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '\''; };
    std::size_t begin = at;
    while (begin > 0 && continues(static_cast<unsigned char>(text[begin - 1]))) --begin;
    return std::isdigit(static_cast<unsigned char>(text[begin])) != 0;
}

}  // namespace detail

enum class Piece { code, comment, literal, raw_string };

/// Splits C++ text: calls `visit(Piece, std::string_view)` for every part, in order. A // comment ends before
/// its newline.
template <typename Visitor>
void for_each_piece(std::string_view text, Visitor&& visit) {
    std::size_t code_begin = 0;
    for (std::size_t i = 0; i < text.size();) {
        const std::string_view rest = text.substr(i);
        Piece piece = Piece::literal;
        std::size_t end = 0;
        if (rest.starts_with("//")) {
            piece = Piece::comment;
            end = std::min(text.find('\n', i), text.size());
        } else if (rest.starts_with("/*")) {
            piece = Piece::comment;
            const std::size_t close = text.find("*/", i + 2);
            end = close == std::string_view::npos ? text.size() : close + 2;
        } else if (text[i] == '"' && i > 0 && text[i - 1] == 'R') {
            piece = Piece::raw_string;
            end = detail::raw_string_end(text, i);
        } else if (text[i] == '"' || (text[i] == '\'' && !detail::is_digit_separator(text, i))) {
            end = detail::literal_end(text, i);
        } else {
            ++i;
            continue;
        }
        if (i > code_begin) visit(Piece::code, text.substr(code_begin, i - code_begin));
        visit(piece, text.substr(i, end - i));
        i = code_begin = end;
    }
    if (code_begin < text.size()) visit(Piece::code, text.substr(code_begin));
}

/// Without comments and without white space outside of literals: formatting a file again does not change its
/// hash.
inline std::string normalized(std::string_view text) {
    std::string result;
    for_each_piece(text, [&](Piece piece, std::string_view part) {
        if (piece == Piece::comment) return;
        for (const char c : part) {
            if (piece != Piece::code || std::isspace(static_cast<unsigned char>(c)) == 0) result += c;
        }
    });
    return result;
}

struct Include {
    std::string path;
    bool quoted = false;
    int line = 0;
};

/// Every #include of the text that is not in a comment, in order.
inline std::vector<Include> includes(std::string_view text) {
    std::vector<Include> found;
    int line_number = 1;
    std::string code;
    for_each_piece(text, [&](Piece piece, std::string_view part) {
        if (piece == Piece::code || piece == Piece::literal) {
            code += part;
        } else {
            code += ' ';
            code.append(static_cast<std::size_t>(std::ranges::count(part, '\n')),
                        '\n');  // keeps the line numbers
        }
    });
    const auto skip_blanks = [](std::string_view& line) {
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    };
    for (std::string_view rest = code; !rest.empty(); ++line_number) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        skip_blanks(line);
        if (!line.starts_with('#')) continue;
        line.remove_prefix(1);
        skip_blanks(line);
        if (!line.starts_with("include")) continue;
        line.remove_prefix(std::string_view("include").size());
        skip_blanks(line);
        if (line.empty() || (line[0] != '"' && line[0] != '<')) continue;
        const std::size_t end = line.find(line[0] == '<' ? '>' : '"', 1);
        if (end == std::string_view::npos) continue;
        found.push_back({std::string(line.substr(1, end - 1)), line[0] == '"', line_number});
    }
    return found;
}

inline std::vector<std::string> quoted_includes(std::string_view text) {
    std::vector<std::string> paths;
    for (Include& include : includes(text)) {
        if (include.quoted) paths.push_back(std::move(include.path));
    }
    return paths;
}

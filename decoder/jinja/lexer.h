// A template's text as tokens, with the white space around tags as transformers sets Jinja up: the line end
// behind a statement is no text (trim_blocks), nor are the spaces in front of one that begins its line
// (lstrip_blocks).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone::decoder::jinja {

enum class TokenKind : std::uint8_t {
    data,  ///< text between tags
    begin_statement,
    end_statement,
    begin_output,
    end_output,
    name,
    text,  ///< a literal, with its escapes resolved
    integer,
    real,
    symbol,
    end,
};

struct Token {
    TokenKind kind{};
    std::string text{};
    int line = 0;
};

/// The last one is of the kind `end`. `source` is well-formed UTF-8. Throws Fault.
[[nodiscard]] std::vector<Token> read_tokens(std::string_view source);

}  // namespace hone::decoder::jinja

// Classes of characters by Unicode's properties.
#pragma once

namespace hone::decoder {

/// White_Space, as `\s` of regular expressions.
[[nodiscard]] bool is_white_space(char32_t code_point);
/// Alphabetic, marks, decimal digits, connecting punctuation and join controls, as `\w` of Rust's regular
/// expressions, by which added tokens of `single_word` are found.
[[nodiscard]] bool is_word_character(char32_t code_point);

}  // namespace hone::decoder

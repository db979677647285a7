// Small text helpers of this layer: key=value lists, numbers, and the nearest known name for messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {

struct KeyValue {
    std::string_view key;
    std::string_view value;
};

/// "a=1 b=two" -> pairs, blanks between them. nullopt and `error` when a word has no '=' or an empty side.
[[nodiscard]] std::optional<std::vector<KeyValue>> parse_key_values(std::string_view text,
                                                                    std::string* error);

/// Decimal integer with nothing around it; nullopt otherwise, also when out of range.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

/// First blank-separated word and the rest behind it.
[[nodiscard]] std::pair<std::string_view, std::string_view> split_first_word(std::string_view text);

[[nodiscard]] std::string join(std::span<const std::string_view> items, std::string_view separator = ", ");

/// ASCII letters in lower case, all else as it is.
[[nodiscard]] std::string lower_case(std::string_view text);

/// Length of the well-formed UTF-8 sequence at `text[0]`, 0 when there is none: overlong forms and surrogates
/// are refused (RFC 3629).
[[nodiscard]] std::size_t utf8_length(std::string_view text);
/// Whether a byte is inside of a sequence, not its first.
[[nodiscard]] constexpr bool is_utf8_continuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// The first 160 characters of what came from outside, for a message; '?' for what does not print.
[[nodiscard]] std::string printable(std::string_view text);

/// The candidate of `names` with the smallest edit distance, case aside, for "did you mean" in messages; empty
/// when none is near.
[[nodiscard]] std::string nearest_name(std::string_view text, std::span<const std::string_view> names);

/// " (did you mean 'x'?)" or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view text, std::span<const std::string_view> names);

/// Sets `*error` when there is one to set, and returns nullopt for `return fail(error, ...)`.
inline std::nullopt_t fail(std::string* error, std::string message) {
    if (error != nullptr) *error = std::move(message);
    return std::nullopt;
}

}  // namespace hone

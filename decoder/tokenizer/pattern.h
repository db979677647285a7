// What Replace and Split look for: a text, or a regular expression.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "decoder/text/regex.h"
#include "decoder/tokenizer/json_place.h"

namespace hone::decoder {

/// Bytes that a text may grow to, however many replacements a file asks for.
[[nodiscard]] std::size_t max_grown_bytes(std::size_t bytes);
/// Throws DecoderError where they are more than `most`.
void require_room(std::size_t bytes, std::size_t most);

class Pattern {
  public:
    /// Not empty.
    [[nodiscard]] static Pattern of_text(std::string text) { return Pattern(std::move(text)); }
    [[nodiscard]] static Pattern of_regex(std::string_view regex) { return Pattern(Regex(regex)); }
    /// {"String": ...} or {"Regex": ...}. Throws DecoderError.
    [[nodiscard]] static Pattern read(const JsonPlace& json);

    /// All matches from left to right, in place of what `matches` had. `text` is well-formed UTF-8.
    void find_all(std::string_view text, std::vector<Span>& matches) const;
    /// Throws DecoderError when the text would become longer than `max_bytes`.
    [[nodiscard]] std::string replaced(std::string_view text, std::string_view content,
                                       std::size_t max_bytes) const;
    /// Whether it finds one character wherever that stands, so that text may come in pieces.
    [[nodiscard]] bool is_one_character() const;

  private:
    explicit Pattern(std::variant<std::string, Regex> pattern) : pattern_(std::move(pattern)) {}

    std::variant<std::string, Regex> pattern_;
};

}  // namespace hone::decoder

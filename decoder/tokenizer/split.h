// What becomes of matches and the text between them when text is cut at a pattern.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "decoder/text/regex.h"
#include "decoder/tokenizer/json_place.h"

namespace hone::decoder {

enum class SplitBehavior : std::uint8_t {
    removed,               ///< what lies between matches
    isolated,              ///< matches, and what lies between
    merged_with_previous,  ///< a match ends the piece before it
    merged_with_next,      ///< a match begins the piece behind it
    contiguous,            ///< as isolated, but matches side by side are one piece
};
/// "MergedWithNext". Throws DecoderError.
[[nodiscard]] SplitBehavior read_split_behavior(const JsonPlace& json);

/// Pieces of a text that ends at `end`, from left to right, none of them empty. `matches` are ordered and do
/// not overlap; `invert`: what lies between counts as a match, and the other way round.
[[nodiscard]] std::vector<Span> split(std::size_t end, const std::vector<Span>& matches,
                                      SplitBehavior behavior, bool invert);

}  // namespace hone::decoder

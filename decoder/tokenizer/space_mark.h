// The character that stands for a space in vocabularies of sentencepiece's kind.
#pragma once

#include <string_view>

namespace hone::decoder {

/// U+2581, a low block.
inline constexpr std::string_view space_mark = "\xE2\x96\x81";

}  // namespace hone::decoder

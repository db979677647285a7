// Unicode's normal forms (UAX #15), by utf8proc. Takes time in proportion to the text, whatever it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hone::decoder {

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };

/// `text` is well-formed UTF-8.
[[nodiscard]] std::string normalized(std::string_view text, NormalForm form);

}  // namespace hone::decoder

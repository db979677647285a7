// The formats of quantized weights, which packing them and multiplying with them have in common.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hone {

/// How a weight is stored: value = (code - zero point) * scale. docs/formats.md says where each bit stands.
/// The numbers never change their meaning.
enum class QuantFormat : std::uint8_t {
    w4a16,  ///< codes 0 to 15 in blocks of 64 x 64; zero points 0 to 15, or 8 for all
    w8a16,  ///< codes -127 to 127 in blocks of 64 x 64
    w8a8,   ///< codes -127 to 127, [out, in]; x is multiplied as such codes, too
    fp8,  ///< codes are numbers of 8 bits (E4M3: 4 of exponent, 3 of mantissa, no infinity), [out, in]; so is
          ///< x
};

/// By their numbers.
inline constexpr std::array<std::string_view, 4> quant_format_names{"w4a16", "w8a16", "w8a8", "fp8"};
/// "w4a16". Throws std::invalid_argument for a number that is no format.
[[nodiscard]] std::string_view name(QuantFormat format);

}  // namespace hone

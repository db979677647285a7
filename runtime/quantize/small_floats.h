// Numbers of 8 and 16 bits to and from float, bit by bit. No function branches on the value, so that loops
// over them become vector code, and no result depends on whether the thread takes subnormal floats for zero.
#pragma once

#include <bit>
#include <cstdint>

namespace hone::runtime {

/// A float format of `mantissa_bits` behind the point and an exponent of `exponent_bits`.
template <int exponent_bits, int mantissa_bits>
struct SmallFloat {
    static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
    static constexpr int dropped_bits = 23 - mantissa_bits;
    static constexpr std::uint32_t sign_bit = 1U << (exponent_bits + mantissa_bits);
    /// Added to it, a float below 2^(1 - bias) loses all bits that no subnormal of this format has.
    static constexpr std::uint32_t rounder = static_cast<std::uint32_t>(127 + 24 - bias - mantissa_bits)
                                             << 23;

    /// Nearest number, ties to even. The exponent must be one that the format has.
    static constexpr std::uint32_t encode(float value) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
        const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
        const std::uint32_t even = (magnitude >> dropped_bits) & 1U;
        const std::uint32_t rounded = (magnitude + (1U << (dropped_bits - 1)) - 1 + even) >> dropped_bits;
        const std::uint32_t normal = rounded - (static_cast<std::uint32_t>(127 - bias) << mantissa_bits);
        const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(rounder);
        const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(sum) - rounder;
        const bool is_normal = magnitude >= static_cast<std::uint32_t>(128 - bias) << 23;
        return (is_normal ? normal : subnormal) | (bits >> 31) * sign_bit;
    }

    /// Exact. Exponents of ones only are those of numbers.
    static constexpr float decode(std::uint32_t code) {
        const std::uint32_t shifted = (code & (sign_bit - 1)) << dropped_bits;
        constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(128 - bias) << 23;
        const std::uint32_t normal = shifted + (static_cast<std::uint32_t>(127 - bias) << 23);
        // As if its exponent were that of the smallest normal number, less that number.
        const float subnormal =
            std::bit_cast<float>(shifted + smallest_normal) - std::bit_cast<float>(smallest_normal);
        const bool is_normal = shifted >= 1U << 23;
        const std::uint32_t magnitude = is_normal ? normal : std::bit_cast<std::uint32_t>(subnormal);
        return std::bit_cast<float>(magnitude | ((code & sign_bit) != 0 ? 0x80000000U : 0U));
    }
};

/// fp16.
using Half = SmallFloat<5, 10>;
using E4m3 = SmallFloat<4, 3>;

inline constexpr float largest_e4m3 = 448.0F;

/// Exact, infinities and NaN included.
constexpr float decode_half(std::uint16_t bits) {
    const float number = Half::decode(bits);
    const std::uint32_t beyond = 0x7F800000U | (bits & 0x3FFU) << 13 | (bits & 0x8000U) << 16;
    return (bits & 0x7C00U) == 0x7C00U ? std::bit_cast<float>(beyond) : number;
}

/// Nearest number, ties to even, for finite numbers.
constexpr std::uint16_t encode_bf16(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}
constexpr float decode_bf16(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Saturates; for numbers, not NaN.
constexpr std::uint8_t encode_e4m3_number(float value) {
    const float above = value < -largest_e4m3 ? -largest_e4m3 : value;
    return static_cast<std::uint8_t>(E4m3::encode(above > largest_e4m3 ? largest_e4m3 : above));
}

}  // namespace hone::runtime

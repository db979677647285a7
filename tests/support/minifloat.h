// A second, slow way to the small float formats: by scaling and rounding in double, not by bits. Oracle for
// device code.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hone::test {

struct MinifloatFormat {
    int mantissa_bits = 0;
    int bias = 0;
    double largest = 0;  ///< finite values beyond it become infinite, or saturate
    bool saturates = false;
};

inline constexpr MinifloatFormat fp16_format{10, 15, 65504.0, false};
inline constexpr MinifloatFormat bf16_format{7, 127, 3.3895313892515355e38, false};
inline constexpr MinifloatFormat fp8_format{3, 7, 448.0, true};

/// The nearest value that the format can hold; ties to even; subnormals kept.
inline double rounded(double value, const MinifloatFormat& format) {
    if (value == 0 || std::isnan(value)) return value;
    const int smallest_exponent = 1 - format.bias;
    const int exponent = std::max(std::isinf(value) ? 1000 : std::ilogb(value), smallest_exponent);
    const double unit = std::ldexp(1.0, exponent - format.mantissa_bits);
    const double result = std::nearbyint(value / unit) * unit;
    if (std::abs(result) <= format.largest) return result;
    return std::copysign(format.saturates ? format.largest : std::numeric_limits<double>::infinity(), value);
}

/// Bits of a value that the format holds exactly.
inline std::uint32_t encoded(double value, const MinifloatFormat& format) {
    const int exponent_bits = format.saturates ? 4 : format.mantissa_bits == 10 ? 5 : 8;
    const std::uint32_t sign = std::signbit(value) ? 1U << (exponent_bits + format.mantissa_bits) : 0U;
    const double magnitude = std::abs(value);
    if (magnitude == 0) return sign;
    const std::uint32_t top = (1U << exponent_bits) - 1;
    if (std::isinf(magnitude)) return sign | (top << format.mantissa_bits);
    const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
    const double units = magnitude / std::ldexp(1.0, exponent - format.mantissa_bits);
    const auto mantissa = static_cast<std::uint32_t>(units);
    // A normal number's units hold the hidden one, which adds one to the exponent field below.
    return sign |
           ((static_cast<std::uint32_t>(exponent + format.bias - 1) << format.mantissa_bits) + mantissa);
}

inline double decoded(std::uint32_t bits, const MinifloatFormat& format) {
    const int exponent_bits = format.saturates ? 4 : format.mantissa_bits == 10 ? 5 : 8;
    const std::uint32_t mantissa = bits & ((1U << format.mantissa_bits) - 1);
    const auto exponent = static_cast<int>((bits >> format.mantissa_bits) & ((1U << exponent_bits) - 1));
    const bool negative = ((bits >> (exponent_bits + format.mantissa_bits)) & 1U) != 0;
    double value = 0;
    if (!format.saturates && exponent == (1 << exponent_bits) - 1) {
        value = mantissa == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
    } else if (exponent == 0) {
        value = std::ldexp(mantissa, 1 - format.bias - format.mantissa_bits);
    } else {
        value = std::ldexp(mantissa + (1U << format.mantissa_bits),
                           exponent - format.bias - format.mantissa_bits);
    }
    return negative ? -value : value;
}

}  // namespace hone::test

// Integer codes as bf16 numbers without a bit above them, in pairs. The subnormal numbers and the first
// binade of the normal ones are evenly spaced: they lie on one line, and a half whose upper 8 bits are 0 is
// the number (its lower 8 bits) * 2^-133. One fused multiply-add brings such a number to size, times a scale
// if need be, and takes away what the code is too large by: an instruction less than codes above a base take
// (int_bits.cuh), or two.
//
// No bf16 reaches from 2^-133 to 1. So values stay smaller by 2^shift, which whoever adds up their products
// makes good. They are exact without a scale, and rounded once with one from 2^-86 to 2^35.
//
// Plain C++ that kernels and the host's tests include alike.
#pragma once

namespace hone::bf16_line {

inline constexpr int shift = 40;

/// 2^exponent twice, of a normal number.
constexpr unsigned power_of_two(int exponent) {
    return static_cast<unsigned>(exponent + 127) << 7 | static_cast<unsigned>(exponent + 127) << 23;
}
constexpr unsigned negative(unsigned pair) { return pair | 0x80008000u; }

/// Codes 0 to 15 in bits 0 to 3 of each half, or in bits 4 to 7; and the factors that make values of them.
constexpr unsigned low_nibbles(unsigned bits) { return bits & 0x000f000fu; }
constexpr unsigned high_nibbles(unsigned bits) { return bits & 0x00f000f0u; }
inline constexpr unsigned low_factor = power_of_two(133 - shift);
inline constexpr unsigned high_factor = power_of_two(129 - shift);
/// What is added to a code without a zero point: -8.
inline constexpr unsigned middle_offset = negative(power_of_two(3 - shift));
/// What is added to a code with the zero point z: -z, as this product with 128 + z, and this added.
inline constexpr unsigned zero_factor = negative(power_of_two(-shift));
inline constexpr unsigned zero_offset = power_of_two(7 - shift);

/// Two's complement, a byte in the low half of each half: code + 128, whose factor is low_factor; and what is
/// added, -128.
constexpr unsigned unsigned_bytes(unsigned bytes) {
    constexpr unsigned mask = 0x00ff00ffu;
    constexpr unsigned middle = 0x00800080u;
#ifdef __CUDA_ARCH__
    // With two constants ptxas makes two instructions of it, unless it is told.
    unsigned result = 0;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(bytes), "r"(mask), "r"(middle));
    return result;
#else
    return (bytes & mask) ^ middle;
#endif
}
inline constexpr unsigned byte_offset = negative(power_of_two(7 - shift));

}  // namespace hone::bf16_line

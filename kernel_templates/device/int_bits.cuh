// Integer codes as the bits of 16-bit numbers, in pairs: a code put behind the leading one of a power of two
// whose last place is 1 gives that power plus the code. Plain C++ that kernels (widen_int.cuh) and the host's
// tests include alike.
#pragma once

namespace hone::int_bits {

/// 128.0 twice in bf16 (7 bits behind the point), 1024.0 in fp16 (10 bits).
inline constexpr unsigned base_bf16 = 0x43004300u;
inline constexpr unsigned base_fp16 = 0x64006400u;

/// (bits & mask) | base. With two constants ptxas makes two instructions of it, unless it is told.
constexpr unsigned masked_above(unsigned bits, unsigned mask, unsigned base) {
#ifdef __CUDA_ARCH__
    unsigned result = 0;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(bits), "r"(mask), "r"(base));
    return result;
#else
    return (bits & mask) | base;
#endif
}

/// Codes 0 to 15 in the low bits of each half: base + code.
constexpr unsigned above_base(unsigned codes, unsigned base) {
    return masked_above(codes, 0x000f000fu, base);
}

/// Two's complement, a byte in the low half of each half. fp16: 1152 + code, by way of code + 128 without a
/// sign; and 1152.0 twice.
constexpr unsigned signed_fp16(unsigned bytes) { return (bytes & 0x00ff00ffu) ^ 0x64806480u; }
inline constexpr unsigned signed_base_fp16 = 0x64806480u;

}  // namespace hone::int_bits

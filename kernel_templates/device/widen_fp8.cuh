// Codes of fp8 (E4M3) as operands of the tensor cores' 16-bit products. Exact: every finite code, subnormals
// too, is a number of either type. What the code for NaN becomes is not said.
#pragma once

#include "device/types.cuh"

namespace hone {

__device__ inline uint32 multiply_pair(fp16, uint32 a, uint32 b) {
    uint32 result;
    asm("mul.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    return result;
}
#if __CUDA_ARCH__ >= 800
__device__ inline uint32 multiply_pair(bf16, uint32 a, uint32 b) {
    uint32 result;  // minus zero keeps the sign of a zero
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(0x80008000u));
    return result;
}
#endif

/// How a code in the upper byte of a half becomes a number of T: its exponent and mantissa move down by
/// `shift` bits to where `mask` says, and the bias is put right by a power of two: 2^8 for fp16, 2^120 for
/// bf16. `converts`: sm_89 has an instruction.
template <class T>
struct Fp8In;
template <>
struct Fp8In<fp16> {
    static constexpr bool converts = true;
    static constexpr int shift = 1;
    static constexpr uint32 mask = 0x3f803f80u;
    static constexpr uint32 factors = 0x5c005c00u;
};
template <>
struct Fp8In<bf16> {
    static constexpr bool converts = false;
    static constexpr int shift = 4;
    static constexpr uint32 mask = 0x07f007f0u;
    static constexpr uint32 factors = 0x7b807b80u;
};

/// Codes number `low` and `high`, 0 to 3, of a word as a pair of T.
template <class T, int low, int high>
__device__ inline uint32 widen_pair(uint32 codes) {
#if __CUDA_ARCH__ >= 890
    if constexpr (Fp8In<T>::converts) {
        const uint16 pair =
            static_cast<uint16>(low == 0 && high == 1 ? codes : __byte_perm(codes, 0, high << 4 | low));
        uint32 result;
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(result) : "h"(pair));
        return result;
    }
#endif
    const uint32 bytes = __byte_perm(codes, 0, 0x0404 | high << 12 | low << 4);
    const uint32 bits = (bytes & 0x80008000u) | (bytes >> Fp8In<T>::shift & Fp8In<T>::mask);
    return multiply_pair(T{}, bits, Fp8In<T>::factors);
}

}  // namespace hone

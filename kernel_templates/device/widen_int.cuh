// Codes of 4 and 8 bits as operands of the tensor cores' 16-bit products, in pairs (int_bits.cuh says how).
// Exact: every code is a number of either type.
#pragma once

#include "device/int_bits.cuh"
#include "device/types.cuh"

namespace hone {

__device__ inline uint32 subtract_pair(fp16, uint32 a, uint32 b) {
    uint32 result;
    asm("sub.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    return result;
}
#if __CUDA_ARCH__ >= 800
__device__ inline uint32 subtract_pair(bf16, uint32 a, uint32 b) {
    uint32 result;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(b), "r"(0xbf80bf80u), "r"(a));
    return result;
}
#endif

/// T's power of two, in which codes stand. A zero point in the low byte of a half becomes what widen_int4
/// subtracts where the high byte is that of the base.
template <class T>
inline constexpr uint32 int_base = int_bits::base_fp16;
template <>
inline constexpr uint32 int_base<bf16> = int_bits::base_bf16;

/// Codes 0 to 15 in the low bits of each half of a word, less those of `zeros`, each int_base + zero point.
template <class T>
__device__ inline uint32 widen_int4(uint32 codes, uint32 zeros) {
    return subtract_pair(T{}, int_bits::above_base(codes, int_base<T>), zeros);
}

/// Two's complement in the low byte of each half of a word; of bf16 they are made another way
/// (device/bf16_line.cuh).
__device__ inline uint32 widen_int8(uint32 codes) {
    return subtract_pair(fp16{}, int_bits::signed_fp16(codes), int_bits::signed_base_fp16);
}

}  // namespace hone

// Warp matrix products of 8-bit codes (mma.sync): D[16, 8] += A[16, 32] * B[32, 8]. With g = lane / 4 and
// t = lane % 4, each word holding four neighbours along k:
//   a0 (row g, k 4t), a1 (row g + 8, k 4t), a2 (row g, k 4t + 16), a3 (row g + 8, k 4t + 16)
//   b0 (k 4t, column g), b1 (k 4t + 16, column g)
// and sums as MmaSums': int32 of int8, float32 of fp8. Where a chip has no such instruction the same comes
// from smaller ones (int8, sm_75), or from 16-bit products of widened codes, which are exact (fp8, before
// sm_89). Which column a k is does not matter as long as both operands agree.
#pragma once

#include "device/mma.cuh"
#include "device/widen_fp8.cuh"

namespace hone {

/// As MmaSums.
struct IntMmaSums {
    int values[4];
};

#if __CUDA_ARCH__ < 800
/// D[8, 8] += A[8, 16] * B[16, 8]: row g, columns 2t and 2t + 1.
__device__ inline void multiply_8_rows(int& d0, int& d1, uint32 a, uint32 b) {
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+r"(d0), "+r"(d1)
                 : "r"(a), "r"(b));
}
#endif

__device__ inline void multiply_32(IntMmaSums& sums, uint32 a0, uint32 a1, uint32 a2, uint32 a3, uint32 b0,
                                   uint32 b1) {
    int(&d)[4] = sums.values;
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    multiply_8_rows(d[0], d[1], a0, b0);
    multiply_8_rows(d[2], d[3], a1, b0);
    multiply_8_rows(d[0], d[1], a2, b1);
    multiply_8_rows(d[2], d[3], a3, b1);
#endif
}

#if __CUDA_ARCH__ < 890
/// Half of the product: words of one k.
__device__ inline void multiply_widened(MmaSums& sums, uint32 a_low, uint32 a_high, uint32 b) {
    multiply_16<fp16>(sums, widen_pair<fp16, 0, 1>(a_low), widen_pair<fp16, 0, 1>(a_high),
                      widen_pair<fp16, 2, 3>(a_low), widen_pair<fp16, 2, 3>(a_high),
                      widen_pair<fp16, 0, 1>(b), widen_pair<fp16, 2, 3>(b));
}
#endif

/// Codes of fp8.
__device__ inline void multiply_32(MmaSums& sums, uint32 a0, uint32 a1, uint32 a2, uint32 a3, uint32 b0,
                                   uint32 b1) {
#if __CUDA_ARCH__ >= 890
    float(&d)[4] = sums.values;
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    multiply_widened(sums, a0, a1, b0);
    multiply_widened(sums, a2, a3, b1);
#endif
}

}  // namespace hone

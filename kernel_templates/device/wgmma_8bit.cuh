// Warpgroup matrix products of 8-bit operands (wgmma, sm_90a): D[64, n] += A[64, 32] * B[n, 32]^T, both in
// shared memory, accumulators in registers: int8 with exact 32-bit integer sums, fp8 (E4M3) with float32 sums
// of which the tensor cores keep some 13 bits behind the largest product's leading one while they add. Panels
// are those of wgmma.cuh, their rows of 128 bytes now 128 elements: 32 further columns are 32 bytes, as there
// 16 are. Accumulator map, fences and waits as there, too.
#pragma once

#include "device/wgmma.cuh"

namespace hone {

/// Elements in one row of a panel, and columns of one instruction.
inline constexpr int panel_codes = 128;
inline constexpr int wgmma_codes = 32;

template <int count>
__device__ inline void fence_accumulators(int (&d)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) asm volatile("" : "+r"(d[i])::"memory");
}

/// One instruction; `accumulate` 0 sets D = A * B^T. T: fp8, n any multiple of 8 up to 256; int8, n 8, 24 or
/// a multiple of 16.
template <class T, int n>
struct WgmmaCodes;

#define HONE_WGMMA_CODES(T, D, n, block, a, b, p, types, signs)                                       \
    template <>                                                                                       \
    struct WgmmaCodes<T, n> {                                                                         \
        __device__ static void multiply(D (&d)[n / 2], uint64 left, uint64 right, int accumulate) {   \
            asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" #p                    \
                         ", 0;\n"                                                                     \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k32." types " {" HONE_WGMMA_R##block \
                         "}, %" #a ", %" #b ", accumulate" signs ";\n}"                               \
                         : HONE_WGMMA_D##block(d)                                                     \
                         : "l"(left), "l"(right), "r"(accumulate));                                   \
        }                                                                                             \
    };

#define HONE_WGMMA_FP8(n, block, a, b, p) \
    HONE_WGMMA_CODES(fp8, float, n, block, a, b, p, "f32.e4m3.e4m3", ", 1, 1")
HONE_WGMMA_FP8(8, 0, 4, 5, 6)
HONE_WGMMA_FP8(16, 1, 8, 9, 10)
HONE_WGMMA_FP8(24, 2, 12, 13, 14)
HONE_WGMMA_FP8(32, 3, 16, 17, 18)
HONE_WGMMA_FP8(40, 4, 20, 21, 22)
HONE_WGMMA_FP8(48, 5, 24, 25, 26)
HONE_WGMMA_FP8(56, 6, 28, 29, 30)
HONE_WGMMA_FP8(64, 7, 32, 33, 34)
HONE_WGMMA_FP8(72, 8, 36, 37, 38)
HONE_WGMMA_FP8(80, 9, 40, 41, 42)
HONE_WGMMA_FP8(88, 10, 44, 45, 46)
HONE_WGMMA_FP8(96, 11, 48, 49, 50)
HONE_WGMMA_FP8(104, 12, 52, 53, 54)
HONE_WGMMA_FP8(112, 13, 56, 57, 58)
HONE_WGMMA_FP8(120, 14, 60, 61, 62)
HONE_WGMMA_FP8(128, 15, 64, 65, 66)
HONE_WGMMA_FP8(136, 16, 68, 69, 70)
HONE_WGMMA_FP8(144, 17, 72, 73, 74)
HONE_WGMMA_FP8(152, 18, 76, 77, 78)
HONE_WGMMA_FP8(160, 19, 80, 81, 82)
HONE_WGMMA_FP8(168, 20, 84, 85, 86)
HONE_WGMMA_FP8(176, 21, 88, 89, 90)
HONE_WGMMA_FP8(184, 22, 92, 93, 94)
HONE_WGMMA_FP8(192, 23, 96, 97, 98)
HONE_WGMMA_FP8(200, 24, 100, 101, 102)
HONE_WGMMA_FP8(208, 25, 104, 105, 106)
HONE_WGMMA_FP8(216, 26, 108, 109, 110)
HONE_WGMMA_FP8(224, 27, 112, 113, 114)
HONE_WGMMA_FP8(232, 28, 116, 117, 118)
HONE_WGMMA_FP8(240, 29, 120, 121, 122)
HONE_WGMMA_FP8(248, 30, 124, 125, 126)
HONE_WGMMA_FP8(256, 31, 128, 129, 130)
#undef HONE_WGMMA_FP8

// The lists of registers bind through HONE_WGMMA_B when they are used: here integers, then floats again.
#undef HONE_WGMMA_B
#define HONE_WGMMA_B(d, i) "+r"(d[4 * i]), "+r"(d[4 * i + 1]), "+r"(d[4 * i + 2]), "+r"(d[4 * i + 3])
#define HONE_WGMMA_INT8(n, block, a, b, p) HONE_WGMMA_CODES(int8, int, n, block, a, b, p, "s32.s8.s8", "")
HONE_WGMMA_INT8(8, 0, 4, 5, 6)
HONE_WGMMA_INT8(16, 1, 8, 9, 10)
HONE_WGMMA_INT8(24, 2, 12, 13, 14)
HONE_WGMMA_INT8(32, 3, 16, 17, 18)
HONE_WGMMA_INT8(48, 5, 24, 25, 26)
HONE_WGMMA_INT8(64, 7, 32, 33, 34)
HONE_WGMMA_INT8(80, 9, 40, 41, 42)
HONE_WGMMA_INT8(96, 11, 48, 49, 50)
HONE_WGMMA_INT8(112, 13, 56, 57, 58)
HONE_WGMMA_INT8(128, 15, 64, 65, 66)
HONE_WGMMA_INT8(144, 17, 72, 73, 74)
HONE_WGMMA_INT8(160, 19, 80, 81, 82)
HONE_WGMMA_INT8(176, 21, 88, 89, 90)
HONE_WGMMA_INT8(192, 23, 96, 97, 98)
HONE_WGMMA_INT8(208, 25, 104, 105, 106)
HONE_WGMMA_INT8(224, 27, 112, 113, 114)
HONE_WGMMA_INT8(240, 29, 120, 121, 122)
HONE_WGMMA_INT8(256, 31, 128, 129, 130)
#undef HONE_WGMMA_INT8
#undef HONE_WGMMA_B
#define HONE_WGMMA_B(d, i) "+f"(d[4 * i]), "+f"(d[4 * i + 1]), "+f"(d[4 * i + 2]), "+f"(d[4 * i + 3])

#undef HONE_WGMMA_CODES

}  // namespace hone

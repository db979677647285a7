// Warpgroup matrix products of tf32 numbers (wgmma, sm_90a): D[64, n] += A[64, 8] * B[n, 8]^T, A in
// registers, B in shared memory, a K-major panel as in wgmma.cuh whose 128-byte rows have 32 elements. An
// element is the upper 19 bits of a float (sign, exponent, 10 bits behind the leading one): the tensor cores
// do not look at the other 13.
//
// The map of A: lane l of warp w holds in left[h + 2 * c] row 16 * w + l / 4 + 8 * h, column l % 4 + 4 * c:
// that is what load_matrices gives for rows of 16 bytes. Accumulators, their order of fences and the wait are
// those of wgmma.cuh; registers of A may not be written before the products that read them are complete. The
// compiler sees to that between issue and wait where no branch and no loop stands in between; else it gives
// them to others (NVRTC 13.0).
#pragma once

#include "device/wgmma.cuh"

namespace hone {

/// Bits of a float that tf32 has.
inline constexpr uint32 tf32_mask = 0xffffe000u;
/// The nearest tf32 number, ties away from zero.
__device__ inline uint32 round_to_tf32(uint32 bits) { return (bits + 0x1000u) & tf32_mask; }

/// One instruction; `accumulate` 0 sets D = A * B^T.
template <int n>
struct WgmmaTf32;

#define HONE_WGMMA_TF32(n, block, a0, a1, a2, a3, b, p)                                                  \
    template <>                                                                                          \
    struct WgmmaTf32<n> {                                                                                \
        __device__ static void multiply(float (&d)[n / 2], const uint32 (&left)[4], uint64 right,        \
                                        int accumulate) {                                                \
            asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" #p                       \
                         ", 0;\n"                                                                        \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" HONE_WGMMA_R##block \
                         "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b ", accumulate, 1, 1;\n}"    \
                         : HONE_WGMMA_D##block(d)                                                        \
                         : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right),           \
                           "r"(accumulate));                                                             \
        }                                                                                                \
    };

HONE_WGMMA_TF32(8, 0, 4, 5, 6, 7, 8, 9)
HONE_WGMMA_TF32(16, 1, 8, 9, 10, 11, 12, 13)
HONE_WGMMA_TF32(24, 2, 12, 13, 14, 15, 16, 17)
HONE_WGMMA_TF32(32, 3, 16, 17, 18, 19, 20, 21)
HONE_WGMMA_TF32(40, 4, 20, 21, 22, 23, 24, 25)
HONE_WGMMA_TF32(48, 5, 24, 25, 26, 27, 28, 29)
HONE_WGMMA_TF32(56, 6, 28, 29, 30, 31, 32, 33)
HONE_WGMMA_TF32(64, 7, 32, 33, 34, 35, 36, 37)
HONE_WGMMA_TF32(72, 8, 36, 37, 38, 39, 40, 41)
HONE_WGMMA_TF32(80, 9, 40, 41, 42, 43, 44, 45)
HONE_WGMMA_TF32(88, 10, 44, 45, 46, 47, 48, 49)
HONE_WGMMA_TF32(96, 11, 48, 49, 50, 51, 52, 53)
HONE_WGMMA_TF32(104, 12, 52, 53, 54, 55, 56, 57)
HONE_WGMMA_TF32(112, 13, 56, 57, 58, 59, 60, 61)
HONE_WGMMA_TF32(120, 14, 60, 61, 62, 63, 64, 65)
HONE_WGMMA_TF32(128, 15, 64, 65, 66, 67, 68, 69)
HONE_WGMMA_TF32(136, 16, 68, 69, 70, 71, 72, 73)
HONE_WGMMA_TF32(144, 17, 72, 73, 74, 75, 76, 77)
HONE_WGMMA_TF32(152, 18, 76, 77, 78, 79, 80, 81)
HONE_WGMMA_TF32(160, 19, 80, 81, 82, 83, 84, 85)
HONE_WGMMA_TF32(168, 20, 84, 85, 86, 87, 88, 89)
HONE_WGMMA_TF32(176, 21, 88, 89, 90, 91, 92, 93)
HONE_WGMMA_TF32(184, 22, 92, 93, 94, 95, 96, 97)
HONE_WGMMA_TF32(192, 23, 96, 97, 98, 99, 100, 101)
HONE_WGMMA_TF32(200, 24, 100, 101, 102, 103, 104, 105)
HONE_WGMMA_TF32(208, 25, 104, 105, 106, 107, 108, 109)
HONE_WGMMA_TF32(216, 26, 108, 109, 110, 111, 112, 113)
HONE_WGMMA_TF32(224, 27, 112, 113, 114, 115, 116, 117)
HONE_WGMMA_TF32(232, 28, 116, 117, 118, 119, 120, 121)
HONE_WGMMA_TF32(240, 29, 120, 121, 122, 123, 124, 125)
HONE_WGMMA_TF32(248, 30, 124, 125, 126, 127, 128, 129)
HONE_WGMMA_TF32(256, 31, 128, 129, 130, 131, 132, 133)

#undef HONE_WGMMA_TF32

}  // namespace hone

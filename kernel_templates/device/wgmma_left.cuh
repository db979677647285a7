// Warpgroup matrix products (device/wgmma.cuh) whose left operand stands in registers, and whose right
// operand may be transposed: D[64, n] += A[64, 16] * B, B in shared memory as [n, 16] (K-major) or as [16, n]
// (transposed: the rows of the copied matrix run along k, as the values of attention do).
//
// Left fragment: lane l of warp w holds pairs (k, k + 1), k = 2 * (l % 4), of
//   a0 row 16 * w + l / 4, a1 row + 8, a2 the same row at k + 8, a3 row + 8 at k + 8.
// So the accumulators d of two neighbouring blocks of 8 columns, rounded in pairs, are the fragment for these
// 16 columns: a0 = (d0, d1), a1 = (d2, d3), a2 = (d4, d5), a3 = (d6, d7).
//
// The words of a fragment may be overwritten only after the wait, as accumulators.
#pragma once

#include "device/wgmma.cuh"

namespace hone {

/// Descriptor of a transposed right operand: panels of 64 columns (n), each row (k) 128 swizzled bytes, rows
/// 8 apart stand 1024 bytes apart, panels `panel_bytes` apart. 16 rows further: advance_descriptor by 2048
/// bytes.
__device__ inline uint64 transposed_descriptor(uint32 address, uint32 panel_bytes) {
    const uint32 low = ((address & 0x3ffffu) >> 4) | (panel_bytes >> 4) << 16;
    const uint32 high = (1024u >> 4) | (1u << 30);
    return static_cast<uint64>(high) << 32 | low;
}

/// Keeps the compiler from moving reads and writes of fragments across.
template <int count>
__device__ inline void fence_fragments(uint32 (&words)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) asm volatile("" : "+r"(words[i])::"memory");
}

/// One instruction; `accumulate` 0 sets D = A * B.
template <class T, int n, bool transposed>
struct WgmmaLeft;

#define HONE_WGMMA_LEFT_TEXT(n, type, block, a0, a1, a2, a3, b, p, t)                        \
    "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" #p                                \
    ", 0;\n"                                                                                 \
    "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" HONE_WGMMA_R##block \
        "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b ", accumulate, 1, 1, %" #t ";\n}"

#define HONE_WGMMA_LEFT(n, block, a0, a1, a2, a3, b, p, t)                                                  \
    template <class T, bool transposed>                                                                     \
    struct WgmmaLeft<T, n, transposed> {                                                                    \
        __device__ static void multiply(float (&d)[n / 2], const uint32* a, uint64 right, int accumulate) { \
            if constexpr (is_bf16<T>)                                                                       \
                asm volatile(HONE_WGMMA_LEFT_TEXT(n, "bf16", block, a0, a1, a2, a3, b, p, t)                \
                             : HONE_WGMMA_D##block(d)                                                       \
                             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(right), "r"(accumulate),     \
                               "n"(transposed ? 1 : 0));                                                    \
            else                                                                                            \
                asm volatile(HONE_WGMMA_LEFT_TEXT(n, "f16", block, a0, a1, a2, a3, b, p, t)                 \
                             : HONE_WGMMA_D##block(d)                                                       \
                             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(right), "r"(accumulate),     \
                               "n"(transposed ? 1 : 0));                                                    \
        }                                                                                                   \
    };

HONE_WGMMA_LEFT(8, 0, 4, 5, 6, 7, 8, 9, 10)
HONE_WGMMA_LEFT(16, 1, 8, 9, 10, 11, 12, 13, 14)
HONE_WGMMA_LEFT(24, 2, 12, 13, 14, 15, 16, 17, 18)
HONE_WGMMA_LEFT(32, 3, 16, 17, 18, 19, 20, 21, 22)
HONE_WGMMA_LEFT(40, 4, 20, 21, 22, 23, 24, 25, 26)
HONE_WGMMA_LEFT(48, 5, 24, 25, 26, 27, 28, 29, 30)
HONE_WGMMA_LEFT(56, 6, 28, 29, 30, 31, 32, 33, 34)
HONE_WGMMA_LEFT(64, 7, 32, 33, 34, 35, 36, 37, 38)
HONE_WGMMA_LEFT(72, 8, 36, 37, 38, 39, 40, 41, 42)
HONE_WGMMA_LEFT(80, 9, 40, 41, 42, 43, 44, 45, 46)
HONE_WGMMA_LEFT(88, 10, 44, 45, 46, 47, 48, 49, 50)
HONE_WGMMA_LEFT(96, 11, 48, 49, 50, 51, 52, 53, 54)
HONE_WGMMA_LEFT(104, 12, 52, 53, 54, 55, 56, 57, 58)
HONE_WGMMA_LEFT(112, 13, 56, 57, 58, 59, 60, 61, 62)
HONE_WGMMA_LEFT(120, 14, 60, 61, 62, 63, 64, 65, 66)
HONE_WGMMA_LEFT(128, 15, 64, 65, 66, 67, 68, 69, 70)
HONE_WGMMA_LEFT(136, 16, 68, 69, 70, 71, 72, 73, 74)
HONE_WGMMA_LEFT(144, 17, 72, 73, 74, 75, 76, 77, 78)
HONE_WGMMA_LEFT(152, 18, 76, 77, 78, 79, 80, 81, 82)
HONE_WGMMA_LEFT(160, 19, 80, 81, 82, 83, 84, 85, 86)
HONE_WGMMA_LEFT(168, 20, 84, 85, 86, 87, 88, 89, 90)
HONE_WGMMA_LEFT(176, 21, 88, 89, 90, 91, 92, 93, 94)
HONE_WGMMA_LEFT(184, 22, 92, 93, 94, 95, 96, 97, 98)
HONE_WGMMA_LEFT(192, 23, 96, 97, 98, 99, 100, 101, 102)
HONE_WGMMA_LEFT(200, 24, 100, 101, 102, 103, 104, 105, 106)
HONE_WGMMA_LEFT(208, 25, 104, 105, 106, 107, 108, 109, 110)
HONE_WGMMA_LEFT(216, 26, 108, 109, 110, 111, 112, 113, 114)
HONE_WGMMA_LEFT(224, 27, 112, 113, 114, 115, 116, 117, 118)
HONE_WGMMA_LEFT(232, 28, 116, 117, 118, 119, 120, 121, 122)
HONE_WGMMA_LEFT(240, 29, 120, 121, 122, 123, 124, 125, 126)
HONE_WGMMA_LEFT(248, 30, 124, 125, 126, 127, 128, 129, 130)
HONE_WGMMA_LEFT(256, 31, 128, 129, 130, 131, 132, 133, 134)

#undef HONE_WGMMA_LEFT
#undef HONE_WGMMA_LEFT_TEXT

}  // namespace hone

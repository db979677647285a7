// Warpgroup matrix products (wgmma, sm_90a): D[64, n] += A[64, 16] * B[n, 16]^T, 16-bit operands in shared
// memory, float32 accumulators in registers. Both operands are K-major panels: rows of 64 elements (128
// bytes) in the 128-byte swizzle that the tensor copies write, the panel's base a multiple of 1024 bytes.
//
// The 128 threads of a warpgroup issue together. Order: fence_accumulators, wgmma_fence, any number of
// multiply(), wgmma_commit, later wgmma_wait, fence_accumulators; no accumulator may be touched in between.
//
// Accumulator map: lane l of warp w holds in d[4 * j + 2 * h + e] row 16 * w + l / 4 + 8 * h, column
// 8 * j + 2 * (l % 4) + e.
#pragma once

#include "device/mma.cuh"

namespace hone {

/// Bytes between rows of a panel, and elements in one row.
inline constexpr int panel_pitch = 128;
inline constexpr int panel_columns = 64;

/// Descriptor of a panel at a shared address. Rows 8 apart stand 1024 bytes apart; the leading offset does
/// not count in this layout. Fields are in units of 16 bytes: address in bits 0 to 13, stride from bit 32,
/// swizzle mode 1 (128 bytes) from bit 62.
__device__ inline uint64 panel_descriptor(uint32 address) {
    const uint32 low = ((address & 0x3ffffu) >> 4) | (1u << 16);
    const uint32 high = (1024u >> 4) | (1u << 30);
    return static_cast<uint64>(high) << 32 | low;
}
/// The same panel `bytes` further on: 32 for the next 16 columns (the hardware swizzles after adding), 128 a
/// row in steps of 8 rows. The low word never carries.
__device__ inline uint64 advance_descriptor(uint64 descriptor, uint32 bytes) {
    return descriptor + (bytes >> 4);
}

__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most `pending` committed groups are still under way.
template <int pending>
__device__ inline void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
/// Keeps the compiler from moving reads and writes of accumulators across.
template <int count>
__device__ inline void fence_accumulators(float (&d)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

/// One instruction; `accumulate` 0 sets D = A * B^T. n: multiples of 8 up to 256.
template <class T, int n>
struct Wgmma;

// HONE_WGMMA_Ri names the registers of n8 blocks 0 to i in the instruction's text, HONE_WGMMA_Di binds them.
#define HONE_WGMMA_B(d, i) "+f"(d[4 * i]), "+f"(d[4 * i + 1]), "+f"(d[4 * i + 2]), "+f"(d[4 * i + 3])
#define HONE_WGMMA_R0 "%0, %1, %2, %3"
#define HONE_WGMMA_R1 HONE_WGMMA_R0 ", %4, %5, %6, %7"
#define HONE_WGMMA_R2 HONE_WGMMA_R1 ", %8, %9, %10, %11"
#define HONE_WGMMA_R3 HONE_WGMMA_R2 ", %12, %13, %14, %15"
#define HONE_WGMMA_R4 HONE_WGMMA_R3 ", %16, %17, %18, %19"
#define HONE_WGMMA_R5 HONE_WGMMA_R4 ", %20, %21, %22, %23"
#define HONE_WGMMA_R6 HONE_WGMMA_R5 ", %24, %25, %26, %27"
#define HONE_WGMMA_R7 HONE_WGMMA_R6 ", %28, %29, %30, %31"
#define HONE_WGMMA_R8 HONE_WGMMA_R7 ", %32, %33, %34, %35"
#define HONE_WGMMA_R9 HONE_WGMMA_R8 ", %36, %37, %38, %39"
#define HONE_WGMMA_R10 HONE_WGMMA_R9 ", %40, %41, %42, %43"
#define HONE_WGMMA_R11 HONE_WGMMA_R10 ", %44, %45, %46, %47"
#define HONE_WGMMA_R12 HONE_WGMMA_R11 ", %48, %49, %50, %51"
#define HONE_WGMMA_R13 HONE_WGMMA_R12 ", %52, %53, %54, %55"
#define HONE_WGMMA_R14 HONE_WGMMA_R13 ", %56, %57, %58, %59"
#define HONE_WGMMA_R15 HONE_WGMMA_R14 ", %60, %61, %62, %63"
#define HONE_WGMMA_R16 HONE_WGMMA_R15 ", %64, %65, %66, %67"
#define HONE_WGMMA_R17 HONE_WGMMA_R16 ", %68, %69, %70, %71"
#define HONE_WGMMA_R18 HONE_WGMMA_R17 ", %72, %73, %74, %75"
#define HONE_WGMMA_R19 HONE_WGMMA_R18 ", %76, %77, %78, %79"
#define HONE_WGMMA_R20 HONE_WGMMA_R19 ", %80, %81, %82, %83"
#define HONE_WGMMA_R21 HONE_WGMMA_R20 ", %84, %85, %86, %87"
#define HONE_WGMMA_R22 HONE_WGMMA_R21 ", %88, %89, %90, %91"
#define HONE_WGMMA_R23 HONE_WGMMA_R22 ", %92, %93, %94, %95"
#define HONE_WGMMA_R24 HONE_WGMMA_R23 ", %96, %97, %98, %99"
#define HONE_WGMMA_R25 HONE_WGMMA_R24 ", %100, %101, %102, %103"
#define HONE_WGMMA_R26 HONE_WGMMA_R25 ", %104, %105, %106, %107"
#define HONE_WGMMA_R27 HONE_WGMMA_R26 ", %108, %109, %110, %111"
#define HONE_WGMMA_R28 HONE_WGMMA_R27 ", %112, %113, %114, %115"
#define HONE_WGMMA_R29 HONE_WGMMA_R28 ", %116, %117, %118, %119"
#define HONE_WGMMA_R30 HONE_WGMMA_R29 ", %120, %121, %122, %123"
#define HONE_WGMMA_R31 HONE_WGMMA_R30 ", %124, %125, %126, %127"
#define HONE_WGMMA_D0(d) HONE_WGMMA_B(d, 0)
#define HONE_WGMMA_D1(d) HONE_WGMMA_D0(d), HONE_WGMMA_B(d, 1)
#define HONE_WGMMA_D2(d) HONE_WGMMA_D1(d), HONE_WGMMA_B(d, 2)
#define HONE_WGMMA_D3(d) HONE_WGMMA_D2(d), HONE_WGMMA_B(d, 3)
#define HONE_WGMMA_D4(d) HONE_WGMMA_D3(d), HONE_WGMMA_B(d, 4)
#define HONE_WGMMA_D5(d) HONE_WGMMA_D4(d), HONE_WGMMA_B(d, 5)
#define HONE_WGMMA_D6(d) HONE_WGMMA_D5(d), HONE_WGMMA_B(d, 6)
#define HONE_WGMMA_D7(d) HONE_WGMMA_D6(d), HONE_WGMMA_B(d, 7)
#define HONE_WGMMA_D8(d) HONE_WGMMA_D7(d), HONE_WGMMA_B(d, 8)
#define HONE_WGMMA_D9(d) HONE_WGMMA_D8(d), HONE_WGMMA_B(d, 9)
#define HONE_WGMMA_D10(d) HONE_WGMMA_D9(d), HONE_WGMMA_B(d, 10)
#define HONE_WGMMA_D11(d) HONE_WGMMA_D10(d), HONE_WGMMA_B(d, 11)
#define HONE_WGMMA_D12(d) HONE_WGMMA_D11(d), HONE_WGMMA_B(d, 12)
#define HONE_WGMMA_D13(d) HONE_WGMMA_D12(d), HONE_WGMMA_B(d, 13)
#define HONE_WGMMA_D14(d) HONE_WGMMA_D13(d), HONE_WGMMA_B(d, 14)
#define HONE_WGMMA_D15(d) HONE_WGMMA_D14(d), HONE_WGMMA_B(d, 15)
#define HONE_WGMMA_D16(d) HONE_WGMMA_D15(d), HONE_WGMMA_B(d, 16)
#define HONE_WGMMA_D17(d) HONE_WGMMA_D16(d), HONE_WGMMA_B(d, 17)
#define HONE_WGMMA_D18(d) HONE_WGMMA_D17(d), HONE_WGMMA_B(d, 18)
#define HONE_WGMMA_D19(d) HONE_WGMMA_D18(d), HONE_WGMMA_B(d, 19)
#define HONE_WGMMA_D20(d) HONE_WGMMA_D19(d), HONE_WGMMA_B(d, 20)
#define HONE_WGMMA_D21(d) HONE_WGMMA_D20(d), HONE_WGMMA_B(d, 21)
#define HONE_WGMMA_D22(d) HONE_WGMMA_D21(d), HONE_WGMMA_B(d, 22)
#define HONE_WGMMA_D23(d) HONE_WGMMA_D22(d), HONE_WGMMA_B(d, 23)
#define HONE_WGMMA_D24(d) HONE_WGMMA_D23(d), HONE_WGMMA_B(d, 24)
#define HONE_WGMMA_D25(d) HONE_WGMMA_D24(d), HONE_WGMMA_B(d, 25)
#define HONE_WGMMA_D26(d) HONE_WGMMA_D25(d), HONE_WGMMA_B(d, 26)
#define HONE_WGMMA_D27(d) HONE_WGMMA_D26(d), HONE_WGMMA_B(d, 27)
#define HONE_WGMMA_D28(d) HONE_WGMMA_D27(d), HONE_WGMMA_B(d, 28)
#define HONE_WGMMA_D29(d) HONE_WGMMA_D28(d), HONE_WGMMA_B(d, 29)
#define HONE_WGMMA_D30(d) HONE_WGMMA_D29(d), HONE_WGMMA_B(d, 30)
#define HONE_WGMMA_D31(d) HONE_WGMMA_D30(d), HONE_WGMMA_B(d, 31)

#define HONE_WGMMA_TEXT(n, type, block, a, b, p)                                             \
    "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" #p                                \
    ", 0;\n"                                                                                 \
    "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" HONE_WGMMA_R##block \
        "}, %" #a ", %" #b ", accumulate, 1, 1, 0, 0;\n}"

#define HONE_WGMMA(n, block, a, b, p)                                                                   \
    template <class T>                                                                                  \
    struct Wgmma<T, n> {                                                                                \
        __device__ static void multiply(float (&d)[n / 2], uint64 left, uint64 right, int accumulate) { \
            if constexpr (is_bf16<T>)                                                                   \
                asm volatile(HONE_WGMMA_TEXT(n, "bf16", block, a, b, p)                                 \
                             : HONE_WGMMA_D##block(d)                                                   \
                             : "l"(left), "l"(right), "r"(accumulate));                                 \
            else                                                                                        \
                asm volatile(HONE_WGMMA_TEXT(n, "f16", block, a, b, p)                                  \
                             : HONE_WGMMA_D##block(d)                                                   \
                             : "l"(left), "l"(right), "r"(accumulate));                                 \
        }                                                                                               \
    };

HONE_WGMMA(8, 0, 4, 5, 6)
HONE_WGMMA(16, 1, 8, 9, 10)
HONE_WGMMA(24, 2, 12, 13, 14)
HONE_WGMMA(32, 3, 16, 17, 18)
HONE_WGMMA(40, 4, 20, 21, 22)
HONE_WGMMA(48, 5, 24, 25, 26)
HONE_WGMMA(56, 6, 28, 29, 30)
HONE_WGMMA(64, 7, 32, 33, 34)
HONE_WGMMA(72, 8, 36, 37, 38)
HONE_WGMMA(80, 9, 40, 41, 42)
HONE_WGMMA(88, 10, 44, 45, 46)
HONE_WGMMA(96, 11, 48, 49, 50)
HONE_WGMMA(104, 12, 52, 53, 54)
HONE_WGMMA(112, 13, 56, 57, 58)
HONE_WGMMA(120, 14, 60, 61, 62)
HONE_WGMMA(128, 15, 64, 65, 66)
HONE_WGMMA(136, 16, 68, 69, 70)
HONE_WGMMA(144, 17, 72, 73, 74)
HONE_WGMMA(152, 18, 76, 77, 78)
HONE_WGMMA(160, 19, 80, 81, 82)
HONE_WGMMA(168, 20, 84, 85, 86)
HONE_WGMMA(176, 21, 88, 89, 90)
HONE_WGMMA(184, 22, 92, 93, 94)
HONE_WGMMA(192, 23, 96, 97, 98)
HONE_WGMMA(200, 24, 100, 101, 102)
HONE_WGMMA(208, 25, 104, 105, 106)
HONE_WGMMA(216, 26, 108, 109, 110)
HONE_WGMMA(224, 27, 112, 113, 114)
HONE_WGMMA(232, 28, 116, 117, 118)
HONE_WGMMA(240, 29, 120, 121, 122)
HONE_WGMMA(248, 30, 124, 125, 126)
HONE_WGMMA(256, 31, 128, 129, 130)

#undef HONE_WGMMA
#undef HONE_WGMMA_TEXT

}  // namespace hone

// Warp matrix products (mma.sync): D[16, 8] += A[16, 16] * B[16, 8], 16-bit operands and float32 sums in
// registers; sm_75 takes 8 of k at a time, and fp16 alone. With g = lane / 4 and t = lane % 4, each word
// holding two neighbours along k:
//   a0 (row g, k 2t), a1 (row g + 8, k 2t), a2 (row g, k 2t + 8), a3 (row g + 8, k 2t + 8)
//   b0 (k 2t, column g), b1 (k 2t + 8, column g)
#pragma once

#include "device/types.cuh"

namespace hone {

template <class T>
inline constexpr bool is_bf16 = false;
template <>
inline constexpr bool is_bf16<bf16> = true;

/// Row g, columns 2t and 2t + 1; then row g + 8, the same columns.
struct MmaSums {
    float values[4];
};

#define HONE_MMA(type)                                                                  \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                 \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                       \
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
#define HONE_MMA_HALF(low, high, b)                           \
    asm volatile(                                             \
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "   \
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])      \
        : "r"(low), "r"(high), "r"(b))

template <class T>
__device__ inline void multiply_16(MmaSums& sums, uint32 a0, uint32 a1, uint32 a2, uint32 a3, uint32 b0,
                                   uint32 b1) {
    float(&d)[4] = sums.values;
#if __CUDA_ARCH__ >= 800
    if constexpr (is_bf16<T>)
        HONE_MMA("bf16");
    else
        HONE_MMA("f16");
#else
    static_assert(!is_bf16<T>, "bf16 products need sm_80");
    HONE_MMA_HALF(a0, a1, b0);
    HONE_MMA_HALF(a2, a3, b1);
#endif
}
#undef HONE_MMA
#undef HONE_MMA_HALF

}  // namespace hone

// Functions of the special function unit, about 2 units in the last place.
#pragma once

#include "device/types.cuh"

namespace hone {

/// 2^x; 0 for minus infinity.
__device__ inline float fast_exp2(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
__device__ inline float fast_log2(float x) {
    float result;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
/// 1 / x.
__device__ inline float fast_reciprocal(float x) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

}  // namespace hone

// Flags in global memory by which one block of a running grid tells another that data is there. The writer:
// all threads write, the block's (or warpgroup's) barrier, one thread raises. The reader: one thread waits,
// barrier, all threads read.
#pragma once

#include "device/types.cuh"

namespace hone {

#if __CUDA_ARCH__ >= 700
/// Whoever sees `value` there through flag_value() also sees what this thread had written, or seen written,
/// before.
__device__ inline void raise_flag(uint64* flag, uint64 value) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}
__device__ inline uint64 flag_value(const uint64* flag) {
    uint64 value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
    return value;
}
#endif

}  // namespace hone

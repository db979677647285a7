// What is read once: loads that leave level 1 alone; asynchronous copies that announce themselves at a
// barrier; and shared memory of the cluster's other blocks, written with the same announcement.
#pragma once

#include "device/mbarrier.cuh"

namespace hone {

enum class StreamHint : int { no_allocate = 1, line = 2 };

/// 16 bytes, not into level 1; `line`: with the rest of their 128 bytes into level 2 (sm_80).
template <StreamHint hint>
__device__ inline uint4 load_stream(const void* address) {
    uint4 word;
    if constexpr (hint == StreamHint::no_allocate) {
        asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                     : "l"(address));
    } else {
        asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                     : "l"(address));
    }
    return word;
}

#if __CUDA_ARCH__ >= 900
/// Arrives at a barrier when all asynchronous copies that this thread began have landed; counts as one of the
/// arrivals that the barrier was initialized with.
__device__ inline void barrier_arrive_after_copies(uint32 barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

/// Writes to an address of the cluster's shared memory; `barrier`, in the same block, counts the bytes.
__device__ inline void store_remote_4(uint32 address, const float4& value, uint32 barrier) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::
            "r"(address),
        "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier)
        : "memory");
}
__device__ inline void store_remote_2(uint32 address, const float2& value, uint32 barrier) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(
            address),
        "f"(value.x), "f"(value.y), "r"(barrier)
        : "memory");
}
#endif

}  // namespace hone

// The tensor copy engine (sm_90): boxes of a row-major matrix between global and shared memory by one thread.
// A tensor map names matrix, box and swizzle; it comes as a `const __grid_constant__` kernel parameter. Parts
// of a box outside of the matrix read as zero and are not written; the bytes announced to a barrier count
// them.
#pragma once

#include "device/sync.cuh"

namespace hone {

/// A CUtensorMap, encoded by the host at each launch (plan.h: TensorMap).
struct alignas(64) TensorMap {
    uint64 words[16];
};

/// What level 2 should do with the lines of a copy.
enum class L2Hint : int { normal = 0, evict_first = 1, evict_last = 2 };

/// As an operand of loads and copies, sm_90.
template <L2Hint hint>
__device__ inline uint64 l2_policy() {
    if constexpr (hint == L2Hint::evict_first) return 0x12f0000000000000ull;
    if constexpr (hint == L2Hint::evict_last) return 0x14f0000000000000ull;
    return 0x1000000000000000ull;
}

#if __CUDA_ARCH__ >= 900
__device__ inline void prefetch_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Box at (column, row) to shared address `to`; `barrier` counts its bytes.
template <L2Hint hint>
__device__ inline void load_box(uint32 to, const TensorMap& map, int column, int row, uint32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(column), "r"(row), "l"(l2_policy<hint>())
        : "memory");
}

/// Shared memory written by ordinary stores becomes visible to the copy engine and the tensor cores; by each
/// writing thread, before the barrier.
__device__ inline void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// Global memory that an earlier kernel wrote by ordinary stores becomes visible to the copy engine; after a
/// programmatic wait, where no kernel boundary does it.
__device__ inline void fence_async_proxy_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
/// Box from shared address `from` to (column, row).
__device__ inline void store_box(const TensorMap& map, int column, int row, uint32 from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
                 "r"(from), "r"(column), "r"(row)
                 : "memory");
}
__device__ inline void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Until the shared memory of all but the last `pending` groups of this thread's stores may be written again.
template <int pending>
__device__ inline void wait_for_store_reads() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}
/// Until they are complete.
template <int pending>
__device__ inline void wait_for_stores() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}
#endif

}  // namespace hone

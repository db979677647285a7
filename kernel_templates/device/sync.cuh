// Programmatic dependent launch, asynchronous copies to shared memory, and clusters, as PTX. On chips without
// the instruction, launch control is nothing; the others do not exist and variants that use them state their
// architecture.
#pragma once

#include "device/types.cuh"

namespace hone {

/// Blocks until every kernel this one depends on has ended and its writes are visible. Before this call
/// nothing that a predecessor may write or read may be touched.
__device__ inline void wait_for_predecessor() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the next kernel of the stream start its own prologue; it still waits for this one to end before it
/// reads.
__device__ inline void release_successor() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ inline uint32 shared_address(const void* pointer) {
    return static_cast<uint32>(__cvta_generic_to_shared(pointer));
}

#if __CUDA_ARCH__ >= 800
/// Copies 4, 8 or 16 bytes from global to shared memory without a register in between.
template <int bytes>
__device__ inline void copy_async(void* shared, const void* global) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async moves 4, 8 or 16 bytes");
    if constexpr (bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)), "l"(global)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(shared)), "l"(global),
                     "n"(bytes)
                     : "memory");
    }
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most `pending` of this thread's committed groups are still under way.
template <int pending>
__device__ inline void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}
#endif

#if __CUDA_ARCH__ >= 900
__device__ inline uint32 cluster_rank() {
    uint32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ inline void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
/// Writes a float to the same shared variable of another block of the cluster.
__device__ inline void store_remote(const float* local, uint32 rank, float value) {
    uint32 remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(remote)
                 : "r"(shared_address(local)), "r"(rank));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(value) : "memory");
}
#endif

}  // namespace hone

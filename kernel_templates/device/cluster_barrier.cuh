// Arrivals at barriers of other blocks of a cluster (sm_90).
#pragma once

#include "device/mbarrier.cuh"

namespace hone {

#if __CUDA_ARCH__ >= 900
/// At a barrier of any block of the cluster, by its address in the cluster (remote_address). What this thread
/// has read or written before has happened before whatever a thread does that waited for the phase.
__device__ inline void barrier_arrive_remote(uint32 address) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(address) : "memory");
}
/// As barrier_wait, for a phase that arrivals from other blocks end.
__device__ inline void barrier_wait_cluster(uint32 barrier, uint32 parity) {
    uint32 done;
    do {
        asm volatile(
            "{\n.reg .pred done;\n"
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n"
            "selp.u32 %0, 1, 0, done;\n}"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    } while (done == 0);
}
#endif

}  // namespace hone

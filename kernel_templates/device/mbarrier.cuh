// Barriers in shared memory that count arrivals and, for asynchronous copies, bytes (mbarrier, sm_90), and
// the ring of stages that a producer and consumers share through pairs of them. All addresses are 32-bit
// shared addresses.
//
// A barrier is in phase 0, 1, 2, ...; a phase ends when the initialized number of arrivals came and as many
// bytes as were expected. barrier_wait(parity) blocks while the phase of that parity is still under way: with
// parity 0 on a fresh barrier it waits for the first phase, with parity 1 it returns at once. Nobody may be
// more than one phase ahead of anybody who waits.
#pragma once

#include "device/sync.cuh"

namespace hone {

#if __CUDA_ARCH__ >= 900
__device__ inline void barrier_init(uint32 barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Makes initialized barriers visible to the copy engine and to the blocks of the cluster; by the thread that
/// initialized, before the block's or the cluster's barrier.
__device__ inline void fence_barrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void barrier_arrive(uint32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives and announces `bytes` that asynchronous copies will bring in this phase. They may come earlier.
__device__ inline void barrier_arrive_expecting(uint32 barrier, uint32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
/// Address, valid in the whole cluster, of the same variable in another block.
__device__ inline uint32 remote_address(uint32 local, uint32 rank) {
    uint32 remote;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"(rank));
    return remote;
}
__device__ inline bool barrier_try(uint32 barrier, uint32 parity) {
    uint32 done;
    asm volatile(
        "{\n.reg .pred done;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    return done != 0;
}
__device__ inline void barrier_wait(uint32 barrier, uint32 parity) {
    while (!barrier_try(barrier, parity)) {
    }
}

/// Where one side of a ring stands: `stage`, and the parity of its round. The consumer waits for the full
/// barrier with `parity`, the producer for the empty one with `parity ^ 1`: free at once in the first round.
template <int stages>
struct RingPosition {
    int stage = 0;
    uint32 parity = 0;

    __device__ void advance() {
        if (++stage == stages) {
            stage = 0;
            parity ^= 1;
        }
    }
    __device__ void advance(int steps) {
        const int next = stage + steps;
        parity ^= (next / stages) & 1;
        stage = next % stages;
    }
};
#endif

}  // namespace hone

// Bulk copies of contiguous bytes from global to shared memory by one thread (cp.async.bulk, sm_90):
// addresses and sizes are multiples of 16 bytes.
#pragma once

#include "device/tma.cuh"

namespace hone {

#if __CUDA_ARCH__ >= 900
/// `bytes` at `from` to shared address `to`; `barrier` counts them.
template <L2Hint hint>
__device__ inline void load_bytes(uint32 to, const void* from, uint32 bytes, uint32 barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
        "[%3], "
        "%4;" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier), "l"(l2_policy<hint>())
        : "memory");
}
#endif

}  // namespace hone

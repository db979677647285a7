// Warpgroups (sm_90a): register budgets of roles, barriers among some warps of a block, and the way of
// accumulator fragments to shared memory (stmatrix).
#pragma once

#include "device/shared_tile.cuh"
#include "device/sync.cuh"

namespace hone {

#if __CUDA_ARCH__ >= 900
template <int registers>
__device__ inline void release_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ inline void claim_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

/// Barrier 0 is __syncthreads; 1 to 15 are free. `threads` counts everybody who arrives or waits.
template <int threads>
__device__ inline void named_barrier_sync(int id) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(threads) : "memory");
}
template <int threads>
__device__ inline void named_barrier_arrive(int id) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(threads) : "memory");
}

/// Four (two) 8 x 8 matrices of 16-bit elements: lane l holds elements 2 * (l % 4) and the next of row l / 4
/// in each word, and names the shared address of row l % 8 of matrix l / 8. Transposed: of column l % 8.
__device__ inline void store_matrices(uint32 address, uint32 a, uint32 b, uint32 c, uint32 d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a),
                 "r"(b), "r"(c), "r"(d)
                 : "memory");
}
__device__ inline void store_matrices_transposed(uint32 address, uint32 a, uint32 b, uint32 c, uint32 d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}
__device__ inline void store_matrices_transposed(uint32 address, uint32 a, uint32 b) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(a),
                 "r"(b)
                 : "memory");
}
#endif

}  // namespace hone

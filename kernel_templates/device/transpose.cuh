// Transposes of 8 x 8 matrices of 16-bit elements, on the way from shared memory to registers and across the
// lanes of a warp. In a fragment lane l holds elements 2 * (l % 4) and the next of row l / 4.
#pragma once

#include "device/sync.cuh"

namespace hone {

/// The fragment of the transposed matrix (sm_75).
__device__ inline uint32 transpose_matrix(uint32 fragment) {
    uint32 result;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(fragment));
    return result;
}

/// Four matrices; lane l names the shared address of row l % 8 of matrix l / 8, and receives of each elements
/// 2 * (l % 4) and the next of column l / 4.
__device__ inline void load_matrices_transposed(uint32 (&words)[4], uint32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}

}  // namespace hone

// Words of 16 bytes to and from shared memory, and how a warp reads 8 x 8 matrices of 16-bit elements from
// there (ldmatrix), or what is the same, 8 rows x 16 bytes.
#pragma once

#include "device/types.cuh"

namespace hone {

__device__ inline void store_shared(uint32 address, uint4 word) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(word.x), "r"(word.y),
                 "r"(word.z), "r"(word.w)
                 : "memory");
}
__device__ inline uint4 load_shared_16(uint32 address) {
    uint4 word;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                 : "r"(address)
                 : "memory");
    return word;
}

/// Four 8 x 8 matrices: lane l names the shared address of row l % 8 of matrix l / 8, and receives of each
/// matrix elements 2 * (l % 4) and the next of row l / 4. sm_75.
__device__ inline void load_matrices(uint32 (&words)[4], uint32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}

}  // namespace hone

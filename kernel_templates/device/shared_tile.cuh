// Tiles of 16-bit elements in shared memory, rows of 128, 64 or 32 bytes whose 16-byte chunks are exchanged
// so that neither the chunks of a row nor a chunk of eight rows meet in a bank; how 16 bytes get there, and
// how a warp reads 8 x 8 matrices from there (ldmatrix).
#pragma once

#include "device/types.cuh"

namespace hone {

/// Byte offset of 16-byte chunk `chunk` of row `row` in a tile of `columns` 16-bit elements (64, 32 or 16) as
/// the copy engine swizzles it over 128, 64 or 32 bytes; a tile that it copies starts at a multiple of 1024
/// bytes. A chunk that is 2^n further on, within its aligned group, is the exclusive or with 2^n * 16.
template <int columns>
__device__ inline uint32 swizzled_offset(int row, int chunk) {
    static_assert(columns == 64 || columns == 32 || columns == 16, "a swizzled row has 128, 64 or 32 bytes");
    constexpr int chunks = columns / 8;
    return static_cast<uint32>(row * columns * 2 + ((chunk ^ (row / (8 / chunks) % chunks)) << 4));
}

__device__ inline void store_shared(uint32 address, uint32 word) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}
__device__ inline void store_shared(uint32 address, uint4 word) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(word.x), "r"(word.y),
                 "r"(word.z), "r"(word.w)
                 : "memory");
}
__device__ inline uint32 load_shared(uint32 address) {
    uint32 word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
    return word;
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

#if __CUDA_ARCH__ >= 800
/// 16 bytes from global to shared memory without a register in between, and a hint that the whole line will
/// be wanted; sync.cuh has the groups.
__device__ inline void copy_chunk_async(uint32 to, const void* from) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
/// The same, or zeros: then `from` is not read.
__device__ inline void copy_chunk_async_or_zero(uint32 to, const void* from, bool exists) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(exists ? 16 : 0)
                 : "memory");
}
#endif

}  // namespace hone

// Words of shared memory: zeros, and additions (red.shared) under a condition, without a branch, so that
// those of several elements overlap.
#pragma once

#include "device/sync.cuh"

namespace hone {

/// Zeros, by all threads of the block; `count` is a multiple of 4, `words` lies at 16 bytes.
template <int threads>
__device__ inline void clear_words(uint32* words, int count) {
    for (int i = static_cast<int>(threadIdx.x) * 4; i < count; i += threads * 4)
        *reinterpret_cast<uint4*>(words + i) = uint4{0, 0, 0, 0};
}

/// Adds to the word at a shared address where `condition` is not 0.
__device__ inline void add_where(uint32 condition, uint32 address, uint32 value) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p red.shared.add.u32 [%1], %2; }" ::"r"(condition),
                 "r"(address), "r"(value));
}
/// Adds 1 to the word at a shared address.
__device__ inline void count_one(uint32 address) {
    asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(address));
}

}  // namespace hone

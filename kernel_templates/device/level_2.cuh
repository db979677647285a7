// What asks level 2 for lines that will be read soon: nothing waits for them.
#pragma once

#include "device/types.cuh"

namespace hone {

/// The 32 bytes around an address go to level 2, where all writes pass. Level 1 stays as it is, so that this
/// may stand in front of the wait for the kernel that writes them.
__device__ inline void prefetch_level_2(const void* address) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

}  // namespace hone

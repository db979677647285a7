// A whole row asked of level 2 before it is needed (sm_90).
#pragma once

#include "device/types.cuh"

namespace hone {

/// Whatever the call ahead still writes there: writes pass level 2. `bytes` and the address are multiples of
/// 16.
__device__ inline void prefetch_row_level_2(const void* row, int bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(row), "r"(bytes));
}

}  // namespace hone

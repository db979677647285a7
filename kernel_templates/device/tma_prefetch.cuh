// Boxes of a matrix asked of level 2 alone by the tensor copy engine (tma.cuh, sm_90), ahead of the copies
// that will want them.
#pragma once

#include "device/tma.cuh"

namespace hone {

#if __CUDA_ARCH__ >= 900
/// Box at (column, row). Nobody is told when it is there.
template <L2Hint hint>
__device__ inline void prefetch_box(const TensorMap& map, int column, int row) {
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.L2::cache_hint [%0, {%1, %2}], %3;" ::"l"(&map),
                 "r"(column), "r"(row), "l"(l2_policy<hint>())
                 : "memory");
}
#endif

}  // namespace hone

// Tensor copies (device/tma.cuh) of boxes of a tensor of four dimensions, innermost first.
#pragma once

#include "device/tma.cuh"

namespace hone {

/// Where a box begins, in elements.
struct Coordinates {
    int column;
    int token;
    int head;
    int batch;
};

#if __CUDA_ARCH__ >= 900
/// Box at `from` to shared address `to`; `barrier` counts its bytes.
template <L2Hint hint>
__device__ inline void load_box(uint32 to, const TensorMap& map, Coordinates from, uint32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(from.column), "r"(from.token), "r"(from.head), "r"(from.batch),
        "l"(l2_policy<hint>())
        : "memory");
}
/// The same box into level 2.
__device__ inline void prefetch_box(const TensorMap& map, Coordinates from) {
    asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global [%0, {%1, %2, %3, %4}];" ::"l"(&map),
                 "r"(from.column), "r"(from.token), "r"(from.head), "r"(from.batch)
                 : "memory");
}
#endif

}  // namespace hone

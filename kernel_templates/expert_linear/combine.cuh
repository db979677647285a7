// The launch behind a product that combines: adds up the results of a token's slots, each times its weight,
// in the order of the slots and in float32. Data's way: workspace [tokens * top_k, out], rounded -> registers
// -> out. The .cu that includes this says the width of accesses (`combine::vector`).
#pragma once

#include "device/packet.cuh"
#include "device/sync.cuh"
#include "expert_linear/tensors.cuh"

namespace hone::expert_linear::combine {

inline constexpr int threads = 256;  // as in combine.h
inline constexpr int chunks = (columns / vector + threads - 1) / threads;
static_assert(columns % vector == 0, "packets do not reach past the end of a row");

__device__ inline void run(const Tensors& tensors) {
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const int64 token = blockIdx.x / chunks;
    const int column = static_cast<int>(blockIdx.x % chunks * threads + threadIdx.x) * vector;
    if (column >= columns) return;
    const auto* const results =
        reinterpret_cast<const Element*>(tensors.workspace) + token * top_k * columns + column;
    float sums[vector] = {};
#pragma unroll 8
    for (int slot = 0; slot < top_k; ++slot) {
        const float weight = tensors.routing_weights[token * top_k + slot];
        float values[vector];
        unpack(load_packet<Element, vector>(results + static_cast<int64>(slot) * columns), values);
#pragma unroll
        for (int i = 0; i < vector; ++i) sums[i] = fmaf(weight, values[i], sums[i]);
    }
    store_packet(tensors.out + token * tensors.out_stride + column, pack<Element>(sums));
}

}  // namespace hone::expert_linear::combine

/// In every image of a variant, empty where nothing is combined.
extern "C" __global__ void __launch_bounds__(hone::expert_linear::combine::threads)
    expert_linear_combine(HONE_PARAMETERS(expert_linear_combine)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(expert_linear_combine)};
    if constexpr (hone::expert_linear::combines) hone::expert_linear::combine::run(tensors);
}

// A split sum of the tiled product (product.cuh): blocks leave partial sums in the workspace, float32
// [split, products, tokens, out], and a second launch adds them.
#pragma once

#include "device/packet.cuh"
#include "device/sync.cuh"
#include "linear/mma_tiles/tile.cuh"
#include "linear/results.cuh"
#include "linear/tensors.cuh"

namespace hone::linear::tiles {

__device__ inline Results results_of(const Tensors& tensors) {
    return {tensors.bias,
            tensors.residual,
            tensors.out,
            tensors.workspace,
            static_cast<int>(tensors.tokens),
            tensors.residual_stride,
            tensors.out_stride};
}

/// Two neighbouring columns of one token.
__device__ inline void store_partial(const Results& results, Pair at, int part, int product, float first,
                                     float second) {
    if (at.column >= out || at.token >= results.tokens) return;
    float* to = results.workspace + (static_cast<int64>(part) * products + product) * results.tokens * out +
                static_cast<int64>(at.token) * out + at.column;
    *reinterpret_cast<float2*>(to) = {first, second};
}

/// Threads of a block of the second launch, and results a thread.
inline constexpr int combine_threads = 256;
inline constexpr int combine_width = 4;

/// Four sums, the parts added in order: the result does not depend on which block came first.
__device__ inline float4 sum_partials(const float* partials, int product, int64 index, int64 count) {
    float4 words[Tuned::split];
#pragma unroll
    for (int part = 0; part < Tuned::split; ++part) {
        words[part] =
            *reinterpret_cast<const float4*>(partials + (part * products + product) * count + index);
    }
    float4 sum = words[0];
#pragma unroll
    for (int part = 1; part < Tuned::split; ++part) {
        sum.x += words[part].x;
        sum.y += words[part].y;
        sum.z += words[part].z;
        sum.w += words[part].w;
    }
    return sum;
}

/// Data's way: partial sums (level 2) -> registers -> global.
__device__ inline void combine(const Results& results) {
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const int64 count = static_cast<int64>(results.tokens) * out;
    const int64 index = (static_cast<int64>(blockIdx.x) * combine_threads + threadIdx.x) * combine_width;
    if (index >= count) return;
    float4 sum = sum_partials(results.workspace, 0, index, count);
    const Pair at{static_cast<int>(index / out), static_cast<int>(index % out)};
    if constexpr (gated) {
        const float4 up = sum_partials(results.workspace, 1, index, count);
        sum = {join_gated(sum.x, up.x), join_gated(sum.y, up.y), join_gated(sum.z, up.z),
               join_gated(sum.w, up.w)};
    } else {
        results.finish_columns<true>(at, sum.x, sum.y);
        results.finish_columns<true>({at.token, at.column + 2}, sum.z, sum.w);
    }
    store_packet(results.result + at.token * results.out_stride + at.column,
                 pack<Element>({sum.x, sum.y, sum.z, sum.w}));
}

}  // namespace hone::linear::tiles

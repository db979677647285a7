// Sums and maxima over groups of threads: part of a warp, a warp, several warps of a block. Every thread gets
// the result; the order of additions depends on the group's size alone, so results are the same at every
// launch.
#pragma once

#include "device/types.cuh"

namespace hone {

struct Sum {
    __device__ static float combine(float a, float b) { return a + b; }
};
struct Max {
    __device__ static float combine(float a, float b) { return fmaxf(a, b); }
};

/// Over `width` neighbouring lanes, a power of two up to 32.
template <class Op, int width>
__device__ inline float reduce_lanes(float value) {
#pragma unroll
    for (int distance = width / 2; distance > 0; distance /= 2) {
        value = Op::combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    return value;
}

/// Combines `count` partial results that stand side by side in shared memory.
template <class Op, int count>
__device__ inline float combine_partials(const float* partials) {
    float result = partials[0];
#pragma unroll
    for (int i = 1; i < count; ++i) result = Op::combine(result, partials[i]);
    return result;
}

/// Over groups of `lanes` consecutive threads of a block of `threads`, both powers of two. All threads of the
/// block must take part. One barrier a reduction: partials alternate between two buffers, so a buffer is
/// written again only after the barrier of the reduction in between.
template <int threads, int lanes>
class GroupReducer {
  public:
    static constexpr int warps = threads < 32 ? 1 : threads / 32;
    static constexpr int warps_per_group = lanes < 32 ? 1 : lanes / 32;
    /// Two values at once, twice buffered.
    struct Scratch {
        float partials[2][2][warps];
    };

    __device__ explicit GroupReducer(Scratch& scratch) : scratch_(scratch) {}

    template <class Op>
    __device__ float reduce(float value) {
        value = reduce_lanes<Op, (lanes < 32 ? lanes : 32)>(value);
        if constexpr (warps_per_group == 1) return value;
        float* partials = scratch_.partials[parity_][0];
        if (threadIdx.x % 32 == 0) partials[threadIdx.x / 32] = value;
        __syncthreads();
        parity_ ^= 1;
        return combine_partials<Op, warps_per_group>(partials + first_warp());
    }

    /// Two reductions for the price of one barrier.
    template <class OpA, class OpB>
    __device__ void reduce(float& a, float& b) {
        a = reduce_lanes<OpA, (lanes < 32 ? lanes : 32)>(a);
        b = reduce_lanes<OpB, (lanes < 32 ? lanes : 32)>(b);
        if constexpr (warps_per_group == 1) return;
        float(&partials)[2][warps] = scratch_.partials[parity_];
        if (threadIdx.x % 32 == 0) {
            partials[0][threadIdx.x / 32] = a;
            partials[1][threadIdx.x / 32] = b;
        }
        __syncthreads();
        parity_ ^= 1;
        a = combine_partials<OpA, warps_per_group>(partials[0] + first_warp());
        b = combine_partials<OpB, warps_per_group>(partials[1] + first_warp());
    }

  private:
    __device__ static int first_warp() { return threadIdx.x / 32 / warps_per_group * warps_per_group; }

    Scratch& scratch_;
    int parity_ = 0;
};

}  // namespace hone

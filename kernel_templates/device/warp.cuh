// Sums, scans and extremes of integers over a warp: redux.sync from sm_80 on, else shuffles. Every lane gets
// the result; all lanes take part.
#pragma once

#include "device/types.cuh"

namespace hone {

inline constexpr uint32 all_lanes = 0xffffffffu;

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x) % 32; }
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x) / 32; }

__device__ inline uint32 warp_sum(uint32 value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(all_lanes, value);
#else
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(all_lanes, value, distance);
    return value;
#endif
}
__device__ inline uint32 warp_max(uint32 value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(all_lanes, value);
#else
    for (int distance = 16; distance > 0; distance /= 2)
        value = max(value, __shfl_xor_sync(all_lanes, value, distance));
    return value;
#endif
}

/// Values are below 2^53.
__device__ inline uint64 warp_sum(uint64 value) {
    constexpr int low_bits = 26;
    const uint64 low = warp_sum(static_cast<uint32>(value & ((1u << low_bits) - 1)));
    return (static_cast<uint64>(warp_sum(static_cast<uint32>(value >> low_bits))) << low_bits) + low;
}
__device__ inline uint64 warp_max(uint64 value) {
    const uint32 high = static_cast<uint32>(value >> 32);
    const uint32 largest = warp_max(high);
    const uint32 low = warp_max(high == largest ? static_cast<uint32>(value) : 0u);
    return static_cast<uint64>(largest) << 32 | low;
}

/// The sum over this lane and those before it.
template <class T>
__device__ inline T inclusive_sum(T value) {
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const T before = __shfl_up_sync(all_lanes, value, distance);
        if (lane_index() >= distance) value += before;
    }
    return value;
}

/// The first lane in which `found` holds; 32 where none.
__device__ inline int first_lane(bool found) {
    const uint32 lanes = __ballot_sync(all_lanes, found);
    return lanes == 0 ? 32 : __ffs(static_cast<int>(lanes)) - 1;
}

}  // namespace hone

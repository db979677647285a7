// Codes of x, in a launch in front of products of codes: the row of every place becomes codes and scales in
// the workspace, place by place, so that products find sorted rows whether x is gathered or not. A scale is
// the largest magnitude by the largest code's: of a row, or of each 128 columns of it; codes are rounded in
// the float32 steps of quantized_linear/quantize.cuh. The .cu that includes this says how many elements a
// memory access may have (`codes::vector`).
//
// Data's way: a block takes a place; x comes twice, the second time from level 1. One barrier, in the
// reduction; 128 columns are those of neighbouring lanes. The product may begin at once: it waits for this
// grid's end.
#pragma once

#include "device/packet.cuh"
#include "device/reduce.cuh"
#include "device/sync.cuh"
#include "quantized_expert_linear/tensors.cuh"

namespace hone::quantized_expert_linear::codes {

inline constexpr int threads = 128;  // as in launches.cpp
inline constexpr int chunk = threads * vector;
static_assert(is_packed || in % vector == 0, "packets do not reach past the end of a row");

/// Elements of x at the thread's columns behind `first`; zeros past the end of the row.
__device__ inline void load(const Element* row, int first, float (&values)[vector]) {
    const int column = first + static_cast<int>(threadIdx.x) * vector;
    unpack(load_packet<Element, vector>(row + (column < in ? column : 0)), values);
    if (column < in) return;
#pragma unroll
    for (int i = 0; i < vector; ++i) values[i] = 0.0f;
}
__device__ inline void store(Code* row, int first, float (&values)[vector], float factor) {
    const int column = first + static_cast<int>(threadIdx.x) * vector;
    if (column >= in) return;
#pragma unroll
    for (int i = 0; i < vector; ++i) values[i] *= factor;
    store_packet(row + column, pack<Code>(values));
}

__device__ inline float largest_of(const float (&values)[vector]) {
    float largest = 0.0f;
#pragma unroll
    for (int i = 0; i < vector; ++i) largest = fmaxf(largest, fabsf(values[i]));
    return largest;
}
__device__ inline float scale_of(float largest) {
    return fmaxf(largest, quantized_linear::least_magnitude) * (1.0f / quantized_linear::largest_code);
}

__device__ inline void code_blocks(const Element* x, Code* to, float* scales) {
    // At least a lane a block, where accesses are narrow.
    constexpr int lanes = scaled_block / vector < 32 ? scaled_block / vector : 32;
    static_assert(!has_blocks || lanes * vector == scaled_block, "a warp's lanes share a block");
    for (int first = 0; first < in; first += chunk) {
        float values[vector];
        load(x, first, values);
        const float scale = scale_of(reduce_lanes<Max, lanes>(largest_of(values)));
        const int column = first + static_cast<int>(threadIdx.x) * vector;
        if (column < in && column % scaled_block == 0) scales[column / scaled_block] = scale;
        store(to, first, values, 1.0f / scale);
    }
}

__device__ inline void code_row(const Element* x, Code* to, float* scale_at) {
    using Reducer = GroupReducer<threads, threads>;
    __shared__ Reducer::Scratch scratch;
    float largest = 0.0f;
    for (int first = 0; first < in; first += chunk) {
        float values[vector];
        load(x, first, values);
        largest = fmaxf(largest, largest_of(values));
    }
    const float scale = scale_of(Reducer(scratch).reduce<Max>(largest));
    if (threadIdx.x == 0) *scale_at = scale;
    for (int first = 0; first < in; first += chunk) {
        float values[vector];
        load(x, first, values);
        store(to, first, values, 1.0f / scale);
    }
}

__device__ inline void run(const Tensors& tensors) {
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const int place = static_cast<int>(blockIdx.x);
    const Room room = room_of(tensors);
    uint8* const workspace = reinterpret_cast<uint8*>(tensors.workspace);
    Code* const to = reinterpret_cast<Code*>(workspace + room.codes_at) + static_cast<int64>(place) * in;
    float* const scales =
        reinterpret_cast<float*>(workspace + room.scales_at) + static_cast<int64>(place) * groups;
    if constexpr (has_blocks) {
        code_blocks(tensors.x_at(place), to, scales);
    } else {
        code_row(tensors.x_at(place), to, scales);
    }
}

}  // namespace hone::quantized_expert_linear::codes

/// In every image of a variant, empty where x is multiplied as it is.
extern "C" __global__ void __launch_bounds__(hone::quantized_expert_linear::codes::threads)
    quantized_expert_linear_codes(HONE_PARAMETERS(quantized_expert_linear_codes)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(quantized_expert_linear_codes)};
    using namespace hone::quantized_expert_linear;
    if constexpr (!is_packed) codes::run(tensors);
}

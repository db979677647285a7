// RMSNorm in front of a product, as a launch of its own: n = x / sqrt(mean(x^2) + epsilon) * norm_weight in
// float32, rounded once to the element type and written to the workspace, where the product reads it as its
// x. The .cu that includes this says first how many elements a memory access may have (`normalize::vector`).
//
// Data's way: a block takes a row. x comes from global memory into registers, all packets in flight at once;
// what does not fit there is read again after the reduction, from level 1 or 2. One barrier, in the
// reduction. n goes straight to global memory. The product may begin at once: it waits for this grid's end.
#pragma once

#include "device/packet.cuh"
#include "device/reduce.cuh"
#include "device/sync.cuh"
#include "linear/epilogue.cuh"

namespace hone::linear::normalize {

inline constexpr int threads = 256;
inline constexpr int packets = (in + threads * vector - 1) / (threads * vector);
/// Packets of a row that a thread keeps.
inline constexpr int held = packets < 8 ? packets : 8;
static_assert(in % vector == 0, "packets must not reach past the end of a row");

using PacketType = Packet<Element, vector>;

__device__ inline int column_of(int packet) { return (packet * threads + threadIdx.x) * vector; }
__device__ inline PacketType load(const Element* row, int packet) {
    const int column = column_of(packet);
    return load_packet<Element, vector>(row + (column < in ? column : 0));
}

__device__ inline void add_squares(const PacketType& packet, float& squares) {
    float values[vector];
    unpack(packet, values);
#pragma unroll
    for (int i = 0; i < vector; ++i) squares = fmaf(values[i], values[i], squares);
}

__device__ inline PacketType scaled(const PacketType& x, const PacketType& norm_weight, float factor) {
    float values[vector], weights[vector];
    unpack(x, values);
    unpack(norm_weight, weights);
#pragma unroll
    for (int i = 0; i < vector; ++i) values[i] = values[i] * factor * weights[i];
    return pack<Element>(values);
}

__device__ inline void run(const Element* x, const Element* norm_weight, Element* normalized, int64 x_stride,
                           float epsilon) {
    using Reducer = GroupReducer<threads, threads>;
    __shared__ Reducer::Scratch scratch;
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const Element* const row = x + blockIdx.x * x_stride;
    PacketType kept[held];
#pragma unroll
    for (int p = 0; p < held; ++p) kept[p] = load(row, p);

    float squares = 0.0f;
#pragma unroll
    for (int p = 0; p < held; ++p) {
        if (column_of(p) < in) add_squares(kept[p], squares);
    }
#pragma unroll 4
    for (int p = held; p < packets; ++p) {
        if (column_of(p) < in) add_squares(load(row, p), squares);
    }
    squares = Reducer(scratch).reduce<Sum>(squares);
    const float factor = rsqrtf(squares * (1.0f / in) + epsilon);

    Element* const to = normalized + static_cast<int64>(blockIdx.x) * in;
    const auto store = [&](const PacketType& packet, int p) {
        if (column_of(p) < in) store_packet(to + column_of(p), scaled(packet, load(norm_weight, p), factor));
    };
#pragma unroll
    for (int p = 0; p < held; ++p) store(kept[p], p);
#pragma unroll 4
    for (int p = held; p < packets; ++p) store(load(row, p), p);
}

}  // namespace hone::linear::normalize

/// In every image of the variant, empty where there is no norm.
extern "C" __global__ void __launch_bounds__(hone::linear::normalize::threads)
    linear_normalize(HONE_PARAMETERS(linear_normalize)) {
    const auto a = HONE_ARGUMENTS(linear_normalize);
    using hone::linear::Element;
    if constexpr (hone::linear::has_norm)
        hone::linear::normalize::run(reinterpret_cast<const Element*>(a.x), a.norm_weight,
                                     reinterpret_cast<Element*>(a.normalized), a.x_stride, a.epsilon);
}

// Codes of x, in a launch in front of products of codes: 16-bit x, behind an RMSNorm where the problem has
// one (in float32, not rounded in between), becomes codes and scales in the workspace. A scale is the largest
// magnitude by the largest code's: of a row, or of each 128 columns of it. The .cu that includes this says
// first how many elements a memory access may have (`quantize::vector`), and by Tuned::programmatic whether
// the launch is programmatic.
//
// Data's way: a block takes a row. x comes from global memory into registers, all packets in flight at once;
// what does not fit there is read again after the reduction, from level 1 or 2. One barrier, in the
// reduction; 128 columns are those of neighbouring lanes. Codes go straight to global memory. The product
// may begin at once: it waits for this grid's end.
#pragma once

#include "device/packet.cuh"
#include "device/reduce.cuh"
#include "device/sync.cuh"
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear::quantize {

inline constexpr int threads = 256;
inline constexpr int packets = (in + threads * vector - 1) / (threads * vector);
/// Packets of a row that a thread keeps.
inline constexpr int held = packets < 8 ? packets : 8;
static_assert(!quantizes_x || in % vector == 0, "packets must not reach past the end of a row");

using PacketType = Packet<Element, vector>;

__device__ inline int column_of(int packet) { return (packet * threads + threadIdx.x) * vector; }

struct Row {
    const Element* x;
    const Element* norm_weight;
    Code* codes;
    float* scales;

    /// x, or x * norm_weight; past the end of the row 0.
    __device__ void values(const PacketType& packet, int p, float (&v)[vector]) const {
        unpack(packet, v);
        if constexpr (linear::has_norm) {
            float weights[vector];
            unpack(load(norm_weight, p), weights);
#pragma unroll
            for (int i = 0; i < vector; ++i) v[i] *= weights[i];
        }
        if (column_of(p) < in) return;
#pragma unroll
        for (int i = 0; i < vector; ++i) v[i] = 0.0f;
    }
    __device__ PacketType load(int p) const { return load(x, p); }
    __device__ void store(float (&v)[vector], int p, float factor) const {
        if (column_of(p) >= in) return;
#pragma unroll
        for (int i = 0; i < vector; ++i) v[i] *= factor;
        store_packet(codes + column_of(p), pack<Code>(v));
    }

  private:
    __device__ static PacketType load(const Element* from, int p) {
        return load_packet<Element, vector>(from + (column_of(p) < in ? column_of(p) : 0));
    }
};

__device__ inline float largest_of(const float (&v)[vector]) {
    float largest = 0.0f;
#pragma unroll
    for (int i = 0; i < vector; ++i) largest = fmaxf(largest, fabsf(v[i]));
    return largest;
}
__device__ inline float scale_of(float largest) {
    return fmaxf(largest, least_magnitude) * (1.0f / largest_code);
}

/// Calls visit(packet, p) for all packets of the row.
template <class Visit>
__device__ inline void for_each_packet(const Row& row, const PacketType (&kept)[held], Visit visit) {
#pragma unroll
    for (int p = 0; p < held; ++p) visit(kept[p], p);
#pragma unroll 4
    for (int p = held; p < packets; ++p) visit(row.load(p), p);
}

/// Sum of x^2, and the largest magnitude of a value that is not yet multiplied with the norm's factor.
__device__ inline void measure(const Row& row, const PacketType (&kept)[held], float& squares,
                               float& largest) {
    for_each_packet(row, kept, [&](const PacketType& packet, int p) {
        float v[vector];
        if constexpr (linear::has_norm) {
            unpack(packet, v);
#pragma unroll
            for (int i = 0; i < vector; ++i)
                squares = column_of(p) < in ? fmaf(v[i], v[i], squares) : squares;
        }
        if constexpr (!has_blocks) {
            row.values(packet, p, v);
            largest = fmaxf(largest, largest_of(v));
        }
    });
}

__device__ inline void run(const Row& row, float epsilon) {
    using Reducer = GroupReducer<threads, threads>;
    __shared__ Reducer::Scratch scratch;
    PacketType kept[held];
#pragma unroll
    for (int p = 0; p < held; ++p) kept[p] = row.load(p);

    float squares = 0.0f, largest = 0.0f;
    if constexpr (linear::has_norm || !has_blocks) {
        measure(row, kept, squares, largest);
        Reducer(scratch).reduce<Sum, Max>(squares, largest);
    }
    const float norm = linear::has_norm ? rsqrtf(squares * (1.0f / in) + epsilon) : 1.0f;

    if constexpr (has_blocks) {
        for_each_packet(row, kept, [&](const PacketType& packet, int p) {
            float v[vector];
            row.values(packet, p, v);
            const float scale = scale_of(norm * reduce_lanes<Max, scaled_block / vector>(largest_of(v)));
            if (column_of(p) < in && column_of(p) % scaled_block == 0)
                row.scales[column_of(p) / scaled_block] = scale;
            row.store(v, p, norm / scale);
        });
    } else {
        const float scale = scale_of(norm * largest);
        if (threadIdx.x == 0) *row.scales = scale;
        for_each_packet(row, kept, [&](const PacketType& packet, int p) {
            float v[vector];
            row.values(packet, p, v);
            row.store(v, p, norm / scale);
        });
    }
}

}  // namespace hone::quantized_linear::quantize

/// In every image of the variant, empty where x comes as codes.
extern "C" __global__ void __launch_bounds__(hone::quantized_linear::quantize::threads)
    quantized_linear_quantize(HONE_PARAMETERS(quantized_linear_quantize)) {
    const auto a = HONE_ARGUMENTS(quantized_linear_quantize);
    using namespace hone;
    using namespace hone::quantized_linear;
    if constexpr (quantizes_x) {
        if constexpr (Tuned::programmatic != 0) {
            release_successor();
            wait_for_predecessor();
        }
        const int64 token = blockIdx.x;
        const Element* const x = reinterpret_cast<const Element*>(a.x);
        quantize::run({x + token * a.x_stride, a.norm_weight, reinterpret_cast<Code*>(a.codes) + token * in,
                       a.code_scales + token * groups},
                      a.epsilon);
    }
}

// RMSNorm backward, the part that all variants share: the tensors, which columns a thread owns, the two sums
// of a row and what follows from them, and the last launch, which adds partial rows of dweight.
//
// With r = rsqrt(mean(x^2) + epsilon) and g = dy * weight, a row needs the sums of x^2 and of g * x; then
// every element stands alone: dx = r * (g - x * share) with share = r^2 * mean(g * x), and dweight gains dy *
// x * r. All sums are float32, in an order that the launch alone decides: no atomics.
//
// dx may be dy or dsum itself: whoever writes an element of dx is the only one that needs those of dy and
// dsum, and has read them.
#pragma once

#include "device/packet.cuh"
#include "device/reduce.cuh"
#include "device/sync.cuh"
#include "hone_constants.h"

namespace hone::rmsnorm_backward {

using Element = DtypeOf<Shape::dtype>::type;

inline constexpr bool has_residual = Shape::residual != 0;
inline constexpr int hidden = static_cast<int>(Shape::hidden);

struct Tensors : Arguments {};

/// Columns of the `lane`-th of `lanes` threads that share a row: packet p starts at (p * lanes + lane) *
/// vector.
template <int lanes_, int vector_>
struct Layout {
    static constexpr int lanes = lanes_;
    static constexpr int vector = vector_;
    static constexpr int packets = (hidden + lanes * vector - 1) / (lanes * vector);
    static_assert(hidden % vector == 0, "packets must not reach past the end of a row");

    __device__ static int column(int lane, int packet) { return (packet * lanes + lane) * vector; }
    /// Known at compile time for all packets but the last.
    __device__ static bool inside(int lane, int packet) {
        return (packet + 1) * lanes * vector <= hidden || column(lane, packet) < hidden;
    }
    /// Where a load may go whether or not the packet is inside: loads stand under no branch, because the
    /// moves that join two paths would wait for each of them in turn.
    __device__ static int readable_column(int lane, int packet) {
        return inside(lane, packet) ? column(lane, packet) : 0;
    }
};

/// Makes the compiler forget what it knows of a packet's elements: it would otherwise keep them as floats
/// from the reduction to the gradients, in twice the registers, instead of converting them again.
template <int vector>
__device__ inline void forget_floats(Packet<Element, vector>& packet) {
    typename Word<sizeof(packet)>::type word;
    memcpy(&word, &packet, sizeof(word));
    if constexpr (sizeof(packet) == 16) {
        asm volatile("" : "+r"(word.x), "+r"(word.y), "+r"(word.z), "+r"(word.w));
    } else if constexpr (sizeof(packet) == 8) {
        asm volatile("" : "+r"(word.x), "+r"(word.y));
    } else if constexpr (sizeof(packet) == 4) {
        asm volatile("" : "+r"(word));
    } else {
        asm volatile("" : "+h"(word));
    }
    memcpy(&packet, &word, sizeof(word));
}

/// What turns the elements of a row into gradients.
struct RowFactors {
    float factor;  ///< r
    float share;   ///< r^2 * mean(g * x)
};

/// One thread's part of a row's sums, in two chains each that do not wait for one another.
struct RowSums {
    float squares[2] = {};   ///< squares of x
    float products[2] = {};  ///< products of g and x

    template <int vector>
    __device__ void add(const Packet<Element, vector>& dy_packet, const Packet<Element, vector>& x_packet,
                        const Packet<Element, vector>& weight_packet) {
#pragma unroll
        for (int i = 0; i < vector; ++i) {
            const float value = to_float(x_packet.elements[i]);
            const float gradient = to_float(dy_packet.elements[i]) * to_float(weight_packet.elements[i]);
            squares[i % 2] = fmaf(value, value, squares[i % 2]);
            products[i % 2] = fmaf(gradient, value, products[i % 2]);
        }
    }

    /// Over all threads that share the row.
    template <class Reducer>
    __device__ RowFactors factors(Reducer& reducer, float epsilon) const {
        float square = squares[0] + squares[1];
        float product = products[0] + products[1];
        reducer.template reduce<Sum, Sum>(square, product);
        constexpr float inverse = 1.0f / hidden;
        const float factor = rsqrtf(fmaf(square, inverse, epsilon));
        return {factor, product * inverse * factor * factor};
    }
};

/// dx of one packet; adds what the packet contributes to dweight to `partials`.
template <int vector>
__device__ inline Packet<Element, vector> gradients(const RowFactors& row,
                                                    const Packet<Element, vector>& dy_packet,
                                                    const Packet<Element, vector>& x_packet,
                                                    const Packet<Element, vector>& weight_packet,
                                                    const Packet<Element, vector>& dsum_packet,
                                                    float* partials) {
    float result[vector];
#pragma unroll
    for (int i = 0; i < vector; ++i) {
        const float dy_value = to_float(dy_packet.elements[i]);
        const float x_value = to_float(x_packet.elements[i]);
        partials[i] = fmaf(dy_value * x_value, row.factor, partials[i]);
        const float centred = fmaf(dy_value, to_float(weight_packet.elements[i]), -x_value * row.share);
        result[i] = has_residual ? fmaf(centred, row.factor, to_float(dsum_packet.elements[i]))
                                 : centred * row.factor;
    }
    return pack<Element>(result);
}

/// Adds the partial sums that the `groups` groups of a block hold for the same `columns` columns, group after
/// group, and writes those below `limit` to `to`. All threads of the block take part.
template <int threads, int groups, int columns>
class GroupExchange {
  public:
    struct Scratch {
        alignas(16) float values[groups][columns];
    };

    __device__ explicit GroupExchange(Scratch& scratch) : scratch_(scratch) {}

    template <int vector>
    __device__ void combine(int group, int lane, const float* partials, float* to, int limit) {
        __syncthreads();  // everyone has read what was here before
#pragma unroll
        for (int i = 0; i < vector; ++i) scratch_.values[group][lane * vector + i] = partials[i];
        __syncthreads();
        for (int column = threadIdx.x; column < columns && column < limit; column += threads) {
            float sum = scratch_.values[0][column];
#pragma unroll 8
            for (int g = 1; g < groups; ++g) sum += scratch_.values[g][column];
            to[column] = sum;
        }
    }

  private:
    Scratch& scratch_;
};

/// The last launch: dweight = the sum of `count` rows of partials [count, hidden]. A block of `sum_threads`
/// has `lanes` columns of packets; its threads / lanes walkers each take every so many-th row, and their sums
/// meet in shared memory.
inline constexpr int sum_threads = 256;

template <int lanes>
__device__ inline void sum_partials(const float* partials, int count, Element* dweight) {
    constexpr int vector = hidden % 4 == 0 ? 4 : 1;
    constexpr int walkers = sum_threads / lanes;
    constexpr int columns = lanes * vector;
    __shared__ float sums[walkers][columns];
    const int lane = threadIdx.x % lanes;
    const int walker = threadIdx.x / lanes;
    const int first = blockIdx.x * columns;
    const int column = first + lane * vector;
    const float* from = partials + (column < hidden ? column : 0);
    float sum[vector] = {};
#pragma unroll 8
    for (int row = walker; row < count; row += walkers) {
        float values[vector];
        unpack(load_packet<float, vector>(from + static_cast<int64>(row) * hidden), values);
#pragma unroll
        for (int i = 0; i < vector; ++i) sum[i] += values[i];
    }
#pragma unroll
    for (int i = 0; i < vector; ++i) sums[walker][lane * vector + i] = sum[i];
    __syncthreads();
    if (threadIdx.x >= columns || first + static_cast<int>(threadIdx.x) >= hidden) return;
    float total = sums[0][threadIdx.x];
#pragma unroll 8
    for (int i = 1; i < walkers; ++i) total += sums[i][threadIdx.x];
    dweight[first + threadIdx.x] = from_float<Element>(total);
}

}  // namespace hone::rmsnorm_backward

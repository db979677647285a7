// One row of a norm, the part that all variants share: what the tensors are, which columns a thread owns, how
// statistics follow from a row, and how the result is written.
//
// Data's way: x (and residual) come once from global memory into the row's home - registers, this thread's
// own slots of shared memory, or global memory again - as packets; values become float at each use. A thread
// only ever touches its own packets, so no barrier guards the home; barriers stand in the reductions alone.
//
// With a residual the row is s = x + residual, rounded to the element type and written to `sum` BEFORE it is
// normalized: the result equals that of the unfused operators. `sum` may alias x or residual, `out` may alias
// x.
#pragma once

#include "device/level_2_loads.cuh"
#include "device/packet.cuh"
#include "device/reduce.cuh"
#include "device/sync.cuh"
#include "hone_constants.h"

namespace hone::norm {

using Element = DtypeOf<Shape::dtype>::type;

/// Choices of the field `output`.
inline constexpr bool quantized = Shape::output != 0;
inline constexpr bool has_residual = Shape::residual != 0;
/// Whether the weight counts as 1 + weight.
inline constexpr bool unit_offset = Shape::unit_offset != 0;
inline constexpr int hidden = static_cast<int>(Shape::hidden);

using Code = Conditional<Shape::output == 1, int8, fp8>::type;
using Output = Conditional<quantized, Code, Element>::type;
inline constexpr float largest_code = Shape::output == 1 ? 127.0f : 448.0f;

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

/// What the caches are told of a row that is read once. Level 2 lets its lines go before others, so that what
/// is written stays there for who reads it next; or behind others, so that what is written goes to memory
/// soon and in the order in which it was written, which memory that is read all the while takes faster.
enum class RowLoad : int { normal = 0, streaming = 2, first_to_leave = 3, last_to_leave = 4 };

template <RowLoad how, int vector>
__device__ inline Packet<Element, vector> load_of_row(const Element* address) {
#if __CUDA_ARCH__ >= 900
    if constexpr (how == RowLoad::first_to_leave || how == RowLoad::last_to_leave) {
        constexpr L2Hint level_2 = how == RowLoad::first_to_leave ? L2Hint::evict_first : L2Hint::evict_last;
        return load_packet_of_level_2<Element, vector, level_2>(address);
    }
#endif
    constexpr LoadHint hint = how == RowLoad::normal ? LoadHint::normal : LoadHint::streaming;
    return load_packet<Element, vector, hint>(address);
}

template <int vector>
__device__ inline Packet<Element, vector> add(const Packet<Element, vector>& a,
                                              const Packet<Element, vector>& b) {
    float left[vector], right[vector];
    unpack(a, left);
    unpack(b, right);
#pragma unroll
    for (int i = 0; i < vector; ++i) left[i] += right[i];
    return pack<Element>(left);
}

/// What turns a value into a result: y = (value - mean) * factor * weight + bias, and the largest |y| of the
/// row.
struct Scaling {
    float mean = 0;
    float mean_rest = 0;
    float factor = 0;
    float largest = 0;
};

/// Visits the packets of a row that exist. A row type offers, for one thread:
///
///   layout              its Layout
///   unroll              how many packets are unrolled: all of them where the row lives in registers
///   lane                which columns the thread owns
///   present             whether the row exists; threads of absent rows join reductions, no more
///   inside(p)           whether packet p exists; values of packets outside do not count
///   values(p, floats)   the row; weights(p, floats) and biases(p, floats) its parameters
template <class Row, class Visit>
__device__ inline void for_each_packet(const Row& row, Visit visit) {
#pragma unroll(Row::unroll)
    for (int packet = 0; packet < Row::layout::packets; ++packet) {
        if (row.inside(packet)) visit(packet);
    }
}

template <int count>
__device__ inline float sum_of(const float (&values)[count]) {
    float sum = values[0];
#pragma unroll
    for (int i = 1; i < count; ++i) sum += values[i];
    return sum;
}

/// RMSNorm: factor = 1 / sqrt(mean(x^2) + epsilon). The largest |y| needs no second reduction: it is factor
/// times the largest |x * weight|.
struct RootMeanSquare {
    static constexpr bool has_bias = false;

    template <class Row, class Reducer>
    __device__ static Scaling scaling(const Row& row, Reducer& reducer, float epsilon) {
        constexpr int vector = Row::layout::vector;
        float squares[vector] = {};
        float largest = 0;
        for_each_packet(row, [&](int packet) {
            float value[vector];
            row.values(packet, value);
#pragma unroll
            for (int i = 0; i < vector; ++i) squares[i] = fmaf(value[i], value[i], squares[i]);
            if constexpr (quantized) {
                float weight[vector];
                row.weights(packet, weight);
#pragma unroll
                for (int i = 0; i < vector; ++i) largest = fmaxf(largest, fabsf(value[i] * weight[i]));
            }
        });
        float total = sum_of(squares);
        if constexpr (quantized) {
            reducer.template reduce<Sum, Max>(total, largest);
        } else {
            total = reducer.template reduce<Sum>(total);
        }
        const float factor = rsqrtf(total * (1.0f / hidden) + epsilon);
        return {0.0f, 0.0f, factor, largest * factor};
    }
};

/// LayerNorm: mean first, then the variance of the centred values (two passes over the home: no
/// cancellation).
template <bool with_bias>
struct MeanAndVariance {
    static constexpr bool has_bias = with_bias;

    template <class Row, class Reducer>
    __device__ static Scaling scaling(const Row& row, Reducer& reducer, float epsilon) {
        constexpr int vector = Row::layout::vector;
        float sums[vector] = {};
        for_each_packet(row, [&](int packet) {
            float value[vector];
            row.values(packet, value);
#pragma unroll
            for (int i = 0; i < vector; ++i) sums[i] += value[i];
        });
        const float mean = reducer.template reduce<Sum>(sum_of(sums)) * (1.0f / hidden);

        float rests[vector] = {};
        float squares[vector] = {};
        for_each_packet(row, [&](int packet) {
            float value[vector];
            row.values(packet, value);
#pragma unroll
            for (int i = 0; i < vector; ++i) {
                const float centred = value[i] - mean;
                rests[i] += centred;
                squares[i] = fmaf(centred, centred, squares[i]);
            }
        });
        float rest = sum_of(rests);
        float square = sum_of(squares);
        reducer.template reduce<Sum, Sum>(rest, square);
        rest *= 1.0f / hidden;
        const float variance = fmaf(-rest, rest, square * (1.0f / hidden));
        Scaling scaling{mean, rest, rsqrtf(variance + epsilon), 0.0f};
        if constexpr (quantized) scaling.largest = reducer.template reduce<Max>(largest_result(row, scaling));
        return scaling;
    }

    template <class Row>
    __device__ static float largest_result(const Row& row, const Scaling& scaling) {
        constexpr int vector = Row::layout::vector;
        float largest = 0;
        for_each_packet(row, [&](int packet) {
            float result[vector];
            results<MeanAndVariance>(row, packet, scaling, result);
#pragma unroll
            for (int i = 0; i < vector; ++i) largest = fmaxf(largest, fabsf(result[i]));
        });
        return largest;
    }
};

/// y of one packet, before quantization.
template <class Statistic, class Row, int vector>
__device__ inline void results(const Row& row, int packet, const Scaling& scaling, float (&result)[vector]) {
    float weight[vector];
    row.values(packet, result);
    row.weights(packet, weight);
#pragma unroll
    for (int i = 0; i < vector; ++i)
        result[i] = (result[i] - scaling.mean - scaling.mean_rest) * scaling.factor * weight[i];
    if constexpr (Statistic::has_bias) {
        float bias[vector];
        row.biases(packet, bias);
#pragma unroll
        for (int i = 0; i < vector; ++i) result[i] += bias[i];
    }
}

/// Scale of a quantized row: largest |y| / largest code, and 1 for a row of zeros.
__device__ inline float quantization_scale(float largest) {
    return largest > 0.0f ? largest / largest_code : 1.0f;
}

/// Writes y (or its codes) of one row, and by the row's first thread its scale.
template <class Statistic, StoreHint hint, class Row>
__device__ inline void write_row(const Row& row, const Tensors& tensors, int64 index,
                                 const Scaling& scaling) {
    constexpr int vector = Row::layout::vector;
    if (!row.present) return;
    float inverse = 1.0f;
    if constexpr (quantized) {
        const float scale = quantization_scale(scaling.largest);
        inverse = 1.0f / scale;
        if (row.lane == 0) tensors.scale[index] = scale;
    }
    for_each_packet(row, [&](int packet) {
        float result[vector];
        results<Statistic>(row, packet, scaling, result);
        if constexpr (quantized) {
#pragma unroll
            for (int i = 0; i < vector; ++i) result[i] *= inverse;
        }
        auto* const address =
            tensors.out + index * tensors.out_stride + Row::layout::column(row.lane, packet);
        store_packet<hint>(address, pack<Output>(result));
    });
}

/// Weight and bias: registers when they are loaded ahead of the reduction, else from memory (L1, L2) at each
/// use.
template <class Statistic, class Layout, bool early>
struct Parameters {
    using PacketType = Packet<Element, Layout::vector>;

    __device__ void load(const Tensors& tensors, int lane) {
        weight_ = tensors.weight;
        bias_ = tensors.bias;
        lane_ = lane;
        if constexpr (early) {
#pragma unroll
            for (int packet = 0; packet < Layout::packets; ++packet) {
                const int column = Layout::readable_column(lane, packet);
                weights_[packet] = load_packet<Element, Layout::vector>(weight_ + column);
                if constexpr (Statistic::has_bias)
                    biases_[packet] = load_packet<Element, Layout::vector>(bias_ + column);
            }
        }
    }
    __device__ void weights(int packet, float (&values)[Layout::vector]) const {
        get(weights_, weight_, packet, values);
        if constexpr (unit_offset) {
#pragma unroll
            for (int i = 0; i < Layout::vector; ++i) values[i] += 1.0f;
        }
    }
    __device__ void biases(int packet, float (&values)[Layout::vector]) const {
        get(biases_, bias_, packet, values);
    }

  private:
    __device__ void get(const PacketType* held, const Element* from, int packet,
                        float (&values)[Layout::vector]) const {
        if constexpr (early) {
            unpack(held[packet], values);
        } else {
            unpack(load_packet<Element, Layout::vector>(from + Layout::column(lane_, packet)), values);
        }
    }

    const Element* weight_;
    const Element* bias_;
    int lane_;
    PacketType weights_[early ? Layout::packets : 1];
    PacketType biases_[early && Statistic::has_bias ? Layout::packets : 1];
};

/// A row held in registers. A thread of an absent row reads the last row instead and writes nothing.
template <class Layout, class ParametersType>
struct RegisterRow {
    using layout = Layout;
    static constexpr int unroll = Layout::packets;

    __device__ bool inside(int packet) const { return Layout::inside(lane, packet); }
    __device__ void values(int packet, float (&out)[Layout::vector]) const { unpack(packets[packet], out); }
    __device__ void weights(int packet, float (&out)[Layout::vector]) const {
        parameters->weights(packet, out);
    }
    __device__ void biases(int packet, float (&out)[Layout::vector]) const {
        parameters->biases(packet, out);
    }

    /// Issues all loads of the row.
    template <RowLoad how>
    __device__ void read(const Tensors& tensors, int64 index) {
        present = index < tensors.rows;
        const int64 source = present ? index : tensors.rows - 1;
        load<how>(tensors.x + source * tensors.x_stride, packets);
        if constexpr (has_residual) load<how>(tensors.residual + source * tensors.residual_stride, addends);
    }

    /// s = x + residual, kept and written to `sum`.
    template <StoreHint hint>
    __device__ void add_residual(const Tensors& tensors, int64 index) {
#pragma unroll
        for (int packet = 0; packet < Layout::packets; ++packet)
            packets[packet] = add(packets[packet], addends[packet]);
        if (!present) return;
        auto* const sum = tensors.sum + index * tensors.sum_stride;
        for_each_packet(*this, [&](int packet) {
            store_packet<hint>(sum + Layout::column(lane, packet), packets[packet]);
        });
    }

    const ParametersType* parameters;
    int lane;
    bool present;
    Packet<Element, Layout::vector> packets[Layout::packets];
    Packet<Element, Layout::vector> addends[has_residual ? Layout::packets : 1];

  private:
    template <RowLoad how>
    __device__ void load(const Element* row, Packet<Element, Layout::vector>* to) const {
#pragma unroll
        for (int packet = 0; packet < Layout::packets; ++packet) {
            to[packet] = load_of_row<how, Layout::vector>(row + Layout::readable_column(lane, packet));
        }
    }
};

}  // namespace hone::norm

// Norm and rotation of one head, column by column.
#pragma once

#include "attention_decode/tensors.cuh"

namespace hone::attention_decode {

inline constexpr bool interleaved = Shape::style != 0;
inline constexpr bool has_norm = Shape::norm != 0;
inline constexpr int rotary_dim = static_cast<int>(Shape::rotary_dim);

/// What a norm's weight counts as.
template <class T>
__device__ inline T counted(T weight) {
    return Shape::unit_offset != 0 ? T(1) + weight : weight;
}

/// Column `column` of a head at a position behind norm and rotation, in T, rounded to the element type.
template <class T>
__device__ inline T turned(const Tensors& t, const Element* head, const Element* weight, int position,
                           int column) {
    T factor = 1;
    if (has_norm) {
        T sum = 0;
        for (int i = 0; i < head_dim; ++i) {
            const T x = to_float(head[i]);
            sum += x * x;
        }
        factor = T(1) / sqrt(sum / head_dim + T(t.epsilon));
    }
    const auto value = [&](int i) {
        const T x = T(to_float(head[i])) * factor;
        return has_norm ? x * counted(T(to_float(weight[i]))) : x;
    };
    T result = value(column);
    if (column < rotary_dim) {
        constexpr int half = rotary_dim > 0 ? rotary_dim / 2 : 1;
        const bool first = interleaved ? column % 2 == 0 : column < half;
        const int angle = interleaved ? column / 2 : column % half;
        const int partner = interleaved ? column ^ 1 : first ? column + half : column - half;
        const int64 at = static_cast<int64>(position) * half + angle;
        const T turn = value(partner) * T(t.sin[at]);
        result = result * T(t.cos[at]) + (first ? -turn : turn);
    }
    return to_float(from_float<Element>(static_cast<float>(result)));
}

}  // namespace hone::attention_decode

// Linear layers of experts, the part that all variants share, with weights of 16 bits (weights.cuh) or codes
// (quantized_expert_linear): the tensors of a call, the row of x that is multiplied at a place, and what
// becomes of sums on their way out. Activations are linear's (linear/epilogue.cuh).
//
// Nothing that stands in starts and rows is trusted: places are cut to those of the call, a row of x that
// does not exist is one that does, and a result whose row does not exist is not written.
#pragma once

#include "device/packet.cuh"
#include "hone_constants.h"

namespace hone::linear {

/// What linear's device code takes for its problem: a product without norm and residual.
struct Shape : ::Shape {
    static constexpr int64 norm = 0;
    static constexpr int64 residual = 0;
};

}  // namespace hone::linear

#include "linear/epilogue.cuh"

namespace hone::expert_linear {

using linear::Element;
using linear::gated;
using linear::has_bias;
using linear::in;
using linear::products;
/// Columns of a result; a call's `out` is the tensor.
inline constexpr int columns = linear::out;
inline constexpr int experts = static_cast<int>(::Shape::experts);
inline constexpr int top_k = static_cast<int>(::Shape::top_k);
inline constexpr bool gathers = ::Shape::gather != 0;
inline constexpr bool combines = ::Shape::combine != 0;

/// 5 in kernel_templates/enums.h; the families of linear, whose activations the others are, have no such
/// gate.
inline constexpr bool is_swiglu_oai = ::Shape::activation == 5;
/// The gate of gpt-oss's experts. NaN stays NaN.
__device__ inline float swiglu_oai(float gate, float up) {
    gate = gate > 7.0f ? 7.0f : gate;
    up = up > 7.0f ? 7.0f : up < -7.0f ? -7.0f : up;
    const float turned = linear::fast_exp2(gate * (-1.702f * 1.4426950408889634f));
    return gate * linear::fast_reciprocal(1.0f + turned) * (up + 1.0f);
}

struct Tensors : Arguments {
    __device__ int places() const { return static_cast<int>(tokens) * top_k; }

    /// The row of x that is multiplied at a place: one that exists.
    __device__ int x_row(int place) const {
        if constexpr (!gathers) return place;
        return min(max(rows[place], 0), places() - 1) / top_k;
    }
    __device__ const Element* x_at(int place) const { return x + x_row(place) * x_stride; }
    /// Where a place's results go, in the workspace where they are combined; nullptr: nowhere.
    __device__ Element* result_at(int place) const {
        if constexpr (!combines) return reinterpret_cast<Element*>(out) + place * out_stride;
        const int pair = rows[place];
        if (pair < 0 || pair >= places()) return nullptr;
        return reinterpret_cast<Element*>(workspace) + static_cast<int64>(pair) * columns;
    }
    /// A result from its sums; the column exists.
    __device__ float finish(int expert, int column, const float (&sums)[products]) const {
        const int64 at = static_cast<int64>(expert) * columns + column;
        float first = sums[0];
        if constexpr (has_bias) first += to_float(bias[at]);
        if constexpr (!gated) return linear::activate(first);
        float second = sums[products - 1];
        if constexpr (has_bias) second += to_float(up_bias[at]);
        if constexpr (is_swiglu_oai) return swiglu_oai(first, second);
        return linear::join_gated(first, second);
    }
};

}  // namespace hone::expert_linear

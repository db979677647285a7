// Quantized linear, the part that all variants share: the tensors of a call, single codes as numbers, and
// what becomes of sums on their way out. Activations and the order of bias, activation and residual are
// linear's (linear/epilogue.cuh).
#pragma once

#include "device/packet.cuh"
#include "linear/epilogue.cuh"
#include "quantized_linear/layout.cuh"

namespace hone::quantized_linear {

using linear::Element;
using linear::gated;
using linear::has_bias;
using linear::has_norm;
using linear::has_residual;
using linear::in;
using linear::out;
using linear::products;

enum class Format : int { w4a16 = 0, w8a16 = 1, w8a8 = 2, fp8 = 3 };
inline constexpr Format format = static_cast<Format>(Shape::format);
/// x has 16 bits where the weight is packed.
inline constexpr bool is_packed = format == Format::w4a16 || format == Format::w8a16;
inline constexpr int group = static_cast<int>(Shape::group);
inline constexpr int groups = static_cast<int>(groups_of(in, group));
inline constexpr bool has_zeros = Shape::zeros != 0;
/// fp8 with a scale for 128 columns of x and for 128 x 128 of the weight.
inline constexpr bool has_blocks = format == Format::fp8 && group != 0;
/// x comes as codes.
inline constexpr bool quantized_x = Shape::quantized_x != 0;
/// Codes are made of 16-bit x.
inline constexpr bool quantizes_x = !is_packed && !quantized_x;

using Code = Conditional<format == Format::fp8, fp8, int8>::type;
/// Largest magnitude of a code that x becomes.
inline constexpr float largest_code = format == Format::fp8 ? 448.0f : 127.0f;
/// Scales of smaller magnitudes of x than this are its: no code is divided by zero.
inline constexpr float least_magnitude = 0x1p-100f;
/// w4a16's scales stand beside the codes, in the element type; the others' are float32.
using Scale = Conditional<format == Format::w4a16, Element, float>::type;

/// One weight with its scales and zero points.
struct Weight {
    const uint8* codes;
    const Scale* scales;
    const uint8* zeros;
    int64 stride;        ///< bytes between rows, of what is not packed
    int64 scale_stride;  ///< 0: one scale for all rows

    /// The value of one code; slow.
    __device__ float value(int64 row, int column) const {
        if constexpr (format == Format::w4a16) {
            const CodePlace place = place_w4(row, column, in);
            const int code = codes[place.byte] >> place.bit & 15;
            const int64 at = scale_place(row, group == 0 ? 0 : column / (group == 0 ? 1 : group), groups);
            return static_cast<float>(code - (has_zeros ? zeros[at] : 8)) * to_float(scales[at]);
        } else if constexpr (format == Format::w8a16) {
            return to_float(static_cast<int8>(codes[place_w8(row, column, in).byte])) * to_float(scales[row]);
        } else {
            const float code = to_float(reinterpret_cast<const Code*>(codes)[row * stride + column]);
            if constexpr (has_blocks)
                return code * to_float(scales[row / scaled_block * groups + column / scaled_block]);
            return code * to_float(scales[row * scale_stride]);
        }
    }
};

struct Tensors : Arguments {
    Weight first{reinterpret_cast<const uint8*>(weight), scales, reinterpret_cast<const uint8*>(zeros),
                 weight_stride, scale_stride};
    Weight second{reinterpret_cast<const uint8*>(up), up_scales, reinterpret_cast<const uint8*>(up_zeros),
                  up_stride, scale_stride};

    /// The weight; of a gated product's two, 0 is the gate and 1 up.
    __device__ const Weight& weight_of(int product) const { return gated && product == 1 ? second : first; }
    /// One number of x as it is given: an element, or a code with its scale.
    __device__ float x_value(int64 token, int column) const {
        if constexpr (quantized_x) {
            const float code = to_float(x[token * x_stride + column]);
            return code * x_scales[token * x_scale_stride + (has_blocks ? column / scaled_block : 0)];
        } else {
            return to_float(x[token * x_stride + column]);
        }
    }

    /// What is added to a result; `token` and `column` exist.
    __device__ float residual_of(int64 token, int column) const {
        if constexpr (!has_residual) return 0.0f;
        return to_float(load_packet<Element, 1>(residual + token * residual_stride + column).elements[0]);
    }
    /// The result from its sums and what is added to it.
    __device__ float finish(int column, const float (&sums)[products], float added) const {
        if constexpr (gated) return linear::join_gated(sums[0], sums[products - 1]);
        float sum = sums[0];
        if constexpr (has_bias) sum += to_float(bias[column]);
        sum = linear::activate(sum);
        if constexpr (has_residual) sum += added;
        return sum;
    }
    __device__ float finish(int64 token, int column, const float (&sums)[products]) const {
        return finish(column, sums, residual_of(token, column));
    }
    /// What sums are multiplied with where x was not normalized before: `squares` is the sum of x^2.
    __device__ float norm_factor(float squares) const { return rsqrtf(squares * (1.0f / in) + epsilon); }
};

/// What the sums of a row of packed codes are multiplied with; groups have had theirs.
__device__ inline float packed_row_scale(const Weight& weight, int64 row) {
    if constexpr (format == Format::w8a16) return to_float(weight.scales[row]);
    return group == 0 ? to_float(weight.scales[scale_place(row, 0, 1)]) : 1.0f;
}

}  // namespace hone::quantized_linear

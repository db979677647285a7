// What the kernels of quantize_weights share: the call's tensors, what may be wrong with a weight, and the
// codes of 8 bits.
#pragma once

#include "device/types.cuh"
#include "hone_constants.h"
#include "quantize_weights/scale_rule.cuh"
#include "quantized_linear/layout.cuh"

namespace hone::quantize_weights {

namespace places = quantized_linear;

using Element = DtypeOf<Shape::dtype>::type;
/// Choices of the field `format`, in order.
enum class Format : int64 { w4a16, w8a16, w8a8, fp8 };
inline constexpr Format format = static_cast<Format>(Shape::format);
inline constexpr bool is_w4 = format == Format::w4a16;
inline constexpr bool is_fp8 = format == Format::fp8;
/// Codes stand in blocks of 64 x 64; else row by row.
inline constexpr bool is_packed = is_w4 || format == Format::w8a16;
inline constexpr bool has_zeros = Shape::zeros != 0;
inline constexpr bool one_scale = Shape::one_scale != 0;
inline constexpr bool searches = Shape::search != 0;
inline constexpr bool has_groups = Shape::group != 0;
inline constexpr int in = static_cast<int>(Shape::in);
/// Columns that share a scale.
inline constexpr int width = has_groups ? static_cast<int>(Shape::group) : in;
/// Groups of a row, as a checkpoint has them.
inline constexpr int groups = in / width;
/// Groups of a row of w4a16, padding included.
inline constexpr int group_places = static_cast<int>(places::groups_of(in, Shape::group));
inline constexpr int no_zero = 8;  ///< zero point of what has none, and of padding

/// w4a16's scales are of 16 bits. The reference's outputs are float32.
using Scale = Conditional<is_w4, DtypeOf<Shape::scale_dtype + 1>::type, float>::type;

/// Rows with weights that have no codes: the first of each kind, no_row where there is none. Stands at the
/// start of the workspace, where the caller reads it (quantize_weights.h).
struct BadRows {
    int not_finite;
    int scale_too_large;
};
inline constexpr int no_row = 0x7fffffff;
/// Where the largest magnitudes stand in the workspace.
inline constexpr int maxima_offset = 256;

struct Tensors : Arguments {
    __device__ float value(int64 row, int column) const {
        return to_float(weight[row * weight_stride + column]);
    }
    __device__ BadRows& bad_rows() const { return *static_cast<BadRows*>(workspace); }
    /// Formats of 8 bits: for each scale the largest magnitude, as the bits of a float.
    __device__ uint32* maxima() const {
        return reinterpret_cast<uint32*>(static_cast<char*>(workspace) + maxima_offset);
    }
};

/// Number of a scale of 8-bit formats.
__device__ inline int64 scale_number(int64 row, int group) {
    if constexpr (one_scale) return 0;
    if constexpr (has_groups) return row / places::scaled_block * groups + group;
    return row;
}
/// Rows that share a scale.
inline constexpr int scaled_rows = has_groups ? places::scaled_block : 1;

__device__ inline float scale_of_largest(float largest) {
    return largest < smallest_magnitude ? 0.0f : largest / (is_fp8 ? 448.0f : 127.0f);
}

/// The code of 8 bits nearest to value / scale.
__device__ inline uint8 code_8(float value, float scale) {
    if (scale == 0.0f) return 0;
    if constexpr (is_fp8) return from_float<fp8>(value / scale).bits;
    return static_cast<uint8>(static_cast<int8>(nearest(value / scale, -127.0f, 127.0f)));
}

/// The code of 4 bits nearest to value / scale.
__device__ inline uint32 code_4(float value, float scale, int zero) {
    if (scale == 0.0f) return zero;
    const Codes codes = codes_of(scale, zero);
    return static_cast<int>(nearest(value / scale, codes.low, codes.high)) + zero;
}

/// The scale as it is stored in w4a16.
__device__ inline Stored stored_scale(float scale) {
    using Half = Conditional<is_w4, Scale, bf16>::type;
    const Half stored = from_float<Half>(scale);
    return {stored.bits, to_float(stored)};
}

}  // namespace hone::quantize_weights

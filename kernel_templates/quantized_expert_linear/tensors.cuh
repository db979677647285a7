// Linear layers of experts with quantized weights, the part that all variants share: one expert's tensors as
// quantized_linear's device code takes them. Places, and what becomes of sums, are expert_linear's
// (expert_linear/tensors.cuh), where the call's arguments stand, too.
#pragma once

#include "expert_linear/tensors.cuh"
#include "quantized_expert_linear/room.cuh"

namespace hone::quantized_linear {

/// A product without norm and residual, of x as it comes to the products: codes where the weight's stand in
/// rows.
struct Shape : ::Shape {
    static constexpr int64 norm = 0;
    static constexpr int64 residual = 0;
    static constexpr int64 quantized_x = ::Shape::format >= 2 ? 1 : 0;
};

using XElement = Conditional<Shape::format == 3, fp8,
                             typename Conditional<Shape::format == 2, int8, linear::Element>::type>::type;

/// What quantized_linear's device code knows of a call.
struct Arguments {
    const XElement* x;
    const float* x_scales;
    const linear::Element* norm_weight;
    const void* weight;
    const Conditional<Shape::format == 0, linear::Element, float>::type* scales;
    const void* zeros;
    const void* up;
    const Conditional<Shape::format == 0, linear::Element, float>::type* up_scales;
    const void* up_zeros;
    const linear::Element* bias;
    const linear::Element* residual;
    linear::Element* out;
    float* workspace;
    int64 tokens, x_stride, x_scale_stride, weight_stride, up_stride, scale_stride, residual_stride,
        out_stride;
    float epsilon;
};

}  // namespace hone::quantized_linear

#include "quantized_linear/tensors.cuh"

namespace hone::quantized_expert_linear {

using expert_linear::combines;
using expert_linear::Tensors;
using linear::Element;
using linear::in;
using linear::products;
using quantized_linear::Code;
using quantized_linear::Format;
using quantized_linear::format;
using quantized_linear::groups;
using quantized_linear::has_blocks;
using quantized_linear::has_zeros;
using quantized_linear::is_packed;
using quantized_linear::scaled_block;
/// Columns of a result; a call's `out` is the tensor.
inline constexpr int columns = linear::out;

/// Bytes of an expert's codes, and its scales or zero points.
inline constexpr int64 code_bytes =
    is_packed ? quantized_linear::packed_bytes(columns, in, format == Format::w4a16 ? 4 : 8)
              : static_cast<int64>(columns) * in;
inline constexpr int64 scale_count =
    format == Format::w4a16 ? quantized_linear::whole_blocks(columns) * groups * quantized_linear::block_rows
    : has_blocks            ? (columns + scaled_block - 1) / scaled_block * static_cast<int64>(groups)
                            : columns;

__device__ inline Room room_of(const Tensors& tensors) {
    return room_of(tensors.places(), in, is_packed ? 0 : groups,
                   combines ? static_cast<long long>(columns) * sizeof(Element) : 0);
}

/// One expert's weights; and of x what is multiplied, a row for each place or, where it stands by token, the
/// call's.
__device__ inline quantized_linear::Tensors of_expert(const Tensors& t, int expert) {
    quantized_linear::Arguments of{};
    const auto codes = [&](const void* all) {
        return reinterpret_cast<const uint8*>(all) + expert * code_bytes;
    };
    of.weight = codes(t.weight);
    of.scales = t.scales + expert * scale_count;
    if constexpr (has_zeros) of.zeros = reinterpret_cast<const uint8*>(t.zeros) + expert * scale_count;
    if constexpr (linear::gated) {
        of.up = codes(t.up);
        of.up_scales = t.up_scales + expert * scale_count;
        if constexpr (has_zeros)
            of.up_zeros = reinterpret_cast<const uint8*>(t.up_zeros) + expert * scale_count;
    }
    of.weight_stride = in;
    of.up_stride = in;
    of.scale_stride = 1;
    of.tokens = t.places();
    if constexpr (is_packed) {
        of.x = reinterpret_cast<const quantized_linear::XElement*>(t.x);
        of.x_stride = t.x_stride;
    } else {
        const Room room = room_of(t);
        const uint8* const workspace = reinterpret_cast<const uint8*>(t.workspace);
        of.x = reinterpret_cast<const quantized_linear::XElement*>(workspace + room.codes_at);
        of.x_stride = in;
        of.x_scales = reinterpret_cast<const float*>(workspace + room.scales_at);
        of.x_scale_stride = groups;
    }
    return quantized_linear::Tensors{of};
}

}  // namespace hone::quantized_expert_linear

// What quantize_weights declares: fields, pointers and scalars. Generated from
// kernel_templates/quantize_weights/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel_templates/enums.h"
#include "kernel_templates/family.h"

namespace hone::quantize_weights {

/// Index of each pointer of a call.
enum Pointer : int { weight, codes, scales, zeros, workspace, pointer_count };
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int { out, weight_stride, scalar_count };

inline constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
inline constexpr std::string_view format_choices[] = {"w4a16", "w8a16", "w8a8", "fp8"};
inline constexpr std::string_view yes_no[] = {"no", "yes"};
inline constexpr std::string_view scale_dtype_choices[] = {"fp16", "bf16"};

inline constexpr Field fields[] = {
    {.name = "dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of the weight",
     .min = 0,
     .max = 2,
     .choices = dtype_choices},
    {.name = "format",
     .kind = Field::Kind::choice,
     .meaning = "format of the codes: docs/formats.md",
     .min = 0,
     .max = 3,
     .choices = format_choices},
    {.name = "group",
     .kind = Field::Kind::extent,
     .meaning = "columns that share a scale; 0: all",
     .min = 0,
     .max = 128,
     .default_value = 0},
    {.name = "zeros",
     .kind = Field::Kind::choice,
     .meaning = "codes of w4a16 have zero points, one a group",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "one_scale",
     .kind = Field::Kind::choice,
     .meaning = "one scale for the whole weight, not one a row",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "search",
     .kind = Field::Kind::choice,
     .meaning = "w4a16: the scale of least squared error, not the one that clips nothing",
     .min = 0,
     .default_value = 1,
     .choices = yes_no},
    {.name = "scale_dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of the scales of w4a16; the others' are fp32, and this is bf16",
     .min = 0,
     .default_value = 1,
     .choices = scale_dtype_choices},
    {.name = "in", .kind = Field::Kind::extent, .meaning = "columns of the weight", .max = 262144},
    {.name = "out",
     .kind = Field::Kind::dynamic,
     .meaning = "rows of the weight",
     .max = std::int64_t{1} << 20},
};

/// A problem's fields by their names.
struct Fields {
    Dtype dtype = Dtype::bf16;
    QuantFormat format = QuantFormat::w4a16;
    std::int64_t group = 0;
    bool zeros = false;
    bool one_scale = false;
    bool search = true;
    Dtype scale_dtype = Dtype::bf16;
    std::int64_t in = 0;
    std::int64_t out = 0;
};
[[nodiscard]] inline Fields fields_of(const Problem& problem) {
    return {.dtype = static_cast<Dtype>(problem[0]),
            .format = static_cast<QuantFormat>(problem[1]),
            .group = problem[2],
            .zeros = problem[3] != 0,
            .one_scale = problem[4] != 0,
            .search = problem[5] != 0,
            .scale_dtype = static_cast<Dtype>(problem[6] + 1),
            .in = problem[7],
            .out = problem[8]};
}

/// The whole call, as most kernels take it.
inline constexpr KernelArg call_args[] = {
    pointer_arg(weight, "weight"),
    pointer_arg(codes, "codes"),
    pointer_arg(scales, "scales"),
    pointer_arg(zeros, "zeros"),
    pointer_arg(workspace, "workspace"),
    scalar_arg(out, "out"),
    scalar_arg(weight_stride, "weight_stride"),
};
/// The scalars that are distances between rows, and whose.
inline constexpr RowStride row_strides[] = {
    {weight_stride, weight},
};

/// The arguments as tuning passes them.
[[nodiscard]] std::vector<Argument> declared_arguments(const Problem& problem);
[[nodiscard]] std::vector<ScalarArgument> declared_scalars(const Problem& problem);

/// Adds what is declared to what is a family's own: variants, rules, tolerance, work, reference.
[[nodiscard]] constexpr Family declared(Family own) {
    own.name = "quantize_weights";
    own.summary =
        "codes of 4 or 8 bits of a weight of 16 or 32 bits, packed, with their scales and zero points";
    own.fields = fields;
    own.call_args = call_args;
    own.row_strides = row_strides;
    own.arguments = declared_arguments;
    own.scalars = declared_scalars;
    return own;
}

}  // namespace hone::quantize_weights

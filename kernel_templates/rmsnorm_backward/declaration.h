// What rmsnorm_backward declares: fields, pointers and scalars. Generated from
// kernel_templates/rmsnorm_backward/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel_templates/family.h"

namespace hone::rmsnorm_backward {

/// Index of each pointer of a call.
enum Pointer : int { dy, x, weight, dsum, dx, dweight, workspace, pointer_count };
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int { rows, dy_stride, x_stride, dsum_stride, dx_stride, epsilon, scalar_count };

inline constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
inline constexpr std::string_view yes_no[] = {"no", "yes"};

inline constexpr Field fields[] = {
    {.name = "dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of every tensor",
     .min = 0,
     .max = 2,
     .choices = dtype_choices},
    {.name = "residual",
     .kind = Field::Kind::choice,
     .meaning = "adds dsum, the gradient of the forward pass's sum, to dx",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "hidden", .kind = Field::Kind::extent, .meaning = "elements a row", .max = 262144},
    {.name = "rows",
     .kind = Field::Kind::dynamic,
     .meaning = "rows (tokens) of a call",
     .max = std::int64_t{1} << 30},
};

/// A problem's fields by their names.
struct Fields {
    Dtype dtype = Dtype::bf16;
    bool residual = false;
    std::int64_t hidden = 0;
    std::int64_t rows = 0;
};
[[nodiscard]] inline Fields fields_of(const Problem& problem) {
    return {.dtype = static_cast<Dtype>(problem[0]),
            .residual = problem[1] != 0,
            .hidden = problem[2],
            .rows = problem[3]};
}

/// The whole call, as most kernels take it.
inline constexpr KernelArg call_args[] = {
    pointer_arg(dy, "dy"),
    pointer_arg(x, "x"),
    pointer_arg(weight, "weight"),
    pointer_arg(dsum, "dsum"),
    pointer_arg(dx, "dx"),
    pointer_arg(dweight, "dweight"),
    pointer_arg(workspace, "workspace"),
    scalar_arg(rows, "rows"),
    scalar_arg(dy_stride, "dy_stride"),
    scalar_arg(x_stride, "x_stride"),
    scalar_arg(dsum_stride, "dsum_stride"),
    scalar_arg(dx_stride, "dx_stride"),
    float_arg(epsilon, "epsilon"),
};
/// The scalars that are distances between rows, and whose.
inline constexpr RowStride row_strides[] = {
    {dy_stride, dy},
    {x_stride, x},
    {dsum_stride, dsum},
    {dx_stride, dx},
};

/// The arguments as tuning passes them.
[[nodiscard]] std::vector<Argument> declared_arguments(const Problem& problem);
[[nodiscard]] std::vector<ScalarArgument> declared_scalars(const Problem& problem);

/// Adds what is declared to what is a family's own: variants, rules, tolerance, work, reference.
[[nodiscard]] constexpr Family declared(Family own) {
    own.name = "rmsnorm_backward";
    own.summary = "dx and dweight of rmsnorm, from dy and x";
    own.fields = fields;
    own.call_args = call_args;
    own.row_strides = row_strides;
    own.arguments = declared_arguments;
    own.scalars = declared_scalars;
    return own;
}

}  // namespace hone::rmsnorm_backward

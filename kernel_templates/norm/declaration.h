// What rmsnorm and layernorm declare: fields, pointers and scalars. Generated from
// kernel_templates/norm/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel_templates/enums.h"
#include "kernel_templates/family.h"

namespace hone::norm {

/// Index of each pointer of a call.
enum Pointer : int { x, residual, weight, bias, out, sum, scale, pointer_count };
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int { rows, x_stride, residual_stride, out_stride, sum_stride, epsilon, scalar_count };

inline constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
inline constexpr std::string_view output_choices[] = {"same", "int8", "fp8"};
inline constexpr std::string_view yes_no[] = {"no", "yes"};

inline constexpr Field rmsnorm_fields[] = {
    {.name = "dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of x, residual, weight, bias and sum",
     .min = 0,
     .max = 2,
     .choices = dtype_choices},
    {.name = "output",
     .kind = Field::Kind::choice,
     .meaning = "same: out has dtype; int8, fp8 (E4M3): codes with one fp32 scale a row",
     .min = 0,
     .max = 2,
     .default_value = 0,
     .choices = output_choices},
    {.name = "residual",
     .kind = Field::Kind::choice,
     .meaning = "adds residual to x first and writes the sum",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "unit_offset",
     .kind = Field::Kind::choice,
     .meaning = "adds 1 to the weight, in fp32",
     .min = 0,
     .default_value = 0,
     .choices = yes_no,
     .quiet_default = true},
    {.name = "hidden", .kind = Field::Kind::extent, .meaning = "elements a row", .max = 262144},
    {.name = "rows",
     .kind = Field::Kind::dynamic,
     .meaning = "rows (tokens) of a call",
     .max = std::int64_t{1} << 30},
};

inline constexpr Field layernorm_fields[] = {
    {.name = "dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of x, residual, weight, bias and sum",
     .min = 0,
     .max = 2,
     .choices = dtype_choices},
    {.name = "output",
     .kind = Field::Kind::choice,
     .meaning = "same: out has dtype; int8, fp8 (E4M3): codes with one fp32 scale a row",
     .min = 0,
     .max = 2,
     .default_value = 0,
     .choices = output_choices},
    {.name = "residual",
     .kind = Field::Kind::choice,
     .meaning = "adds residual to x first and writes the sum",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "bias",
     .kind = Field::Kind::choice,
     .meaning = "adds a bias after the weight",
     .min = 0,
     .default_value = 1,
     .choices = yes_no},
    {.name = "unit_offset",
     .kind = Field::Kind::choice,
     .meaning = "adds 1 to the weight, in fp32",
     .min = 0,
     .default_value = 0,
     .choices = yes_no,
     .quiet_default = true},
    {.name = "hidden", .kind = Field::Kind::extent, .meaning = "elements a row", .max = 262144},
    {.name = "rows",
     .kind = Field::Kind::dynamic,
     .meaning = "rows (tokens) of a call",
     .max = std::int64_t{1} << 30},
};

/// A problem's fields by their names. `Problem::family` says which of the families it is of.
struct Fields {
    bool layernorm = false;  ///< the family, not rmsnorm
    Dtype dtype = Dtype::bf16;
    NormOutput output = NormOutput::same;
    bool residual = false;
    bool bias = false;
    bool unit_offset = false;
    std::int64_t hidden = 0;
    std::int64_t rows = 0;
};
[[nodiscard]] inline Fields fields_of(const Problem& problem) {
    if (problem.family->fields.data() == layernorm_fields) {
        return {.layernorm = true,
                .dtype = static_cast<Dtype>(problem[0]),
                .output = static_cast<NormOutput>(problem[1]),
                .residual = problem[2] != 0,
                .bias = problem[3] != 0,
                .unit_offset = problem[4] != 0,
                .hidden = problem[5],
                .rows = problem[6]};
    }
    return {.dtype = static_cast<Dtype>(problem[0]),
            .output = static_cast<NormOutput>(problem[1]),
            .residual = problem[2] != 0,
            .unit_offset = problem[3] != 0,
            .hidden = problem[4],
            .rows = problem[5]};
}

/// The whole call, as most kernels take it.
inline constexpr KernelArg call_args[] = {
    pointer_arg(x, "x"),
    pointer_arg(residual, "residual"),
    pointer_arg(weight, "weight"),
    pointer_arg(bias, "bias"),
    pointer_arg(out, "out"),
    pointer_arg(sum, "sum"),
    pointer_arg(scale, "scale"),
    scalar_arg(rows, "rows"),
    scalar_arg(x_stride, "x_stride"),
    scalar_arg(residual_stride, "residual_stride"),
    scalar_arg(out_stride, "out_stride"),
    scalar_arg(sum_stride, "sum_stride"),
    float_arg(epsilon, "epsilon"),
};
/// The scalars that are distances between rows, and whose.
inline constexpr RowStride row_strides[] = {
    {x_stride, x},
    {residual_stride, residual},
    {out_stride, out},
    {sum_stride, sum},
};

/// The arguments as tuning passes them.
[[nodiscard]] std::vector<Argument> declared_arguments(const Problem& problem);
[[nodiscard]] std::vector<ScalarArgument> declared_scalars(const Problem& problem);

/// Adds what is declared to what is a family's own: variants, rules, tolerance, work, reference.
[[nodiscard]] constexpr Family declared_rmsnorm(Family own) {
    own.name = "rmsnorm";
    own.summary = "y = x / sqrt(mean(x^2) + epsilon) * weight, over rows";
    own.device_namespace = "norm";
    own.fields = rmsnorm_fields;
    own.call_args = call_args;
    own.row_strides = row_strides;
    own.arguments = declared_arguments;
    own.scalars = declared_scalars;
    return own;
}
[[nodiscard]] constexpr Family declared_layernorm(Family own) {
    own.name = "layernorm";
    own.summary = "y = (x - mean) / sqrt(variance + epsilon) * weight + bias, over rows";
    own.device_namespace = "norm";
    own.fields = layernorm_fields;
    own.call_args = call_args;
    own.row_strides = row_strides;
    own.arguments = declared_arguments;
    own.scalars = declared_scalars;
    return own;
}

}  // namespace hone::norm

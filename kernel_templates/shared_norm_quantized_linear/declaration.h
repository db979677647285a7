// What shared_norm_quantized_linear declares: fields, pointers and scalars. Generated from
// kernel_templates/shared_norm_quantized_linear/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel_templates/enums.h"
#include "kernel_templates/family.h"

namespace hone::shared_norm_quantized_linear {

/// Index of each pointer of a call.
enum Pointer : int {
    x,
    x_scales,
    norm_weight,  ///< of the norm behind
    weight,
    scales,
    zeros,
    up,
    up_scales,
    up_zeros,
    bias,
    residual,
    out,
    workspace,
    norm_squares,  ///< what the product in front of the norm has written
    scaled,
    squares,
    pointer_count
};
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int {
    tokens,
    x_stride,
    x_scale_stride,
    weight_stride,  ///< packed formats have none
    up_stride,
    scale_stride,
    residual_stride,
    out_stride,
    epsilon,  ///< the norm's
    scalar_count
};

inline constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
inline constexpr std::string_view format_choices[] = {"w4a16", "w8a16", "w8a8", "fp8"};
inline constexpr std::string_view yes_no[] = {"no", "yes"};
inline constexpr std::string_view activation_choices[] = {"none", "gelu_tanh", "gelu_erf", "silu", "relu"};

inline constexpr Field fields[] = {
    {.name = "dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of x, results and what is added to them",
     .min = 2,
     .max = 2,
     .choices = dtype_choices},
    {.name = "format",
     .kind = Field::Kind::choice,
     .meaning = "format of the weight's codes: docs/formats.md",
     .min = 0,
     .max = 3,
     .choices = format_choices},
    {.name = "group",
     .kind = Field::Kind::extent,
     .meaning = "columns of the weight that share a scale; 0: all",
     .min = 0,
     .max = 128,
     .default_value = 0},
    {.name = "zeros",
     .kind = Field::Kind::choice,
     .meaning = "codes have zero points, one a group",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "quantized_x",
     .kind = Field::Kind::choice,
     .meaning = "x comes as codes with scales, as the weight's",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "norm",
     .kind = Field::Kind::choice,
     .meaning =
         "behind a norm: x comes times its weight, results are multiplied with 1 / sqrt(squares / in + "
         "epsilon)",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "next_norm",
     .kind = Field::Kind::choice,
     .meaning = "in front of a norm: also writes results times its weight, and their squares",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "activation",
     .kind = Field::Kind::choice,
     .meaning = "what x * weight^T + bias goes through",
     .min = 0,
     .max = 4,
     .default_value = 0,
     .choices = activation_choices},
    {.name = "gated",
     .kind = Field::Kind::choice,
     .meaning = "multiplies the activation with x * up^T",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "bias",
     .kind = Field::Kind::choice,
     .meaning = "adds bias[out] before the activation",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "residual",
     .kind = Field::Kind::choice,
     .meaning = "adds residual[tokens, out] after the activation",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "in", .kind = Field::Kind::extent, .meaning = "columns of x and of the weight", .max = 262144},
    {.name = "out",
     .kind = Field::Kind::extent,
     .meaning = "rows of the weight, columns of the result",
     .max = std::int64_t{1} << 20},
    {.name = "tokens",
     .kind = Field::Kind::dynamic,
     .meaning = "rows of x and of the result",
     .max = std::int64_t{1} << 24,
     .finer = true},
};

/// A problem's fields by their names.
struct Fields {
    Dtype dtype = Dtype::bf16;
    QuantFormat format = QuantFormat::w4a16;
    std::int64_t group = 0;
    bool zeros = false;
    bool quantized_x = false;
    bool norm = false;
    bool next_norm = false;
    Activation activation = Activation::none;
    bool gated = false;
    bool bias = false;
    bool residual = false;
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t tokens = 0;
};
[[nodiscard]] inline Fields fields_of(const Problem& problem) {
    return {.dtype = static_cast<Dtype>(problem[0]),
            .format = static_cast<QuantFormat>(problem[1]),
            .group = problem[2],
            .zeros = problem[3] != 0,
            .quantized_x = problem[4] != 0,
            .norm = problem[5] != 0,
            .next_norm = problem[6] != 0,
            .activation = static_cast<Activation>(problem[7]),
            .gated = problem[8] != 0,
            .bias = problem[9] != 0,
            .residual = problem[10] != 0,
            .in = problem[11],
            .out = problem[12],
            .tokens = problem[13]};
}

/// The whole call, as most kernels take it.
inline constexpr KernelArg call_args[] = {
    pointer_arg(x, "x"),
    pointer_arg(x_scales, "x_scales"),
    pointer_arg(norm_weight, "norm_weight"),
    pointer_arg(weight, "weight"),
    pointer_arg(scales, "scales"),
    pointer_arg(zeros, "zeros"),
    pointer_arg(up, "up"),
    pointer_arg(up_scales, "up_scales"),
    pointer_arg(up_zeros, "up_zeros"),
    pointer_arg(bias, "bias"),
    pointer_arg(residual, "residual"),
    pointer_arg(out, "out"),
    pointer_arg(workspace, "workspace"),
    pointer_arg(norm_squares, "norm_squares"),
    pointer_arg(scaled, "scaled"),
    pointer_arg(squares, "squares"),
    scalar_arg(tokens, "tokens"),
    scalar_arg(x_stride, "x_stride"),
    scalar_arg(x_scale_stride, "x_scale_stride"),
    scalar_arg(weight_stride, "weight_stride"),
    scalar_arg(up_stride, "up_stride"),
    scalar_arg(scale_stride, "scale_stride"),
    scalar_arg(residual_stride, "residual_stride"),
    scalar_arg(out_stride, "out_stride"),
    float_arg(epsilon, "epsilon"),
};
/// The scalars that are distances between rows, and whose.
inline constexpr RowStride row_strides[] = {
    {x_stride, x},   {x_scale_stride, x_scales},  {weight_stride, weight},
    {up_stride, up}, {residual_stride, residual}, {out_stride, out},
};

/// The arguments as tuning passes them.
[[nodiscard]] std::vector<Argument> declared_arguments(const Problem& problem);
[[nodiscard]] std::vector<ScalarArgument> declared_scalars(const Problem& problem);

/// Adds what is declared to what is a family's own: variants, rules, tolerance, work, reference.
[[nodiscard]] constexpr Family declared(Family own) {
    own.name = "shared_norm_quantized_linear";
    own.summary = "what shared_norm_linear is, with packed weights of 4 or 8 bits";
    own.fields = fields;
    own.call_args = call_args;
    own.row_strides = row_strides;
    own.arguments = declared_arguments;
    own.scalars = declared_scalars;
    return own;
}

}  // namespace hone::shared_norm_quantized_linear

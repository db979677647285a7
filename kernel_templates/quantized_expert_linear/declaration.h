// What quantized_expert_linear declares: fields, pointers and scalars. Generated from
// kernel_templates/quantized_expert_linear/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel_templates/enums.h"
#include "kernel_templates/family.h"

namespace hone::quantized_expert_linear {

/// Index of each pointer of a call.
enum Pointer : int {
    x,
    starts,  ///< the first place of each expert, and the end
    rows,    ///< token * top_k + slot at each place
    routing_weights,
    weight,
    scales,
    zeros,
    up,
    up_scales,
    up_zeros,
    bias,
    up_bias,
    out,
    workspace,
    pointer_count
};
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int { tokens, x_stride, out_stride, scalar_count };

inline constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
inline constexpr std::string_view format_choices[] = {"w4a16", "w8a16", "w8a8", "fp8"};
inline constexpr std::string_view yes_no[] = {"no", "yes"};
inline constexpr std::string_view activation_choices[] = {"none", "gelu_tanh", "gelu_erf",
                                                          "silu", "relu",      "swiglu_oai"};

inline constexpr Field fields[] = {
    {.name = "dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of x, biases and results",
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
    {.name = "activation",
     .kind = Field::Kind::choice,
     .meaning = "what x * weight^T + bias goes through",
     .min = 0,
     .max = 5,
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
     .meaning = "adds bias[experts, out] before the activation, and up_bias to the second product",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "gather",
     .kind = Field::Kind::choice,
     .meaning = "x has a row for each token, not for each place",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "combine",
     .kind = Field::Kind::choice,
     .meaning = "out has a row for each token: the sum of its experts' results, each times its weight",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "experts", .kind = Field::Kind::extent, .meaning = "weights", .max = 512},
    {.name = "top_k", .kind = Field::Kind::extent, .meaning = "experts of a token, at most all", .max = 32},
    {.name = "in", .kind = Field::Kind::extent, .meaning = "columns of x and of the weight", .max = 262144},
    {.name = "out",
     .kind = Field::Kind::extent,
     .meaning = "rows of the weight, columns of the result",
     .max = std::int64_t{1} << 20},
    {.name = "tokens",
     .kind = Field::Kind::dynamic,
     .meaning = "tokens of a call, top_k places each",
     .max = std::int64_t{1} << 20},
};

/// A problem's fields by their names.
struct Fields {
    Dtype dtype = Dtype::bf16;
    QuantFormat format = QuantFormat::w4a16;
    std::int64_t group = 0;
    bool zeros = false;
    Activation activation = Activation::none;
    bool gated = false;
    bool bias = false;
    bool gather = false;
    bool combine = false;
    std::int64_t experts = 0;
    std::int64_t top_k = 0;
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t tokens = 0;
};
[[nodiscard]] inline Fields fields_of(const Problem& problem) {
    return {.dtype = static_cast<Dtype>(problem[0]),
            .format = static_cast<QuantFormat>(problem[1]),
            .group = problem[2],
            .zeros = problem[3] != 0,
            .activation = static_cast<Activation>(problem[4]),
            .gated = problem[5] != 0,
            .bias = problem[6] != 0,
            .gather = problem[7] != 0,
            .combine = problem[8] != 0,
            .experts = problem[9],
            .top_k = problem[10],
            .in = problem[11],
            .out = problem[12],
            .tokens = problem[13]};
}

/// The whole call, as most kernels take it.
inline constexpr KernelArg call_args[] = {
    pointer_arg(x, "x"),
    pointer_arg(starts, "starts"),
    pointer_arg(rows, "rows"),
    pointer_arg(routing_weights, "routing_weights"),
    pointer_arg(weight, "weight"),
    pointer_arg(scales, "scales"),
    pointer_arg(zeros, "zeros"),
    pointer_arg(up, "up"),
    pointer_arg(up_scales, "up_scales"),
    pointer_arg(up_zeros, "up_zeros"),
    pointer_arg(bias, "bias"),
    pointer_arg(up_bias, "up_bias"),
    pointer_arg(out, "out"),
    pointer_arg(workspace, "workspace"),
    scalar_arg(tokens, "tokens"),
    scalar_arg(x_stride, "x_stride"),
    scalar_arg(out_stride, "out_stride"),
};
/// The scalars that are distances between rows, and whose.
inline constexpr RowStride row_strides[] = {
    {x_stride, x},
    {out_stride, out},
};

/// The arguments as tuning passes them.
[[nodiscard]] std::vector<Argument> declared_arguments(const Problem& problem);
[[nodiscard]] std::vector<ScalarArgument> declared_scalars(const Problem& problem);

/// Adds what is declared to what is a family's own: variants, rules, tolerance, work, reference.
[[nodiscard]] constexpr Family declared(Family own) {
    own.name = "quantized_expert_linear";
    own.summary =
        "expert_linear with weights of 4 or 8 bits: activation(x * weight^T + bias) with each row's expert's "
        "weight, or gated with a second one; x of 16 bits";
    own.fields = fields;
    own.call_args = call_args;
    own.row_strides = row_strides;
    own.arguments = declared_arguments;
    own.scalars = declared_scalars;
    return own;
}

}  // namespace hone::quantized_expert_linear

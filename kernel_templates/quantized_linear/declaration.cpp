// Generated from kernel_templates/quantized_linear/operators.py by `./hone generate`.
#include "kernel_templates/quantized_linear/declaration.h"

#include "kernel_templates/quantized_linear/quantized_linear.h"

namespace hone::quantized_linear {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const QuantizedProblem p(problem);
    return {
        {.name = "x",
         .dtype = p.x_dtype(),
         .shape = {1, 1, p.tokens, p.in},
         .fill = p.x_fill(),
         .fill_scale = static_cast<double>(p.x_fill_scale())},
        {.name = "x_scales",
         .shape = {1, 1, p.tokens, p.groups()},
         .fill = Fill::uniform,
         .fill_scale = static_cast<double>(0.5 * p.x_scale()),
         .fill_offset = static_cast<double>(p.x_scale()),
         .present = p.quantized_x},
        {.name = "norm_weight",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, 1, p.in},
         .fill_scale = 0.25,
         .fill_offset = 1.0,
         .present = p.norm},
        {.name = "weight",
         .role = Role::weight,
         .dtype = p.code_dtype(),
         .shape = {1, 1, p.code_rows(), p.row_bytes()},
         .fill = p.code_fill(),
         .fill_scale = static_cast<double>(p.code_fill_scale())},
        {.name = "scales",
         .role = Role::weight,
         .dtype = p.scale_dtype(),
         .shape = {1, 1, p.scale_rows(), p.scale_columns()},
         .fill = Fill::uniform,
         .fill_scale = static_cast<double>(0.5 * p.weight_scale()),
         .fill_offset = static_cast<double>(p.weight_scale())},
        {.name = "zeros",
         .role = Role::weight,
         .dtype = Dtype::int8,
         .shape = {1, 1, p.scale_rows(), p.scale_columns()},
         .fill = Fill::uniform,
         .fill_scale = 7.5,
         .fill_offset = 7.5,
         .present = p.zeros},
        {.name = "up",
         .role = Role::weight,
         .dtype = p.code_dtype(),
         .shape = {1, 1, p.code_rows(), p.row_bytes()},
         .fill = p.code_fill(),
         .fill_scale = static_cast<double>(p.code_fill_scale()),
         .present = p.gated},
        {.name = "up_scales",
         .role = Role::weight,
         .dtype = p.scale_dtype(),
         .shape = {1, 1, p.scale_rows(), p.scale_columns()},
         .fill = Fill::uniform,
         .fill_scale = static_cast<double>(0.5 * p.weight_scale()),
         .fill_offset = static_cast<double>(p.weight_scale()),
         .present = p.gated},
        {.name = "up_zeros",
         .role = Role::weight,
         .dtype = Dtype::int8,
         .shape = {1, 1, p.scale_rows(), p.scale_columns()},
         .fill = Fill::uniform,
         .fill_scale = 7.5,
         .fill_offset = 7.5,
         .present = p.gated && p.zeros},
        {.name = "bias",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, 1, p.out},
         .present = p.bias},
        {.name = "residual", .dtype = p.dtype, .shape = {1, 1, p.tokens, p.out}, .present = p.residual},
        {.name = "out", .role = Role::output, .dtype = p.dtype, .shape = {1, 1, p.tokens, p.out}},
        {.name = "workspace", .role = Role::workspace},
    };
}

std::vector<ScalarArgument> declared_scalars(const Problem& problem) {
    const QuantizedProblem p(problem);
    return {
        {.name = "tokens", .tuning_value = Scalar::of(p.tokens)},
        {.name = "x_stride", .tuning_value = Scalar::of(p.in)},
        {.name = "x_scale_stride", .tuning_value = Scalar::of(p.groups())},
        {.name = "weight_stride", .tuning_value = Scalar::of(p.in)},
        {.name = "up_stride", .tuning_value = Scalar::of(p.in)},
        {.name = "scale_stride", .tuning_value = Scalar::of(std::int64_t{1})},
        {.name = "residual_stride", .tuning_value = Scalar::of(p.out)},
        {.name = "out_stride", .tuning_value = Scalar::of(p.out)},
        {.name = "epsilon", .tuning_value = Scalar::of(1e-5f)},
    };
}

}  // namespace hone::quantized_linear

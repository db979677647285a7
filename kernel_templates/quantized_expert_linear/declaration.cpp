// Generated from kernel_templates/quantized_expert_linear/operators.py by `./hone generate`.
#include "kernel_templates/quantized_expert_linear/declaration.h"

#include "kernel_templates/quantized_expert_linear/quantized_expert_linear.h"

namespace hone::quantized_expert_linear {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const QuantizedExpertProblem p(problem);
    return {
        {.name = "x", .dtype = p.dtype, .shape = {1, 1, p.x_rows(), p.in}},
        {.name = "starts",
         .dtype = index_dtype,
         .shape = {1, 1, p.experts + 1, 1},
         .fill = Fill::uneven_ramp,
         .fill_scale = static_cast<double>(p.rows_an_expert()),
         .fill_offset = static_cast<double>(p.top_k)},
        {.name = "rows",
         .dtype = index_dtype,
         .shape = {1, 1, p.places(), 1},
         .fill = Fill::permutation,
         .present = p.maps_rows()},
        {.name = "routing_weights",
         .shape = {1, 1, p.tokens, p.top_k},
         .fill = Fill::uniform,
         .fill_scale = 0.5,
         .fill_offset = 0.5,
         .present = p.combine},
        {.name = "weight",
         .role = Role::weight,
         .dtype = p.code_dtype(),
         .shape = {1, p.experts, p.code_rows(), p.row_bytes()},
         .fill = p.code_fill(),
         .fill_scale = static_cast<double>(p.code_fill_scale())},
        {.name = "scales",
         .role = Role::weight,
         .dtype = p.scale_dtype(),
         .shape = {1, p.experts, p.scale_rows(), p.scale_columns()},
         .fill = Fill::uniform,
         .fill_scale = static_cast<double>(0.5 * p.weight_scale()),
         .fill_offset = static_cast<double>(p.weight_scale())},
        {.name = "zeros",
         .role = Role::weight,
         .dtype = Dtype::int8,
         .shape = {1, p.experts, p.scale_rows(), p.scale_columns()},
         .fill = Fill::uniform,
         .fill_scale = 7.5,
         .fill_offset = 7.5,
         .present = p.zeros},
        {.name = "up",
         .role = Role::weight,
         .dtype = p.code_dtype(),
         .shape = {1, p.experts, p.code_rows(), p.row_bytes()},
         .fill = p.code_fill(),
         .fill_scale = static_cast<double>(p.code_fill_scale()),
         .present = p.gated},
        {.name = "up_scales",
         .role = Role::weight,
         .dtype = p.scale_dtype(),
         .shape = {1, p.experts, p.scale_rows(), p.scale_columns()},
         .fill = Fill::uniform,
         .fill_scale = static_cast<double>(0.5 * p.weight_scale()),
         .fill_offset = static_cast<double>(p.weight_scale()),
         .present = p.gated},
        {.name = "up_zeros",
         .role = Role::weight,
         .dtype = Dtype::int8,
         .shape = {1, p.experts, p.scale_rows(), p.scale_columns()},
         .fill = Fill::uniform,
         .fill_scale = 7.5,
         .fill_offset = 7.5,
         .present = p.gated && p.zeros},
        {.name = "bias",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, p.experts, p.out},
         .present = p.bias},
        {.name = "up_bias",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, p.experts, p.out},
         .present = p.gated_bias()},
        {.name = "out", .role = Role::output, .dtype = p.dtype, .shape = {1, 1, p.out_rows(), p.out}},
        {.name = "workspace", .role = Role::workspace},
    };
}

std::vector<ScalarArgument> declared_scalars(const Problem& problem) {
    const QuantizedExpertProblem p(problem);
    return {
        {.name = "tokens", .tuning_value = Scalar::of(p.tokens)},
        {.name = "x_stride", .tuning_value = Scalar::of(p.in)},
        {.name = "out_stride", .tuning_value = Scalar::of(p.out)},
    };
}

}  // namespace hone::quantized_expert_linear

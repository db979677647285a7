// Generated from kernel_templates/shared_norm_linear/operators.py by `./hone generate`.
#include "kernel_templates/shared_norm_linear/declaration.h"

#include "kernel_templates/shared_norm_linear/shared_norm_linear.h"

namespace hone::shared_norm_linear {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const SharedNormProblem p(problem);
    return {
        {.name = "x", .dtype = p.dtype, .shape = {1, 1, p.tokens, p.in}},
        {.name = "norm_weight",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, 1, p.out},
         .fill_scale = 0.25,
         .fill_offset = 1.0,
         .present = p.next_norm},
        {.name = "weight",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, p.out, p.in},
         .fill_scale = static_cast<double>(p.product().weight_deviation())},
        {.name = "up",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, p.out, p.in},
         .fill_scale = static_cast<double>(p.product().weight_deviation()),
         .present = p.gated},
        {.name = "bias",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, 1, p.out},
         .present = p.bias},
        {.name = "residual", .dtype = p.dtype, .shape = {1, 1, p.tokens, p.out}, .present = p.residual},
        {.name = "out", .role = Role::output, .dtype = p.dtype, .shape = {1, 1, p.tokens, p.out}},
        {.name = "workspace", .role = Role::workspace},
        {.name = "norm_squares",
         .shape = {1, 1, p.tokens, p.x_slots()},
         .fill = Fill::uniform,
         .fill_scale = static_cast<double>(0.5 * p.square_columns()),
         .fill_offset = static_cast<double>(p.square_columns()),
         .present = p.norm},
        {.name = "scaled",
         .role = Role::output,
         .dtype = p.dtype,
         .shape = {1, 1, p.tokens, p.out},
         .present = p.next_norm},
        {.name = "squares",
         .role = Role::output,
         .shape = {1, 1, p.tokens, p.slots()},
         .present = p.next_norm},
    };
}

std::vector<ScalarArgument> declared_scalars(const Problem& problem) {
    const SharedNormProblem p(problem);
    return {
        {.name = "tokens", .tuning_value = Scalar::of(p.tokens)},
        {.name = "x_stride", .tuning_value = Scalar::of(p.in)},
        {.name = "weight_stride", .tuning_value = Scalar::of(p.in)},
        {.name = "up_stride", .tuning_value = Scalar::of(p.in)},
        {.name = "residual_stride", .tuning_value = Scalar::of(p.out)},
        {.name = "out_stride", .tuning_value = Scalar::of(p.out)},
        {.name = "epsilon", .tuning_value = Scalar::of(1e-5f)},
    };
}

}  // namespace hone::shared_norm_linear

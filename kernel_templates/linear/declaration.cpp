// Generated from kernel_templates/linear/operators.py by `./hone generate`.
#include "kernel_templates/linear/declaration.h"

#include "kernel_templates/linear/linear.h"

namespace hone::linear {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const LinearProblem p(problem);
    return {
        {.name = "x", .dtype = p.dtype, .shape = {1, 1, p.tokens, p.in}},
        {.name = "norm_weight",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, 1, p.in},
         .fill_scale = 0.25,
         .fill_offset = 1.0,
         .present = p.norm},
        {.name = "weight",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, p.out, p.in},
         .fill_scale = static_cast<double>(p.weight_deviation())},
        {.name = "up",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, p.out, p.in},
         .fill_scale = static_cast<double>(p.weight_deviation()),
         .present = p.gated},
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
    const LinearProblem p(problem);
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

}  // namespace hone::linear

// Generated from kernel_templates/norm/operators.py by `./hone generate`.
#include "kernel_templates/norm/declaration.h"

#include "kernel_templates/norm/norm.h"

namespace hone::norm {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const NormProblem p(problem);
    return {
        {.name = "x", .dtype = p.dtype, .shape = {1, 1, p.rows, p.hidden}},
        {.name = "residual", .dtype = p.dtype, .shape = {1, 1, p.rows, p.hidden}, .present = p.residual},
        {.name = "weight",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, 1, p.hidden},
         .fill_scale = 0.25,
         .fill_offset = 1.0},
        {.name = "bias",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, 1, p.hidden},
         .present = p.bias},
        {.name = "out", .role = Role::output, .dtype = p.out_dtype(), .shape = {1, 1, p.rows, p.hidden}},
        {.name = "sum",
         .role = Role::output,
         .dtype = p.dtype,
         .shape = {1, 1, p.rows, p.hidden},
         .present = p.residual},
        {.name = "scale", .role = Role::output, .shape = {1, 1, p.rows, 1}, .present = p.quantized()},
    };
}

std::vector<ScalarArgument> declared_scalars(const Problem& problem) {
    const NormProblem p(problem);
    return {
        {.name = "rows", .tuning_value = Scalar::of(p.rows)},
        {.name = "x_stride", .tuning_value = Scalar::of(p.hidden)},
        {.name = "residual_stride", .tuning_value = Scalar::of(p.hidden)},
        {.name = "out_stride", .tuning_value = Scalar::of(p.hidden)},
        {.name = "sum_stride", .tuning_value = Scalar::of(p.hidden)},
        {.name = "epsilon", .tuning_value = Scalar::of(1e-5f)},
    };
}

}  // namespace hone::norm

// Generated from kernel_templates/rmsnorm_backward/operators.py by `./hone generate`.
#include "kernel_templates/rmsnorm_backward/declaration.h"

#include "kernel_templates/rmsnorm_backward/backward.h"

namespace hone::rmsnorm_backward {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const BackwardProblem p(problem);
    return {
        {.name = "dy", .dtype = p.dtype, .shape = {1, 1, p.rows, p.hidden}},
        {.name = "x", .dtype = p.dtype, .shape = {1, 1, p.rows, p.hidden}},
        {.name = "weight",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, 1, p.hidden},
         .fill_scale = 0.25,
         .fill_offset = 1.0},
        {.name = "dsum", .dtype = p.dtype, .shape = {1, 1, p.rows, p.hidden}, .present = p.residual},
        {.name = "dx", .role = Role::output, .dtype = p.dtype, .shape = {1, 1, p.rows, p.hidden}},
        {.name = "dweight", .role = Role::output, .dtype = p.dtype, .shape = {1, 1, 1, p.hidden}},
        {.name = "workspace", .role = Role::workspace},
    };
}

std::vector<ScalarArgument> declared_scalars(const Problem& problem) {
    const BackwardProblem p(problem);
    return {
        {.name = "rows", .tuning_value = Scalar::of(p.rows)},
        {.name = "dy_stride", .tuning_value = Scalar::of(p.hidden)},
        {.name = "x_stride", .tuning_value = Scalar::of(p.hidden)},
        {.name = "dsum_stride", .tuning_value = Scalar::of(p.hidden)},
        {.name = "dx_stride", .tuning_value = Scalar::of(p.hidden)},
        {.name = "epsilon", .tuning_value = Scalar::of(1e-5f)},
    };
}

}  // namespace hone::rmsnorm_backward

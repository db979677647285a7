// Generated from kernel_templates/quantize_weights/operators.py by `./hone generate`.
#include "kernel_templates/quantize_weights/declaration.h"

#include "kernel_templates/quantize_weights/quantize_weights.h"

namespace hone::quantize_weights {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const WeightProblem p(problem);
    return {
        {.name = "weight", .dtype = p.dtype, .shape = {1, 1, p.out, p.in}},
        {.name = "codes",
         .role = Role::output,
         .dtype = p.code_dtype(),
         .shape = {1, 1, p.code_rows(), p.row_bytes()}},
        {.name = "scales",
         .role = Role::output,
         .dtype = p.stored_scale_dtype(),
         .shape = {1, 1, 1, p.scale_count()}},
        {.name = "zeros",
         .role = Role::output,
         .dtype = Dtype::int8,
         .shape = {1, 1, 1, p.scale_count()},
         .present = p.zeros},
        {.name = "workspace", .role = Role::workspace, .dtype = untyped_dtype},
    };
}

std::vector<ScalarArgument> declared_scalars(const Problem& problem) {
    const WeightProblem p(problem);
    return {
        {.name = "out", .tuning_value = Scalar::of(p.out)},
        {.name = "weight_stride", .tuning_value = Scalar::of(p.in)},
    };
}

}  // namespace hone::quantize_weights

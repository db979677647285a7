// Generated from kernel_templates/expert_linear/operators.py by `./hone generate`.
#include "kernel_templates/expert_linear/declaration.h"

#include "kernel_templates/expert_linear/expert_linear.h"

namespace hone::expert_linear {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const ExpertProblem p(problem);
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
         .dtype = p.dtype,
         .shape = {1, p.experts, p.out, p.in},
         .fill_scale = static_cast<double>(p.weight_deviation())},
        {.name = "up",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, p.experts, p.out, p.in},
         .fill_scale = static_cast<double>(p.weight_deviation()),
         .present = p.gated},
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
    const ExpertProblem p(problem);
    return {
        {.name = "tokens", .tuning_value = Scalar::of(p.tokens)},
        {.name = "x_stride", .tuning_value = Scalar::of(p.in)},
        {.name = "out_stride", .tuning_value = Scalar::of(p.out)},
    };
}

}  // namespace hone::expert_linear

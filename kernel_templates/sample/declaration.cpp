// Generated from kernel_templates/sample/operators.py by `./hone generate`.
#include "kernel_templates/sample/declaration.h"

namespace hone::sample {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const SampleProblem p(problem);
    return {
        {.name = "logits", .dtype = p.dtype, .shape = {1, 1, p.rows, p.vocabulary}, .fill_scale = 2.0},
        {.name = "temperature", .shape = {1, 1, p.rows, 1}, .fill = Fill::constant, .fill_offset = 1.0},
        {.name = "top_k",
         .dtype = index_dtype,
         .shape = {1, 1, p.rows, 1},
         .fill = Fill::constant,
         .fill_offset = 1000.0,
         .present = p.filters},
        {.name = "top_p",
         .shape = {1, 1, p.rows, 1},
         .fill = Fill::constant,
         .fill_offset = 0.9,
         .present = p.filters},
        {.name = "min_p", .shape = {1, 1, p.rows, 1}, .fill = Fill::constant, .present = p.filters},
        {.name = "seed", .dtype = wide_index_dtype, .shape = {1, 1, p.rows, 1}, .fill = Fill::ramp},
        {.name = "counter",
         .dtype = wide_index_dtype,
         .shape = {1, 1, p.rows, 1},
         .fill = Fill::constant,
         .fill_offset = 1.0},
        {.name = "out", .role = Role::output, .dtype = index_dtype, .shape = {1, 1, p.rows, 1}},
        {.name = "log_probability",
         .role = Role::output,
         .shape = {1, 1, p.rows, 1},
         .present = p.log_probability},
    };
}

std::vector<ScalarArgument> declared_scalars(const Problem& problem) {
    const SampleProblem p(problem);
    return {
        {.name = "rows", .tuning_value = Scalar::of(p.rows)},
        {.name = "logits_stride", .tuning_value = Scalar::of(p.vocabulary)},
    };
}

}  // namespace hone::sample

// Generated from kernel_templates/embedding/operators.py by `./hone generate`.
#include "kernel_templates/embedding/declaration.h"

#include "kernel_templates/kit/ids.h"

namespace hone::embedding {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const EmbeddingProblem p(problem);
    return {
        {.name = "ids",
         .dtype = p.index_type(),
         .shape = {1, 1, p.tokens, 1},
         .fill = Fill::permutation,
         .fill_scale = static_cast<double>(id_step(p.vocabulary, p.tokens))},
        {.name = "table", .role = Role::weight, .dtype = p.dtype, .shape = {1, 1, p.vocabulary, p.hidden}},
        {.name = "position_ids",
         .dtype = p.index_type(),
         .shape = {1, 1, p.tokens, 1},
         .fill = Fill::permutation,
         .fill_scale = static_cast<double>(id_step(p.position_rows, p.tokens)),
         .present = p.positions},
        {.name = "position_table",
         .role = Role::weight,
         .dtype = p.dtype,
         .shape = {1, 1, p.position_rows, p.hidden},
         .present = p.positions},
        {.name = "out", .role = Role::output, .dtype = p.dtype, .shape = {1, 1, p.tokens, p.hidden}},
    };
}

std::vector<ScalarArgument> declared_scalars(const Problem& problem) {
    const EmbeddingProblem p(problem);
    return {
        {.name = "tokens", .tuning_value = Scalar::of(p.tokens)},
        {.name = "vocabulary", .tuning_value = Scalar::of(p.vocabulary)},
        {.name = "position_rows", .tuning_value = Scalar::of(p.position_rows)},
        {.name = "table_stride", .tuning_value = Scalar::of(p.hidden)},
        {.name = "position_table_stride", .tuning_value = Scalar::of(p.hidden)},
        {.name = "out_stride", .tuning_value = Scalar::of(p.hidden)},
        {.name = "scale", .tuning_value = Scalar::of(1.5f)},
    };
}

}  // namespace hone::embedding

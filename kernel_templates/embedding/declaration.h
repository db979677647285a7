// What embedding declares: fields, pointers and scalars. Generated from
// kernel_templates/embedding/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel_templates/enums.h"
#include "kernel_templates/family.h"

namespace hone::embedding {

/// Index of each pointer of a call.
enum Pointer : int { ids, table, position_ids, position_table, out, pointer_count };
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int {
    tokens,
    vocabulary,
    position_rows,
    table_stride,
    position_table_stride,
    out_stride,
    scale,
    scalar_count
};

inline constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
inline constexpr std::string_view index_choices[] = {"int32", "int64"};
inline constexpr std::string_view yes_no[] = {"no", "yes"};

inline constexpr Field fields[] = {
    {.name = "dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of the tables and of out",
     .min = 0,
     .max = 2,
     .choices = dtype_choices},
    {.name = "index",
     .kind = Field::Kind::choice,
     .meaning = "type of the ids",
     .min = 0,
     .default_value = 0,
     .choices = index_choices},
    {.name = "scale",
     .kind = Field::Kind::choice,
     .meaning = "multiplies the table's row by a number",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "positions",
     .kind = Field::Kind::choice,
     .meaning = "adds a row of a second table",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "hidden", .kind = Field::Kind::extent, .meaning = "elements a row", .max = 262144},
    {.name = "tokens",
     .kind = Field::Kind::dynamic,
     .meaning = "tokens of a call",
     .max = std::int64_t{1} << 24},
    {.name = "vocabulary",
     .kind = Field::Kind::free,
     .meaning = "rows of the table",
     .max = 2147483647,
     .default_value = 32768},
    {.name = "position_rows",
     .kind = Field::Kind::free,
     .meaning = "rows of the table of positions",
     .max = 2147483647,
     .default_value = 1024},
};

/// A problem's fields by their names.
struct Fields {
    Dtype dtype = Dtype::bf16;
    IndexType index = IndexType::int32;
    bool scale = false;
    bool positions = false;
    std::int64_t hidden = 0;
    std::int64_t tokens = 0;
    std::int64_t vocabulary = 32768;
    std::int64_t position_rows = 1024;
};
[[nodiscard]] inline Fields fields_of(const Problem& problem) {
    return {.dtype = static_cast<Dtype>(problem[0]),
            .index = static_cast<IndexType>(problem[1]),
            .scale = problem[2] != 0,
            .positions = problem[3] != 0,
            .hidden = problem[4],
            .tokens = problem[5],
            .vocabulary = problem[6],
            .position_rows = problem[7]};
}
/// A problem as numbers.
struct EmbeddingProblem : Fields {
    EmbeddingProblem() = default;
    explicit EmbeddingProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    [[nodiscard]] Dtype index_type() const {
        return index == IndexType::int64 ? wide_index_dtype : index_dtype;
    }
};

/// The whole call, as most kernels take it.
inline constexpr KernelArg call_args[] = {
    pointer_arg(ids, "ids"),
    pointer_arg(table, "table"),
    pointer_arg(position_ids, "position_ids"),
    pointer_arg(position_table, "position_table"),
    pointer_arg(out, "out"),
    scalar_arg(tokens, "tokens"),
    scalar_arg(vocabulary, "vocabulary"),
    scalar_arg(position_rows, "position_rows"),
    scalar_arg(table_stride, "table_stride"),
    scalar_arg(position_table_stride, "position_table_stride"),
    scalar_arg(out_stride, "out_stride"),
    float_arg(scale, "scale"),
};
/// The scalars that are distances between rows, and whose.
inline constexpr RowStride row_strides[] = {
    {table_stride, table},
    {position_table_stride, position_table},
    {out_stride, out},
};

/// The arguments as tuning passes them.
[[nodiscard]] std::vector<Argument> declared_arguments(const Problem& problem);
[[nodiscard]] std::vector<ScalarArgument> declared_scalars(const Problem& problem);

/// Adds what is declared to what is a family's own: variants, rules, tolerance, work, reference.
[[nodiscard]] constexpr Family declared(Family own) {
    own.name = "embedding";
    own.summary = "rows of a table by the tokens' ids, with or without a scale and added positions";
    own.fields = fields;
    own.call_args = call_args;
    own.row_strides = row_strides;
    own.arguments = declared_arguments;
    own.scalars = declared_scalars;
    return own;
}

}  // namespace hone::embedding

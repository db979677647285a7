// What sample declares: fields, pointers and scalars. Generated from kernel_templates/sample/operators.py by
// `./hone generate`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel_templates/family.h"

namespace hone::sample {

/// Index of each pointer of a call.
enum Pointer : int {
    logits,
    temperature,  ///< 0: the likeliest token
    top_k,        ///< 0: all
    top_p,        ///< 1: all
    min_p,        ///< 0: all
    seed,
    counter,
    out,
    log_probability,
    pointer_count
};
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int { rows, logits_stride, scalar_count };

inline constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
inline constexpr std::string_view yes_no[] = {"no", "yes"};

inline constexpr Field fields[] = {
    {.name = "dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of the logits",
     .min = 0,
     .max = 2,
     .choices = dtype_choices},
    {.name = "filters",
     .kind = Field::Kind::choice,
     .meaning = "top-k, top-p and min-p choose what is drawn from",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "log_probability",
     .kind = Field::Kind::choice,
     .meaning = "writes the log-probability of the token at temperature 1, unfiltered",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "softcap",
     .kind = Field::Kind::extent,
     .meaning = "logits x count as softcap * tanh(x / softcap); 0: as they are",
     .min = 0,
     .max = 65536,
     .default_value = 0,
     .quiet_default = true},
    {.name = "vocabulary",
     .kind = Field::Kind::extent,
     .meaning = "logits a row",
     .max = std::int64_t{1} << 20},
    {.name = "rows", .kind = Field::Kind::dynamic, .meaning = "rows of a call", .max = std::int64_t{1} << 20},
};

/// A problem's fields by their names.
struct Fields {
    Dtype dtype = Dtype::bf16;
    bool filters = false;
    bool log_probability = false;
    std::int64_t softcap = 0;
    std::int64_t vocabulary = 0;
    std::int64_t rows = 0;
};
[[nodiscard]] inline Fields fields_of(const Problem& problem) {
    return {.dtype = static_cast<Dtype>(problem[0]),
            .filters = problem[1] != 0,
            .log_probability = problem[2] != 0,
            .softcap = problem[3],
            .vocabulary = problem[4],
            .rows = problem[5]};
}
/// A problem as numbers.
struct SampleProblem : Fields {
    SampleProblem() = default;
    explicit SampleProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
};

/// The whole call, as most kernels take it.
inline constexpr KernelArg call_args[] = {
    pointer_arg(logits, "logits"),
    pointer_arg(temperature, "temperature"),
    pointer_arg(top_k, "top_k"),
    pointer_arg(top_p, "top_p"),
    pointer_arg(min_p, "min_p"),
    pointer_arg(seed, "seed"),
    pointer_arg(counter, "counter"),
    pointer_arg(out, "out"),
    pointer_arg(log_probability, "log_probability"),
    scalar_arg(rows, "rows"),
    scalar_arg(logits_stride, "logits_stride"),
};
/// The scalars that are distances between rows, and whose.
inline constexpr RowStride row_strides[] = {
    {logits_stride, logits},
};

/// The arguments as tuning passes them.
[[nodiscard]] std::vector<Argument> declared_arguments(const Problem& problem);
[[nodiscard]] std::vector<ScalarArgument> declared_scalars(const Problem& problem);

/// Adds what is declared to what is a family's own: variants, rules, tolerance, work, reference.
[[nodiscard]] constexpr Family declared(Family own) {
    own.name = "sample";
    own.summary =
        "a token for each row of logits: the likeliest, or drawn at a temperature, with or without filters";
    own.fields = fields;
    own.call_args = call_args;
    own.row_strides = row_strides;
    own.arguments = declared_arguments;
    own.scalars = declared_scalars;
    return own;
}

}  // namespace hone::sample

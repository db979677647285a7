// What expert_routing declares: fields, pointers and scalars. Generated from
// kernel_templates/expert_routing/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel_templates/family.h"

namespace hone::expert_routing {

/// Index of each pointer of a call.
enum Pointer : int { logits, routing_weights, starts, rows, workspace, pointer_count };
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int { tokens, logits_stride, scalar_count };

inline constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
inline constexpr std::string_view yes_no[] = {"no", "yes"};

inline constexpr Field fields[] = {
    {.name = "dtype",
     .kind = Field::Kind::choice,
     .meaning = "element type of the logits",
     .min = 0,
     .max = 2,
     .choices = dtype_choices},
    {.name = "renormalize",
     .kind = Field::Kind::choice,
     .meaning = "the weights of a token's experts add up to 1; else the softmax over all experts stays",
     .min = 0,
     .default_value = 0,
     .choices = yes_no},
    {.name = "experts", .kind = Field::Kind::extent, .meaning = "logits a token", .max = 512},
    {.name = "top_k",
     .kind = Field::Kind::extent,
     .meaning = "experts that a token goes to, at most all",
     .max = 32},
    {.name = "tokens",
     .kind = Field::Kind::dynamic,
     .meaning = "tokens of a call",
     .max = std::int64_t{1} << 20},
};

/// A problem's fields by their names.
struct Fields {
    Dtype dtype = Dtype::bf16;
    bool renormalize = false;
    std::int64_t experts = 0;
    std::int64_t top_k = 0;
    std::int64_t tokens = 0;
};
[[nodiscard]] inline Fields fields_of(const Problem& problem) {
    return {.dtype = static_cast<Dtype>(problem[0]),
            .renormalize = problem[1] != 0,
            .experts = problem[2],
            .top_k = problem[3],
            .tokens = problem[4]};
}

/// The whole call, as most kernels take it.
inline constexpr KernelArg call_args[] = {
    pointer_arg(logits, "logits"),
    pointer_arg(routing_weights, "routing_weights"),
    pointer_arg(starts, "starts"),
    pointer_arg(rows, "rows"),
    pointer_arg(workspace, "workspace"),
    scalar_arg(tokens, "tokens"),
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
    own.name = "expert_routing";
    own.summary =
        "the top_k experts of each token with their weights, and the order of (token, slot) pairs by expert";
    own.fields = fields;
    own.call_args = call_args;
    own.row_strides = row_strides;
    own.arguments = declared_arguments;
    own.scalars = declared_scalars;
    return own;
}

}  // namespace hone::expert_routing

// What one of the tensor-parallel GPUs computes of a model, and the operators of its norms and linear layers.
// Called by operators.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/models/operators.h"

namespace hone::tuner {

struct ModelPart {
    const Model& model;
    Dtype dtype;
    std::int64_t heads;
    std::int64_t kv_heads;
    std::int64_t intermediate;
    std::int64_t vocab;
    std::vector<std::int64_t> tokens;
    bool usual_tokens;  ///< nobody asked for others
    int parts;          ///< GPUs
    checkpoints::WeightFormat weights;
};

/// Token counts at which look-ups are tuned, and rows of logits: a few where nobody asked for others, since
/// dispatch takes the nearest and winners change slowly with them.
[[nodiscard]] std::vector<std::int64_t> look_ups_of(const ModelPart& part);
[[nodiscard]] std::vector<std::int64_t> drawn_rows_of(const ModelPart& part);

/// Throws ConfigError where --tp does not divide `what`.
[[nodiscard]] std::int64_t divide(std::string_view what, std::int64_t value, int parts);

/// An operator that no family covers.
[[nodiscard]] ModelOperator without_kernel(std::string role, std::string family, std::int64_t count,
                                           std::string shape);

/// A norm of `rows` of a token, `width` elements each.
[[nodiscard]] ModelOperator norm_operator(const ModelPart& part, std::string role, std::int64_t count,
                                          bool residual, std::int64_t width, std::int64_t rows = 1);

[[nodiscard]] std::vector<ModelOperator> norm_operators(const ModelPart& part);
[[nodiscard]] std::vector<ModelOperator> linear_operators(const ModelPart& part);

}  // namespace hone::tuner

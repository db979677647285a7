// What the families linear and quantized_linear ask and refuse alike: fields, arguments, rules. For their
// family.cpp alone: nothing here is part of a kernel or its launch, so no template's hash covers it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernel_templates/linear/linear.h"

namespace hone::linear {

inline constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
inline constexpr std::string_view activation_choices[] = {"none", "gelu_tanh", "gelu_erf", "silu", "relu"};
inline constexpr std::string_view yes_no[] = {"no", "yes"};

inline constexpr Field norm_field{
    "norm", Field::Kind::choice, "takes x / sqrt(mean(x^2) + epsilon) * norm_weight for x", 0, 1, 0, yes_no};
inline constexpr Field activation_field{
    "activation", Field::Kind::choice, "of x * weight^T + bias", 0, 4, 0, activation_choices};
inline constexpr Field gated_field{
    "gated", Field::Kind::choice, "multiplies the activation with x * up^T", 0, 1, 0, yes_no};
inline constexpr Field bias_field{
    "bias", Field::Kind::choice, "adds bias[out] before the activation", 0, 1, 0, yes_no};
inline constexpr Field residual_field{
    "residual", Field::Kind::choice, "adds residual[tokens, out] after the activation", 0, 1, 0, yes_no};
inline constexpr Field in_field{"in", Field::Kind::extent, "columns of x and of the weight", 1, 262144};
inline constexpr Field out_field{"out", Field::Kind::extent, "rows of the weight, columns of the result", 1,
                                 1048576};
inline constexpr Field tokens_field{"tokens", Field::Kind::dynamic, "rows of x and of the result", 1,
                                    std::int64_t{1} << 24};

[[nodiscard]] Argument matrix(std::string_view name, Role role, Dtype dtype, std::int64_t rows,
                              std::int64_t columns, bool present = true);
/// [in], around 1.
[[nodiscard]] Argument norm_weight_argument(const LinearProblem&);
/// Standard deviation of weights whose results then have the size of x.
[[nodiscard]] double weight_deviation(const LinearProblem&);

/// What is wrong with an epilogue, or with the size of a matrix; empty: nothing.
[[nodiscard]] std::string wrong_gate(const LinearProblem&);
[[nodiscard]] std::string too_large(std::string_view what, std::int64_t rows, std::int64_t columns);

[[nodiscard]] Work work_of(const LinearProblem&, std::span<const Argument>);
/// A block for 64 x 64 results.
[[nodiscard]] Dim3 reference_grid(const LinearProblem&);

}  // namespace hone::linear

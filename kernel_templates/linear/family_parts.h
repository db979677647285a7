// What the families linear and quantized_linear refuse and count alike. For their family.cpp alone: nothing
// here is part of a kernel or its launch, so no template's hash covers it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernel_templates/linear/linear.h"

namespace hone::linear {

/// What is wrong with an epilogue, or with the size of a matrix; empty: nothing.
[[nodiscard]] std::string wrong_gate(const LinearProblem&);
[[nodiscard]] std::string too_large(std::string_view what, std::int64_t rows, std::int64_t columns);

/// The same product of x as it is, without a norm, and of which nothing else is made, without bias and
/// residual; nothing: it is that already.
[[nodiscard]] std::optional<Problem> plain_product(const Problem&);

[[nodiscard]] Work work_of(const LinearProblem&, std::span<const Argument>);
/// A block for 64 x 64 results.
[[nodiscard]] Dim3 reference_grid(const LinearProblem&);

}  // namespace hone::linear

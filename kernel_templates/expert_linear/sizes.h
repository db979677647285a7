// What the families of layers of experts have in common: which sizes are allowed, the work of a call, and how
// the reference is launched.
#pragma once

#include <span>
#include <string>

#include "kernel_templates/expert_linear/expert_linear.h"
#include "kernel_templates/kit/launches.h"

namespace hone::expert_linear {

/// What is wrong with experts, places or sizes, naming field, value and what is allowed; empty: nothing.
[[nodiscard]] std::string wrong_sizes(const ExpertProblem&);

/// Weights of the experts that a balanced routing uses, which are so many bytes; x and results once each.
[[nodiscard]] Work work_of(const ExpertProblem&, double weight_bytes);

/// `kernels` are the reference of all slots' results, and that of their sums.
[[nodiscard]] Plan reference_plan_of(const ExpertProblem&, std::span<const Kernel, 2> kernels);

}  // namespace hone::expert_linear

// What sizes are allowed, for the families of layers of experts.
#pragma once

#include <string>

#include "kernel_templates/expert_linear/expert_linear.h"

namespace hone::expert_linear {

/// What is wrong with experts, places or sizes, naming field, value and what is allowed; empty: nothing.
[[nodiscard]] std::string wrong_sizes(const ExpertProblem&);

}  // namespace hone::expert_linear

// From the public descriptions of norms to problems of their families.
#pragma once

#include "hone/norm.h"
#include "kernel_templates/problem.h"

namespace hone::runtime {

/// The norm as a problem of `max_rows` rows. Throws std::invalid_argument naming field, value and what is
/// allowed.
[[nodiscard]] Problem norm_problem(const RmsNorm& norm);
[[nodiscard]] Problem norm_problem(const LayerNorm& norm);

}  // namespace hone::runtime

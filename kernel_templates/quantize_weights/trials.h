// The work of quantize_weights: how often each weight is tried. For cost models alone.
#pragma once

#include "kernel_templates/quantize_weights/quantize_weights.h"

namespace hone::quantize_weights {

/// Scales that a group of w4a16 is tried with; 1 without search.
[[nodiscard]] std::int64_t trials(const WeightProblem&);

}  // namespace hone::quantize_weights

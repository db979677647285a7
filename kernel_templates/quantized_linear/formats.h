// What a format allows, for the families whose weights have one.
#pragma once

#include <string>

#include "kernel_templates/quantized_linear/quantized_linear.h"

namespace hone::quantized_linear {

/// What is wrong with a format's group or zero points, naming field, value and what is allowed; empty:
/// nothing.
[[nodiscard]] std::string wrong_format(const QuantizedProblem&);

}  // namespace hone::quantized_linear

// What a norm in front of a product costs as a launch of its own (normalize.h).
#pragma once

#include "kernel_templates/linear/linear.h"

namespace hone::linear {

/// Modelled microseconds of the launch; 0 without a norm.
[[nodiscard]] double normalize_us(const LinearProblem&, const DeviceTraits&);

}  // namespace hone::linear

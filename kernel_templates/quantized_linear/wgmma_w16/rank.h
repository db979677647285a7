// What variant wgmma_w16 costs.
#pragma once

#include "kernel_templates/quantized_linear/wgmma_w16/plan.h"

namespace hone::quantized_linear {

/// Microseconds of a call.
[[nodiscard]] double predict(const QuantizedProblem&, const WgmmaW16Config&, const DeviceTraits&);

}  // namespace hone::quantized_linear

// What variant mma_tiles costs.
#pragma once

#include "kernel_templates/linear/mma_tiles/plan.h"

namespace hone::linear::tiles {

/// Microseconds of a call.
[[nodiscard]] double predict(const LinearProblem&, const MmaTilesConfig&, const DeviceTraits&);

}  // namespace hone::linear::tiles

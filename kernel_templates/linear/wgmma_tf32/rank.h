// What variant wgmma_tf32 costs.
#pragma once

#include "kernel_templates/linear/wgmma_tf32/plan.h"

namespace hone::linear::tf32 {

/// Steps of a whole sum.
[[nodiscard]] std::int64_t steps(const LinearProblem&);
/// Blocks that run at the same time. Clusters do not fill every group of multiprocessors, and nothing here
/// can ask how many fit: a careful estimate.
[[nodiscard]] std::int64_t resident_blocks(const WgmmaTf32Config&, const DeviceTraits&);

/// Microseconds of a call.
[[nodiscard]] double predict(const LinearProblem&, const WgmmaTf32Config&, const DeviceTraits&);

}  // namespace hone::linear::tf32

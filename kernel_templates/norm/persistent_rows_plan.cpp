#include "kernel_templates/norm/persistent_rows_plan.h"

#include <algorithm>

namespace hone::norm {

std::int64_t ring_bytes(const NormProblem& norm, const PersistentRowsConfig& c) {
    const std::int64_t row =
        norm.packets(c.lanes, c.vector) * c.lanes * c.vector * norm.element_bytes() * (norm.residual ? 2 : 1);
    return row * c.stages * (c.threads / c.lanes);
}

Plan persistent_rows_plan(const NormProblem& norm, const PersistentRowsConfig& c,
                          const DeviceTraits& traits) {
    const std::int64_t blocks = ceil_div(norm.rows, c.threads / c.lanes);
    const std::int64_t resident = traits.sm_count * c.blocks_per_sm;
    Launch first = launch(persistent_rows_kernels[0], grid_of(std::min(blocks, resident)), c.threads);
    first.shared_bytes = static_cast<std::uint32_t>(ring_bytes(norm, c));
    first.programmatic = c.programmatic != 0;
    return plan_of(first);
}

}  // namespace hone::norm

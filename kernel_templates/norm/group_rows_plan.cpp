#include "kernel_templates/norm/group_rows_plan.h"

namespace hone::norm {

Plan group_rows_plan(const NormProblem& norm, const GroupRowsConfig& c, const DeviceTraits&) {
    const std::int64_t rows_per_block = c.threads / c.lanes * c.rows;
    Launch first = launch(group_rows_kernels[0], grid_of(ceil_div(norm.rows, rows_per_block)), c.threads);
    first.programmatic = c.programmatic != 0;
    return plan_of(first);
}

}  // namespace hone::norm

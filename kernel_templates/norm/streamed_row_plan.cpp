#include "kernel_templates/norm/streamed_row_plan.h"

namespace hone::norm {

Plan streamed_row_plan(const NormProblem& norm, const StreamedRowConfig& c, const DeviceTraits&) {
    Launch first = launch(streamed_row_kernels[0], grid_of(norm.rows), c.threads);
    first.programmatic = c.programmatic != 0;
    return plan_of(first);
}

}  // namespace hone::norm

#include "kernel_templates/rmsnorm_backward/two_pass_plan.h"

namespace hone::rmsnorm_backward {

std::int64_t tiles(const BackwardProblem& norm, const TwoPassConfig& c) {
    return ceil_div(norm.hidden, 32 * c.vector);
}

Plan two_pass_plan(const BackwardProblem& norm, const TwoPassConfig& c, const DeviceTraits&) {
    const bool early = c.programmatic != 0;
    Plan plan{.launch_count = 3, .workspace_bytes = (c.chunks * norm.hidden + 2 * norm.rows) * 4};
    plan.launches[0] = launch_early(two_pass_kernels[0], norm.rows, c.threads, early);
    plan.launches[1] = launch_early(two_pass_kernels[1], tiles(norm, c) * c.chunks, c.threads, early);
    plan.launches[2] = sum_launch(two_pass_kernels[2], norm, c.sum_lanes, early);
    return plan;
}

}  // namespace hone::rmsnorm_backward

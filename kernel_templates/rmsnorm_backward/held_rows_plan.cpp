#include "kernel_templates/rmsnorm_backward/held_rows_plan.h"

#include <algorithm>

namespace hone::rmsnorm_backward {

namespace {

/// Floats in front of the partial rows in the workspace, as in held_rows.cu.
constexpr std::int64_t header_floats = 64;

}  // namespace

std::int64_t block_count(const BackwardProblem& norm, const HeldRowsConfig& c, const DeviceTraits& traits) {
    return std::min<std::int64_t>(ceil_div(norm.rows, c.threads / c.lanes),
                                  traits.sm_count * c.blocks_per_sm);
}

Plan held_rows_plan(const BackwardProblem& norm, const HeldRowsConfig& c, const DeviceTraits& traits) {
    const bool early = c.programmatic != 0;
    const std::int64_t blocks = block_count(norm, c, traits);
    Plan plan{.launch_count = 2, .workspace_bytes = (header_floats + blocks * norm.hidden) * 4};
    plan.launches[0] = launch_early(held_rows_kernels[0], blocks, c.threads, early);
    plan.launches[1] = sum_launch(held_rows_kernels[1], norm, c.sum_lanes, early);
    return plan;
}

}  // namespace hone::rmsnorm_backward

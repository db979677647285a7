#include "kernel_templates/norm/cluster_row_plan.h"

namespace hone::norm {

Plan cluster_row_plan(const NormProblem& norm, const ClusterRowConfig& c, const DeviceTraits&) {
    Launch first = launch(cluster_row_kernels[0], grid_of(norm.rows * c.cluster), c.threads);
    first.cluster = grid_of(c.cluster);
    first.programmatic = c.programmatic != 0;
    return plan_of(first);
}

}  // namespace hone::norm

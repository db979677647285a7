#include "kernel_templates/sample/cluster_row_plan.h"

namespace hone::sample {

std::int64_t shared_bytes(const SampleProblem& p, const ClusterRowConfig& c) {
    const Geometry cut = geometry(p, c);
    const std::int64_t row = c.home != 0 ? cut.block_tokens() * p.element_bytes() : 0;
    const std::int64_t values = counts_values(c) ? 4 * value_slots * value_parts(cut, p.filters) : 0;
    return scratch_bytes(cut.blocks, cut.warps(), p.filters, counts_values(c)) + values + row;
}

Plan cluster_row_plan(const SampleProblem& p, const ClusterRowConfig& c, const DeviceTraits&) {
    Launch first = launch(cluster_row_kernels[0], grid_of(p.rows * c.cluster), c.threads);
    first.cluster = grid_of(c.cluster);
    first.shared_bytes = static_cast<std::uint32_t>(shared_bytes(p, c));
    first.programmatic = c.programmatic != 0;
    return plan_of(first);
}

}  // namespace hone::sample

#include "kernel_templates/expert_linear/drawn/plan.h"

#include "kernel_templates/expert_linear/drawn/room.cuh"
#include "kernel_templates/expert_linear/room.cuh"

namespace hone::expert_linear {

Plan drawn_plan(const ExpertProblem& p, const DrawnConfig& c, const DeviceTraits& traits) {
    Plan plan = wgmma_plan(p, c.dealt(), traits);
    for (int i = 0; i < plan.launch_count; ++i) {
        Launch& launch = plan.launches[static_cast<std::size_t>(i)];
        const auto kernel = static_cast<std::size_t>(launch.kernel - wgmma_kernels);
        launch.kernel = &drawn_kernels[kernel];
        if (kernel == 0) launch.shared_bytes += drawn::number_bytes;
    }
    plan.workspace_bytes =
        partials_at(p.places(), result_bytes(p), copy_bytes(p, c.copied_x != 0)) + drawn::deal_bytes;
    return plan;
}

}  // namespace hone::expert_linear

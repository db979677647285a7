// How expert_routing/blocks.cu is launched.
#pragma once

#include "kernel_templates/expert_routing/routing_plan.h"

namespace hone::expert_routing {

inline constexpr Kernel blocks_kernels[] = {{"expert_routing_count", call_args},
                                            {"expert_routing_scan", call_args},
                                            {"expert_routing_scatter", call_args}};

/// Blocks of the first and the last launch.
[[nodiscard]] inline std::int64_t parts(const RoutingProblem& p, const RoutingConfig& c) {
    return ceil_div(p.tokens, c.pairs / p.top_k);
}

[[nodiscard]] inline Plan blocks_plan(const RoutingProblem& p, const RoutingConfig& c, const DeviceTraits&) {
    Plan plan = plan_of(order_launch(blocks_kernels[0], parts(p, c), p, c));
    plan.launches[1] = launch(blocks_kernels[1], grid_of(1), c.threads);
    plan.launches[1].programmatic = c.programmatic != 0;
    plan.launches[2] = order_launch(blocks_kernels[2], parts(p, c), p, c);
    plan.launch_count = 3;
    plan.workspace_bytes = 4 * (p.places() + parts(p, c) * p.experts);
    return plan;
}

}  // namespace hone::expert_routing

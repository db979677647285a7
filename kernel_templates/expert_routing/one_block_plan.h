// How expert_routing/one_block.cu is launched.
#pragma once

#include "kernel_templates/expert_routing/routing_plan.h"

namespace hone::expert_routing {

inline constexpr Kernel one_block_kernels[] = {{"expert_routing_one_block", call_args}};

[[nodiscard]] inline Plan one_block_plan(const RoutingProblem& p, const RoutingConfig& c,
                                         const DeviceTraits&) {
    return plan_of(order_launch(one_block_kernels[0], 1, p, c));
}

}  // namespace hone::expert_routing

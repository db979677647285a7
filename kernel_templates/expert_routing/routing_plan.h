// How routing's kernels are launched: the config and the sizes that both variants share.
#pragma once

#include "kernel_templates/expert_routing/members.cuh"
#include "kernel_templates/expert_routing/routing.h"
#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/kit/launches.h"

namespace hone::expert_routing {

struct RoutingConfig {
    std::int64_t threads = 512;
    std::int64_t pairs = 256;
    std::int64_t programmatic = 0;
};

[[nodiscard]] constexpr std::int64_t shared_bytes(const RoutingProblem& p, const RoutingConfig& c) {
    return order_bytes(static_cast<int>(p.experts), static_cast<int>(c.pairs));
}

/// `blocks` blocks with their sets in shared memory.
[[nodiscard]] inline Launch order_launch(const Kernel& kernel, std::int64_t blocks, const RoutingProblem& p,
                                         const RoutingConfig& c) {
    Launch made = launch(kernel, grid_of(blocks), c.threads);
    made.shared_bytes = static_cast<std::uint32_t>(shared_bytes(p, c));
    made.programmatic = c.programmatic != 0;
    return made;
}

extern const Variant one_block;
extern const Variant blocks;

}  // namespace hone::expert_routing

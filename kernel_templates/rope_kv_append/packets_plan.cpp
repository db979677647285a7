#include "kernel_templates/rope_kv_append/packets_plan.h"

namespace hone::rope_kv_append {

std::int64_t lanes(const RopeProblem& p, const PacketsConfig& c) {
    std::int64_t power = 1;
    while (power < p.head_dim / (2 * c.vector)) power *= 2;
    return power;
}

std::int64_t groups(const RopeProblem& p, const PacketsConfig& c) { return c.threads / lanes(p, c); }

std::int64_t blocks_a_token(const RopeProblem& p, const PacketsConfig& c) {
    return ceil_div(p.all_heads(), groups(p, c) * c.heads_a_thread);
}

Plan packets_plan(const RopeProblem& p, const PacketsConfig& c, const DeviceTraits&) {
    Launch first = launch(packets_kernels[0], grid_of(p.tokens * blocks_a_token(p, c)), c.threads);
    first.programmatic = c.programmatic != 0;
    return plan_of(first);
}

}  // namespace hone::rope_kv_append

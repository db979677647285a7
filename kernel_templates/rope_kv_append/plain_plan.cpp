#include "kernel_templates/rope_kv_append/plain_plan.h"

namespace hone::rope_kv_append {

Plan plain_plan(const RopeProblem& p, const PlainConfig& c, const DeviceTraits&) {
    const std::int64_t blocks = ceil_div(p.tokens * p.all_heads(), c.threads / 32);
    Launch first = launch(plain_kernels[0], grid_of(blocks), c.threads);
    first.programmatic = c.programmatic != 0;
    return plan_of(first);
}

}  // namespace hone::rope_kv_append

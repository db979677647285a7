#include "kernel_templates/attention_prefill/wgmma_tf32/plan.h"

namespace hone::attention_prefill::tf32 {

Geometry geometry(const AttentionProblem& p, const WgmmaTf32Config& c) {
    return {.head_dim = static_cast<int>(p.head_dim),
            .consumers = static_cast<int>(c.consumers),
            .tile_n = static_cast<int>(c.tile_n),
            .stages = static_cast<int>(c.stages)};
}

std::int64_t tiles(const AttentionProblem& p, const Geometry& g) {
    return p.slots() * ceil_div(p.q_len, g.tile_m());
}

Plan plan(const AttentionProblem& p, const WgmmaTf32Config& c, const DeviceTraits&) {
    const Geometry g = geometry(p, c);
    Launch first = launch(kernels[0], grid_of(tiles(p, g)), g.threads());
    first.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    first.programmatic = c.programmatic != 0;
    return plan_of(first);
}

}  // namespace hone::attention_prefill::tf32

#include "kernel_templates/attention_prefill/mma/plan.h"

namespace hone::attention_prefill::warp_mma {

Geometry geometry(const AttentionProblem& p, const MmaConfig& c) {
    return {.head_dim = static_cast<int>(p.head_dim),
            .warps = static_cast<int>(c.warps),
            .warp_rows = static_cast<int>(c.warp_rows),
            .tile_n = static_cast<int>(c.tile_n),
            .stages = static_cast<int>(c.stages),
            .blocks_per_sm = static_cast<int>(c.blocks_per_sm),
            .query_in_registers = c.query_in_registers != 0};
}

Plan plan(const AttentionProblem& p, const MmaConfig& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    return tile_plan(kernels[0], p,
                     {.tile_m = g.tile_m(),
                      .threads = g.threads(),
                      .shared_bytes = g.shared_bytes(),
                      .programmatic = c.programmatic != 0},
                     traits);
}

}  // namespace hone::attention_prefill::warp_mma

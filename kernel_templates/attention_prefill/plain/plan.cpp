#include "kernel_templates/attention_prefill/plain/plan.h"

namespace hone::attention_prefill::cuda_cores {

Geometry geometry(const AttentionProblem& p, const PlainConfig& c) {
    return {.head_dim = static_cast<int>(p.head_dim),
            .tile_m = static_cast<int>(c.tile_m),
            .tile_n = static_cast<int>(c.tile_n),
            .thread_m = static_cast<int>(c.thread_m),
            .columns = static_cast<int>(c.columns),
            .vector = static_cast<int>(c.vector)};
}

Plan plan(const AttentionProblem& p, const PlainConfig& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    return tile_plan(kernels[0], p,
                     {.tile_m = g.tile_m,
                      .threads = g.threads(),
                      .shared_bytes = g.shared_bytes(),
                      .programmatic = c.programmatic != 0},
                     traits);
}

}  // namespace hone::attention_prefill::cuda_cores

#include "kernel_templates/linear/wgmma_config.h"

#include <algorithm>

#include "kernel_templates/linear/gemm_schedule.cuh"

namespace hone::linear::gemm {

Geometry geometry(const LinearProblem& p, const Config& config) {
    return {.tile_m = static_cast<int>(config[tile_m]),
            .tile_n = static_cast<int>(config[tile_n]),
            .consumers = static_cast<int>(config[consumers]),
            .blocks_per_sm = static_cast<int>(config[blocks_per_sm]),
            .cluster_k = static_cast<int>(config[cluster_k]),
            .gated = p.gated,
            .swapped = config[swapped] != 0,
            .ping_pong = config[ping_pong] != 0,
            .staged = config[staged] != 0};
}

std::int64_t steps(const LinearProblem& p) { return ceil_div(p.in, Operands{}.columns); }

std::int64_t tiles_across(const LinearProblem& p, const Geometry& g) {
    return ceil_div(g.swapped ? p.out : p.tokens, g.result_rows());
}
std::int64_t tiles_along(const LinearProblem& p, const Geometry& g) {
    return ceil_div(g.swapped ? p.tokens : p.out, g.result_columns());
}
std::int64_t tiles(const LinearProblem& p, const Geometry& g) {
    return tiles_across(p, g) * tiles_along(p, g);
}

std::int64_t places(const Config& config, const DeviceTraits& traits) {
    // One place a multiprocessor may be the successor's.
    const std::int64_t used = config[blocks_per_sm] - (config[programmatic] == 2 ? 1 : 0);
    return traits.sm_count * std::max<std::int64_t>(used, 1);
}

std::int64_t resident_blocks(const Config& config, const DeviceTraits& traits) {
    const std::int64_t blocks = places(config, traits);
    switch (config[cluster_k]) {
        case 1: return blocks;
        case 2: return blocks * 32 / 33;
        case 4: return blocks * 29 / 32;
        default: return blocks * 27 / 32;
    }
}

std::int64_t parts_of_tail(const LinearProblem& p, const Config& config, const DeviceTraits& traits) {
    if (config[tail_split] == 0) return 1;
    return tail_parts(static_cast<int>(tiles(p, geometry(p, config))),
                      static_cast<int>(places(config, traits)), static_cast<int>(steps(p)));
}

}  // namespace hone::linear::gemm

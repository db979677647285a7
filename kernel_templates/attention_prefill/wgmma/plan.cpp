#include "kernel_templates/attention_prefill/wgmma_config.h"

#include <algorithm>

namespace hone::attention_prefill::warpgroup {

Geometry geometry(const AttentionProblem& p, const Config& config) {
    return {.head_dim = static_cast<int>(p.head_dim),
            .consumers = static_cast<int>(config[consumers]),
            .tile_n = static_cast<int>(config[tile_n]),
            .stages = static_cast<int>(config[stages]),
            .query_stages = static_cast<int>(config[query_stages]),
            .blocks_per_sm = static_cast<int>(config[blocks_per_sm])};
}

Sections sections(const AttentionProblem& p, const Config& config) {
    const std::int64_t head_bytes = 2 * p.kv_len * p.head_dim * p.element_bytes();
    const std::int64_t fitting = std::max<std::int64_t>(1, (config[section_mib] << 20) / head_bytes);
    const std::int64_t heads = std::min(p.slots(), fitting * (p.heads / p.kv_heads));
    // The last section takes what remains, two to three times as much: its short tiles even out the end.
    return {.rows = static_cast<int>(rows(p, geometry(p, config))),
            .heads = static_cast<int>(heads),
            .count = static_cast<int>(std::max<std::int64_t>(1, p.slots() / heads - 1))};
}

std::int64_t rows(const AttentionProblem& p, const Geometry& g) { return ceil_div(p.q_len, g.tile_m()); }

std::int64_t tiles(const AttentionProblem& p, const Geometry& g) { return p.slots() * rows(p, g); }

std::int64_t places(const Config& config, const DeviceTraits& traits) {
    return traits.sm_count * config[blocks_per_sm];
}

}  // namespace hone::attention_prefill::warpgroup

#include "kernel_templates/attention_prefill/rank.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/kit/clock.h"

namespace hone::attention_prefill {

double visible_pairs(const AttentionProblem& p) {
    const auto queries = static_cast<double>(p.q_len);
    const auto keys = static_cast<double>(p.kv_len);
    if (!p.causal) return queries * keys;
    // Query i sees min(i + 1 + kv_len - q_len, window) keys: a sum of min(x, most) over x up to kv_len.
    const double most = p.window > 0 ? static_cast<double>(p.window) : keys;
    const auto sum_to = [most](double last) {
        const double ramp = std::clamp(last, 0.0, most);
        return ramp * (ramp + 1) / 2 + std::max(0.0, last - most) * most;
    };
    return sum_to(keys) - sum_to(keys - queries);
}

namespace {

/// Keys that a warp multiplies with one of its queries, on average: those that it sees, rounded up to blocks.
double mean_keys(const AttentionProblem& p, const TileWork& work) {
    const auto block = static_cast<double>(work.tile_n);
    const double seen = visible_pairs(p) / static_cast<double>(p.q_len);
    if (!p.causal) return std::ceil(seen / block) * block;
    const double edges = p.window > 0 ? 2.0 : 1.0;
    const double most = static_cast<double>(ceil_div(p.kv_len, work.tile_n) * work.tile_n);
    return std::min(most, seen + edges * (block + static_cast<double>(work.warp_rows)) / 2);
}

}  // namespace

double predict_us(const AttentionProblem& p, const TileWork& work, const DeviceTraits& traits) {
    const auto tiles = static_cast<double>(ceil_div(p.q_len, work.tile_m) * p.slots());
    const auto sms = static_cast<double>(traits.sm_count);
    const double tile_cycles =
        mean_keys(p, work) / static_cast<double>(work.tile_n) * work.block_cycles + work.overhead_cycles;

    // Tiles of one length take whole rounds; of causal ones the shorter fill up the last round.
    const auto together = static_cast<double>(work.blocks_per_sm);
    const double full_rounds = std::floor(tiles / (sms * together));
    const double rest = std::ceil((tiles - full_rounds * sms * together) / sms);
    const double equal = full_rounds * together + rest;
    const double dealt = std::max(tiles / sms + 0.5, 2.0 * std::min(1.0, tiles / sms));
    const double cycles = (p.has_ramp() ? std::min(equal * 2, dealt) : equal) * tile_cycles;
    const double compute_us = cycles / busy_cycles_per_us(traits);

    const auto q_bytes = static_cast<double>(2 * p.slots() * p.q_len);
    const auto kv_bytes = static_cast<double>(2 * p.batch * p.kv_heads * p.kv_len);
    const double bytes = (q_bytes + kv_bytes) * static_cast<double>(p.head_dim * p.element_bytes());
    const double memory_us = bytes / (0.85e-6 * traits.memory_bytes_per_s);
    return 3.0 + std::max(compute_us, memory_us);
}

}  // namespace hone::attention_prefill

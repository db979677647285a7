#include "kernel_templates/attention_prefill/tile.h"

#include <algorithm>
#include <cmath>

namespace hone::attention_prefill {
namespace {

/// As many heads as have their keys and values in half of level 2, whole groups; as a grid takes them.
std::int64_t section_heads(const AttentionProblem& p, const DeviceTraits& traits) {
    constexpr std::int64_t max_section = 4096;
    constexpr std::int64_t max_sections = 65535;
    const std::int64_t group = p.heads / p.kv_heads;
    const std::int64_t bytes = 2 * p.kv_len * p.head_dim * p.element_bytes();
    const std::int64_t resident = std::max<std::int64_t>(1, traits.l2_bytes / 2 / bytes) * group;
    return std::clamp(resident, ceil_div(p.slots(), max_sections), std::min(p.slots(), max_section));
}

/// Keys that a warp multiplies with one of its queries, on average: those that it sees, rounded up to blocks.
double mean_keys(const AttentionProblem& p, const TileWork& work) {
    const auto block = static_cast<double>(work.tile_n);
    const double seen = p.visible_pairs() / static_cast<double>(p.q_len);
    if (!p.causal) return std::ceil(seen / block) * block;
    const double edges = p.window > 0 ? 2.0 : 1.0;
    const double most = static_cast<double>(ceil_div(p.kv_len, work.tile_n) * work.tile_n);
    return std::min(most, seen + edges * (block + static_cast<double>(work.warp_rows)) / 2);
}

}  // namespace

Plan tile_plan(const char* kernel, const AttentionProblem& p, std::int64_t tile_m, std::int64_t threads,
               const DeviceTraits& traits) {
    const std::int64_t section = section_heads(p, traits);
    const Dim3 grid{static_cast<std::uint32_t>(ceil_div(p.q_len, tile_m) * section),
                    static_cast<std::uint32_t>(ceil_div(p.slots(), section)), 1};
    Plan plan{.launch_count = 1};
    plan.launches[0] = launch(kernel, grid, threads);
    plan.values[plan.value_count] = {.number = section};
    Launch& first = plan.launches[0];
    first.args[first.arg_count++] = plan_value_arg(plan.value_count++);
    return plan;
}

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
    const double cycles = (p.causal && p.window == 0 ? std::min(equal * 2, dealt) : equal) * tile_cycles;
    const double compute_us = cycles / (0.886e-3 * traits.sm_clock_khz);

    const auto q_bytes = static_cast<double>(2 * p.slots() * p.q_len);
    const auto kv_bytes = static_cast<double>(2 * p.batch * p.kv_heads * p.kv_len);
    const double bytes = (q_bytes + kv_bytes) * static_cast<double>(p.head_dim * p.element_bytes());
    const double memory_us = bytes / (0.85e-6 * traits.memory_bytes_per_s);
    return 3.0 + std::max(compute_us, memory_us);
}

}  // namespace hone::attention_prefill

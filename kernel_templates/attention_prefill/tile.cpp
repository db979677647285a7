#include "kernel_templates/attention_prefill/tile.h"

#include <algorithm>

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

}  // namespace

Plan tile_plan(const Kernel& kernel, const AttentionProblem& p, const TileLaunch& tile,
               const DeviceTraits& traits) {
    const std::int64_t section = section_heads(p, traits);
    const Dim3 grid{static_cast<std::uint32_t>(ceil_div(p.q_len, tile.tile_m) * section),
                    static_cast<std::uint32_t>(ceil_div(p.slots(), section)), 1};
    Launch first = launch(kernel, grid, tile.threads);
    first.shared_bytes = static_cast<std::uint32_t>(tile.shared_bytes);
    first.programmatic = tile.programmatic;
    Plan plan = plan_of(first);
    add_value(plan, {.number = section});
    return plan;
}

}  // namespace hone::attention_prefill

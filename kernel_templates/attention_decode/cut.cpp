#include "kernel_templates/attention_decode/cut.h"

#include <algorithm>

namespace hone::attention_decode {
namespace {

/// Units of a sequence; a window may touch one more than its tokens fill.
std::int64_t units(const DecodeProblem& p, std::int64_t unit) {
    return ceil_div(p.tokens_seen(), unit) + (p.tokens_seen() < p.kv_len ? 1 : 0);
}

}  // namespace

std::int64_t blocks(const DecodeProblem& p, const Cut& cut, const DeviceTraits& traits) {
    const Geometry& g = cut.geometry;
    if (g.cluster > 1) return p.batch * g.lists() * g.cluster;
    const std::int64_t line_units = p.batch * units(p, cut.unit) * g.line_lists();
    const std::int64_t slots =
        std::min(traits.sm_count * cut.blocks_per_sm / g.lines(), ceil_div(line_units, g.warps));
    return std::max<std::int64_t>(slots, 1) * g.lines();
}

Plan cut_plan(std::span<const Kernel> kernels, const DecodeProblem& p, const Cut& cut,
              const DeviceTraits& traits) {
    const Geometry& g = cut.geometry;
    const std::int64_t count = blocks(p, cut, traits);
    Launch main = launch(kernels[0], grid_of(count), 32 * g.warps);
    main.cluster.x = static_cast<std::uint32_t>(g.cluster);
    main.shared_bytes = static_cast<std::uint32_t>(g.join_bytes());
    main.programmatic = traits.has_programmatic_launch();
    Plan plan = plan_of(main);
    if (g.cluster > 1) return plan;
    plan.workspace_bytes = count * g.piece_bytes();
    if (cut.last_block) return plan;
    plan.launch_count = 2;
    plan.launches[1] =
        launch(kernels[1], {grid_of(count).x, static_cast<std::uint32_t>(g.block_rows()), 1}, 128);
    plan.launches[1].programmatic = main.programmatic;
    return plan;
}

}  // namespace hone::attention_decode

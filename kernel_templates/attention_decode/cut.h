// How every variant cuts the cache into slots, and how their pieces meet, on the host: schedule.cuh and
// join.cuh have the device's side.
#pragma once

#include "kernel_templates/attention_decode/attention_decode.h"
#include "kernel_templates/attention_decode/geometry.cuh"
#include "kernel_templates/device_traits.h"

namespace hone::attention_decode {

struct Cut {
    Geometry geometry;
    std::int64_t unit = 16;  ///< tokens
    std::int64_t blocks_per_sm = 1;
    bool last_block = false;
};

/// The geometry of a config with tunables `rows`, `warps` and `side_by_side`.
template <class C>
[[nodiscard]] constexpr Geometry geometry_of(const DecodeProblem& p, const C& c) {
    return {.group = static_cast<int>(p.group()),
            .kv_heads = static_cast<int>(p.kv_heads),
            .head_dim = static_cast<int>(p.head_dim),
            .q_tokens = static_cast<int>(p.q_tokens),
            .cache_bytes = static_cast<int>(p.cache_element_bytes()),
            .rows_a_block = static_cast<int>(c.rows),
            .warps = static_cast<int>(c.warps),
            .side_by_side = c.side_by_side != 0};
}
/// The cut of a config that also has `unit`, `join` and `blocks_per_sm`.
template <class C>
[[nodiscard]] constexpr Cut cut_of(const Geometry& geometry, const C& c) {
    return {
        .geometry = geometry, .unit = c.unit, .blocks_per_sm = c.blocks_per_sm, .last_block = c.join != 0};
}

/// Blocks of the main launch: as many as are resident, and no more than leave each warp a unit.
[[nodiscard]] std::int64_t blocks(const DecodeProblem&, const Cut&, const DeviceTraits&);
/// The main launch of kernels[0], and that of kernels[1], which combines, where pieces meet in one of its
/// own; with grids and the workspace.
[[nodiscard]] Plan cut_plan(std::span<const Kernel> kernels, const DecodeProblem&, const Cut&,
                            const DeviceTraits&);

}  // namespace hone::attention_decode

// How linear/ring/kernel.cu is launched.
#pragma once

#include <algorithm>

#include "kernel_templates/linear/normalize.h"
#include "kernel_templates/linear/ring/geometry.cuh"

namespace hone::linear {

struct RingConfig {
    std::int64_t tokens = 8;
    std::int64_t rows = 64;
    std::int64_t consumers = 2;
    std::int64_t stage_columns = 128;
    std::int64_t stages = 8;
    std::int64_t cluster_k = 1;
    std::int64_t early = 1;
    std::int64_t spread = 0;
    std::int64_t programmatic = 0;
};

/// Without regard to a norm.
[[nodiscard]] inline RingGeometry plain_geometry(const LinearProblem& p, const RingConfig& c) {
    return {.products = static_cast<int>(p.products()),
            .in = static_cast<int>(p.in),
            .out = static_cast<int>(p.out),
            .tokens = static_cast<int>(c.tokens),
            .rows = static_cast<int>(c.rows),
            .consumers = static_cast<int>(c.consumers),
            .stage_columns = static_cast<int>(c.stage_columns),
            .stages = static_cast<int>(c.stages),
            .cluster_k = static_cast<int>(c.cluster_k),
            .norm = false};
}
/// x times the norm's weight may leave fp16's range, not bf16's.
[[nodiscard]] inline bool folds_norm(const LinearProblem& p, const RingConfig& c) {
    return p.norm && p.dtype == Dtype::bf16 && plain_geometry(p, c).can_fold();
}
[[nodiscard]] inline RingGeometry geometry(const LinearProblem& p, const RingConfig& c) {
    RingGeometry g = plain_geometry(p, c);
    g.norm = folds_norm(p, c);
    return g;
}

/// Clusters, or blocks without one, that find a place at the same time, a block a multiprocessor: 64 of two
/// where there are 132 multiprocessors.
[[nodiscard]] inline std::int64_t places(const RingConfig& c, const DeviceTraits& traits) {
    return c.cluster_k == 1 ? traits.sm_count : traits.sm_count * 16 / 33;
}
/// Tiles that each of them takes.
[[nodiscard]] inline std::int64_t rounds(const LinearProblem& p, const RingConfig& c,
                                         const DeviceTraits& traits) {
    return ceil_div(ceil_div(p.out, c.rows), places(c, traits));
}
/// Blocks of the grid: no more than it takes for as few rounds; spread, in all places, some of which then end
/// a round before the others.
[[nodiscard]] inline std::int64_t blocks(const LinearProblem& p, const RingConfig& c,
                                         const DeviceTraits& traits) {
    const std::int64_t tiles = ceil_div(p.out, c.rows);
    return c.cluster_k *
           (c.spread != 0 ? std::min(tiles, places(c, traits)) : ceil_div(tiles, rounds(p, c, traits)));
}

/// The product's launch and tensor maps, of a kernel whose parameters are ring_args or begin as they do.
[[nodiscard]] Plan ring_product(const Kernel& kernel, const LinearProblem&, const RingConfig&,
                                const RingGeometry&, const DeviceTraits&);

inline constexpr auto ring_args = join(
    call_args, {tensor_map_arg(0, "weight_map"), tensor_map_arg(1, "up_map"), tensor_map_arg(2, "x_map")});
inline constexpr Kernel ring_kernels[] = {{"linear_ring", ring_args}, normalize};

[[nodiscard]] Plan ring_plan(const LinearProblem&, const RingConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t ring_access_elements(const LinearProblem&, const RingConfig&) {
    return 8;
}

}  // namespace hone::linear

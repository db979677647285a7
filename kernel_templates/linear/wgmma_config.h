// A config of variant wgmma on the host, and what follows from it: for its plan and constraints (wgmma.cpp)
// and its cost model (wgmma_cost.cpp).
#pragma once

#include "kernel_templates/linear/gemm_geometry.cuh"
#include "kernel_templates/linear/linear.h"

namespace hone::linear::gemm {

/// Of the tunables, in their order.
enum Index : std::size_t {
    tile_m,
    tile_n,
    consumers,
    ping_pong,
    blocks_per_sm,
    swapped,
    tail_split,
    cluster_k,
    staged,
    raster,
    l2_hint,
    programmatic
};

[[nodiscard]] Geometry geometry(const LinearProblem&, const Config&);
/// Of a whole sum.
[[nodiscard]] std::int64_t steps(const LinearProblem&);

/// Tiles of results in the direction of the left operand's rows, of the right one's, and in all.
[[nodiscard]] std::int64_t tiles_across(const LinearProblem&, const Geometry&);
[[nodiscard]] std::int64_t tiles_along(const LinearProblem&, const Geometry&);
[[nodiscard]] std::int64_t tiles(const LinearProblem&, const Geometry&);

/// Blocks that find a place at the same time where there are no clusters.
[[nodiscard]] std::int64_t places(const Config&, const DeviceTraits&);
/// The same with clusters, which do not fill every group of multiprocessors, and nothing here can ask how
/// many fit: a careful estimate.
[[nodiscard]] std::int64_t resident_blocks(const Config&, const DeviceTraits&);
/// Parts of a tile of the last round; one where none is cut.
[[nodiscard]] std::int64_t parts_of_tail(const LinearProblem&, const Config&, const DeviceTraits&);

/// Microseconds of a call.
[[nodiscard]] double predict(const Problem&, const Config&, const DeviceTraits&);

}  // namespace hone::linear::gemm

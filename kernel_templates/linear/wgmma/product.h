// A config of variants that multiply by product.cuh on the host, and what follows from it: for their plans,
// their rules (rules.h) and the cost model (rank.cpp). The problem is the product: where codes of
// 8 bits are multiplied (quantized_linear), `dtype` is theirs.
#pragma once

#include "kernel_templates/linear/wgmma/geometry.cuh"
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

/// A swizzled row of 128 bytes.
[[nodiscard]] Operands operands(const LinearProblem&);
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

/// Of a matrix, in boxes whose rows are swizzled: indices of its pointer and stride.
[[nodiscard]] TensorMap matrix_map(Dtype, int pointer, int stride, std::int64_t columns, std::int64_t rows,
                                   int box_columns, int box_rows);

/// Indices of the pointers and strides of a call that tensor maps describe, and the element type of results.
struct MapArguments {
    Dtype result = Dtype::bf16;
    int x = linear::x;
    int weight = linear::weight;
    int up = linear::up;
    int out = linear::out;
    int x_stride = linear::x_stride;
    int weight_stride = linear::weight_stride;
    int up_stride = linear::up_stride;
    int out_stride = linear::out_stride;
};
/// The product's launch, whose first arguments are the maps of x, weight, up and result; the workspace is
/// that of tail_split. The norm is not part of it.
[[nodiscard]] Plan plan_product(const char* kernel, const LinearProblem&, const Config&, const DeviceTraits&,
                                const MapArguments&);

/// Proven shapes of tiles, for a fallback to choose from.
[[nodiscard]] std::vector<Config> proven_configs(const LinearProblem&);

/// Microseconds of a call.
[[nodiscard]] double predict(const LinearProblem&, const Config&, const DeviceTraits&);

}  // namespace hone::linear::gemm

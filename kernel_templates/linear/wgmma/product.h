// How variants that multiply by product.cuh are launched: their config, and what follows from it. The problem
// is the product: where codes of 8 bits are multiplied (quantized_linear), `dtype` is theirs.
#pragma once

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/linear/linear.h"
#include "kernel_templates/linear/wgmma/geometry.cuh"

namespace hone::linear::gemm {

struct WgmmaConfig {
    std::int64_t tile_m = 128;
    std::int64_t tile_n = 128;
    std::int64_t consumers = 1;
    std::int64_t ping_pong = 0;
    std::int64_t blocks_per_sm = 1;
    std::int64_t swapped = 0;
    std::int64_t tail_split = 0;
    std::int64_t cluster_k = 1;
    std::int64_t staged = 0;
    std::int64_t raster = 8;
    std::int64_t l2_hint = 0;
    std::int64_t programmatic = 0;
};

/// A swizzled row of 128 bytes.
[[nodiscard]] Operands operands(const LinearProblem&);
[[nodiscard]] Geometry geometry(const LinearProblem&, const WgmmaConfig&);
/// Steps of a whole sum.
[[nodiscard]] std::int64_t steps(const LinearProblem&);

/// Tiles of results in the direction of the left operand's rows, of the right one's, and in all.
[[nodiscard]] std::int64_t tiles_across(const LinearProblem&, const Geometry&);
[[nodiscard]] std::int64_t tiles_along(const LinearProblem&, const Geometry&);
[[nodiscard]] std::int64_t tiles(const LinearProblem&, const Geometry&);

/// Blocks that find a place at the same time where there are no clusters.
[[nodiscard]] std::int64_t places(const WgmmaConfig&, const DeviceTraits&);
/// Blocks where those of a cluster share tiles of the last round (tail_split = 2).
[[nodiscard]] std::int64_t paired_blocks(const LinearProblem&, const WgmmaConfig&, const DeviceTraits&);
/// Parts of a tile of the last round; one where none is cut.
[[nodiscard]] std::int64_t parts_of_tail(const LinearProblem&, const WgmmaConfig&, const DeviceTraits&);

/// The map of a matrix in boxes whose rows are swizzled, given the indices of its pointer and stride.
[[nodiscard]] TensorMap matrix_map(Dtype, int pointer, int stride, std::int64_t columns, std::int64_t rows,
                                   int box_columns, int box_rows);

/// `x`, the map of index `index`, with boxes of as many rows as its last one has; or that map, where the last
/// one is whole.
[[nodiscard]] TensorMap rest_map(const TensorMap& x, int index);

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
/// The product's launch, with five tensor maps in this order: x, weight, up, result and the rest of x; the
/// workspace is that of tail_split. Blocks of neighbouring numbers stand on `neighbours` neighbouring
/// multiprocessors. The norm is not part of it.
[[nodiscard]] Plan plan_product(const Kernel&, const LinearProblem&, const WgmmaConfig&, const DeviceTraits&,
                                const MapArguments&, std::int64_t neighbours = 1);

}  // namespace hone::linear::gemm

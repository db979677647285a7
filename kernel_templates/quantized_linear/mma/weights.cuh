// Weights of the variant mma (kernel.cu): what a lane holds of 16 rows x 64 columns, packed
// (packed_panel.cuh) or in rows, and the scale of a row.
#pragma once

#include "device/mma_8bit.cuh"
#include "quantized_linear/mma/geometry.cuh"
#include "quantized_linear/packed_panel.cuh"

namespace hone::quantized_linear::mma_blocks {

static_assert(panel == block_columns, "a panel is a block's columns");

/// w8a8, fp8: 16 neighbouring codes of each of the two rows, from column 16 t of the panel. Which column is
/// which does not matter to a sum as long as x has the same order.
struct RowPanel {
    /// Rows beyond the weight repeat its last; where columns are beyond it, x is zero.
    __device__ static void load(const Weight& from, int row, int index, RowPanel& to) {
        const int lane = threadIdx.x % 32;
        const int wanted = index * panel + lane % 4 * 16;
        const int column = wanted < in ? wanted : 0;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int64 place = min(row + lane / 4 + 8 * i, out - 1);
            to.rows[i] = load_word<LoadHint::no_allocate, 16>(from.codes + place * from.stride + column);
        }
        if constexpr (has_blocks) {
            const int64 block = min(row, out - 1) / scaled_block;
            to.scale = to_float(from.scales[block * groups + index * panel / scaled_block]);
        }
    }

    uint4 rows[2];
    float scale;  ///< the block's scale, with fp8
};

using Panel = Conditional<is_packed, PackedPanel<Element>, RowPanel>::type;

/// What a row's sums are multiplied with: its scale, where all its columns share one.
__device__ inline float row_factor(const Weight& weight, int row) {
    if constexpr (is_packed) return sum_factor(weight, row);
    if constexpr (has_blocks) return 1.0f;
    return to_float(weight.scales[row * weight.scale_stride]);
}

}  // namespace hone::quantized_linear::mma_blocks

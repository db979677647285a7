// Variant stream: what a config makes of threads and shared memory. Plain C++ that plans and kernels include
// alike.
//
// A block makes row_warps * rows results of every token. The columns come in panels of 64, of which k_warps
// warps take `unroll` in turn.
#pragma once

#include "quantized_linear/layout.cuh"

namespace hone::quantized_linear {

struct StreamGeometry {
    int products;
    int in;
    int tokens;
    int rows;       ///< rows of the weight that a warp takes
    int k_warps;    ///< that share rows
    int row_warps;  ///< groups of them
    int unroll;     ///< panels that a warp has under way
    bool norm;      ///< x is normalized on its way: squares are added up

    constexpr int threads() const { return 32 * warps(); }
    constexpr int block_rows() const { return rows * row_warps; }
    constexpr int panels() const { return static_cast<int>(whole_blocks(in)); }
    /// Panels that all warps of a group take at a time.
    constexpr int turn() const { return k_warps * unroll; }
    constexpr int turns() const { return (panels() + turn() - 1) / turn(); }

    // x; 16 bytes more than whole lines, so that 16 bytes of each of 8 tokens fall into distinct banks.
    // Behind it 16 bytes of zeros, which stand for tokens and panels that do not exist.
    constexpr int x_pitch() const { return panels() * block_columns * 2 + 16; }
    constexpr int zeros_at() const { return tokens * x_pitch(); }

    // Sums of the warps [k_warps][products][tokens][partial_pitch] floats; a pitch that puts fragments of 8
    // rows x 4 pairs of tokens into distinct banks.
    constexpr int partial_pitch() const { return block_rows() + 4; }
    constexpr int partials_at() const { return zeros_at() + 16; }
    constexpr int partial_floats() const { return k_warps * products * tokens * partial_pitch(); }
    // Sums of squares of x [tokens][warps] floats.
    constexpr int warps() const { return k_warps * row_warps; }
    constexpr int squares_at() const { return partials_at() + 4 * partial_floats(); }
    constexpr int shared_bytes() const { return squares_at() + (norm ? 4 * tokens * warps() : 0); }
};

}  // namespace hone::quantized_linear

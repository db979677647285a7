// Variant mma: what a config makes of threads and shared memory. Plain C++ that plans and kernels include
// alike.
#pragma once

namespace hone::quantized_linear::mma_blocks {

/// Columns that a warp multiplies with one load of packed codes, or one of each row of others.
inline constexpr int panel = 64;
/// Tokens whose sums the warps join at a time.
inline constexpr int joined_tokens = 8;

struct Geometry {
    int tokens;     ///< tokens of a block
    int rows;       ///< rows of the weight that a warp takes
    int k_warps;    ///< that share rows
    int row_warps;  ///< groups of them
    int unroll;     ///< panels of a batch, a warp's
    int products;
    int x_bytes;         ///< bytes of an element
    bool blocks_scaled;  ///< x has a scale for each 128 columns

    constexpr int threads() const { return 32 * k_warps * row_warps; }
    constexpr int block_rows() const { return rows * row_warps; }
    constexpr int panels() const { return unroll * k_warps; }
    /// Bytes of a batch of x, and behind it of those scales.
    constexpr int x_buffer_bytes() const { return panels() * panel * tokens * x_bytes; }
    constexpr int scale_blocks() const { return blocks_scaled ? panels() / 2 : 0; }
    constexpr int buffer_bytes() const { return x_buffer_bytes() + scale_blocks() * tokens * 4; }
    /// Floats from one token's sums to the next's: fragments of 8 rows x 4 pairs of tokens then fall into
    /// distinct banks.
    constexpr int partial_pitch() const { return block_rows() + 4; }
    constexpr int partial_floats() const { return k_warps * products * joined_tokens * partial_pitch(); }
    /// Two batches of x; then, in the same place, two times the partial sums of `joined_tokens`.
    constexpr int shared_bytes() const {
        const int x = 2 * buffer_bytes();
        const int partials = 2 * 4 * partial_floats();
        return x > partials ? x : partials;
    }
};

}  // namespace hone::quantized_linear::mma_blocks

// The weight of a linear layer as plain codes with a scale and a zero point for each group of columns: what
// GPTQ and AWQ checkpoints hold, without their packing. What packs it again for kernels starts from here.
#pragma once

#include <cstdint>
#include <vector>

namespace hone::checkpoints {

/// Element (row, column) of the matrix [out, in] is
///     (codes[row, column] - zeros[row, g]) * scales[row, g], g = column / group.
struct GroupedWeight {
    int bits = 4;
    std::int64_t out = 0;
    std::int64_t in = 0;
    std::int64_t group = 0;           ///< columns; 0: a whole row, groups() is 1
    std::vector<std::uint8_t> codes;  ///< [out, in], each below 2^bits
    std::vector<float> scales;        ///< [out, groups], finite and not 0; may be negative
    std::vector<std::uint8_t> zeros;  ///< [out, groups], each below 2^bits
    /// Empty: columns stand as the layer has them. Else a permutation of [0, in): column c stands for the
    /// layer's column column_order[c], so x must be gathered, x'[c] = x[column_order[c]], before it is
    /// multiplied.
    std::vector<std::int32_t> column_order;

    [[nodiscard]] std::int64_t groups() const { return group == 0 ? 1 : in / group; }
    /// All zero points are the middle, 2^(bits - 1): they need not be stored.
    [[nodiscard]] bool is_symmetric() const;
};

}  // namespace hone::checkpoints

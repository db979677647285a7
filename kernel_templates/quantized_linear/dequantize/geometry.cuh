// Which blocks of which weight a thread block of variant dequantize's first launch turns into numbers
// (numbers.cuh). Plain C++ that both the host's plan and the kernel include, so that they cannot disagree.
#pragma once

#include "quantized_linear/layout.cuh"

namespace hone::quantized_linear::unpacked {

/// A warp takes 16 of a block's 64 rows.
inline constexpr int threads = 128;

/// Neighbouring blocks of 64 rows x 64 columns.
struct Task {
    int product;       ///< 0 weight, 1 up
    int row_block;     ///< row of blocks
    int column_block;  ///< the first
};

struct Tasks {
    int in = 0;
    int out = 0;
    int bits = 4;
    int products = 1;

    /// Blocks of a task: 32 bytes of codes a thread. The last task of a row may have fewer.
    constexpr int together() const { return 8 / bits; }
    constexpr int across() const {
        return (static_cast<int>(whole_blocks(in)) + together() - 1) / together();
    }
    constexpr int count() const { return static_cast<int>(whole_blocks(out)) * products * across(); }

    /// The task of thread block `index`. Thread blocks start in order, and the product begins with the first
    /// rows: those come last, and are still in level 2 where it does not hold all. Gate and up go side by
    /// side.
    constexpr Task task(int index) const {
        const int number = count() - 1 - index;
        const int row = number / across();
        return {row % products, row / products, number % across() * together()};
    }
};

}  // namespace hone::quantized_linear::unpacked

// Which tiles a block of variant two_widths (kernel.cu) works on, in which order: first wide ones, in rounds
// that every block has a tile of, then some rounds of narrow ones. Plain C++ that the kernel, the cost model
// and tests include alike.
//
// The last round of a product whose tiles are all alike leaves blocks idle. Some rows of tiles are worked on
// in wide tiles here and the others in narrow ones, of which there are more: 512 tokens of 13,824 rows are
// 1.64 rounds of tiles of 128 x 256 for 132 blocks, which take two, and one such round and one of 128 x 176.
#pragma once

#include "linear/wgmma/schedule.cuh"

namespace hone::quantized_linear::widths {

namespace gemm = linear::gemm;

/// How rows of tiles are shared out.
struct Shares {
    int rows;          ///< of tiles, of either width
    int columns;       ///< wide tiles of a row
    int last_columns;  ///< narrow tiles of a row
    int last_rounds;   ///< of narrow tiles, at most
    int blocks;        ///< that take a tile each in a round

    /// Rows of wide tiles: what narrow ones leave, and as many more as their whole rounds hold.
    constexpr int wide_rows() const {
        const int narrow = last_rounds * blocks / last_columns;
        const int needed = rows > narrow ? rows - narrow : 0;
        const int rounds = (needed * columns + blocks - 1) / blocks;
        const int wide = rounds * blocks / columns;
        return wide < rows ? wide : rows;
    }
    /// Rounds of wide tiles, and of narrow ones.
    constexpr int wide_rounds() const { return (wide_rows() * columns + blocks - 1) / blocks; }
    constexpr int narrow_rounds() const {
        return ((rows - wide_rows()) * last_columns + blocks - 1) / blocks;
    }
};

/// Tiles of narrow rows, where `wide` is the tiling of the others.
constexpr gemm::Tiling narrowed(gemm::Tiling wide, int last_n) {
    wide.result_columns = last_n;
    return wide;
}
constexpr Shares shares_of(const gemm::Tiling& wide, int last_n, int last_rounds, int tokens, int blocks) {
    return {.rows = wide.across(tokens),
            .columns = wide.along(tokens),
            .last_columns = narrowed(wide, last_n).along(tokens),
            .last_rounds = last_rounds,
            .blocks = blocks};
}

class Rounds {
  public:
    /// The work of block `block` of `blocks`. `wide` is the tiling of wide tiles, narrow ones have `last_n`
    /// tokens.
    constexpr Rounds(const gemm::Tiling& wide, int last_n, int last_rounds, int tokens, int blocks, int block)
        : first_row_(shares_of(wide, last_n, last_rounds, tokens, blocks).wide_rows() * wide.result_rows),
          wide_(part(wide, 0, first_row_), tokens, blocks, block, 0),
          // The blocks of the highest numbers may have a wide tile less.
          narrow_(part(narrowed(wide, last_n), first_row_, wide.out), tokens, blocks, blocks - 1 - block, 0) {
    }

    /// Tiles of this block, how many of them are wide, and the i-th.
    constexpr int count() const { return wide_.count() + narrow_.count(); }
    constexpr int wide_count() const { return wide_.count(); }
    constexpr gemm::Work work(int i) const {
        if (i < wide_.count()) return wide_.work(i);
        gemm::Work work = narrow_.work(i - wide_.count());
        work.row += first_row_;
        return work;
    }

  private:
    /// Rows from `begin` to `end`, no further than there are any.
    static constexpr gemm::Tiling part(gemm::Tiling tiling, int begin, int end) {
        const int last = end < tiling.out ? end : tiling.out;
        tiling.out = last > begin ? last - begin : 0;
        return tiling;
    }

    int first_row_;  ///< of narrow tiles
    gemm::Schedule wide_;
    gemm::Schedule narrow_;
};

}  // namespace hone::quantized_linear::widths

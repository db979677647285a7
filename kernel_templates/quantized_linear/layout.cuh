// Where codes and scales of packed weights stand. Plain C++ that packing on the host and kernels include
// alike; docs/formats.md draws the same in words.
//
// w4a16, w8a16: the matrix [out, in] is cut into blocks of 64 rows x 64 columns, row of blocks after row of
// blocks, and padded to whole ones. A block holds its codes as the tensor cores take a left operand (mma
// m16n8k16 and wgmma alike): warp w, lane 4 g + t of a warpgroup has, of rows 16 w + g and 16 w + g + 8, the
// columns 2t, 2t + 1, 2t + 8, 2t + 9 of every 16.
//   w4a16  2 KiB: thread 32 w + lane has 16 bytes, word s for columns 16 s to 16 s + 15. Nibble i of a word,
//          from the low end: row g (i even) or g + 8 (odd), column 2t (i % 4 < 2) or 2t + 8, and one further
//          for i >= 4. A nibble holds the code 0 to 15; without zero points its value is code - 8.
//   w8a16  4 KiB, halves of 32 columns: thread has 16 bytes of each, two words for each 16 columns, the first
//          of columns 2t, 2t + 1, the second of those 8 further. Bytes of a word: (g, 2t), (g + 8, 2t),
//          (g, 2t + 1), (g + 8, 2t + 1), each two's complement.
// Scales of groups stand [blocks of 64 rows][groups][64], zero points likewise: within each 16 of the 64 the
// scale of row r at 2 (r % 8) + r / 8, so that a thread finds those of its two rows side by side.
//
// w8a8, fp8: the matrix [out, in] row by row as it is, one byte an element.
#pragma once

namespace hone::quantized_linear {

inline constexpr int block_rows = 64;
inline constexpr int block_columns = 64;
inline constexpr int most_code_w4 = 15;

constexpr long long whole_blocks(long long extent) { return (extent + 63) / 64; }

/// Scales of a row: `group` columns share one, 0: all of them.
constexpr long long groups_of(long long in, long long group) {
    return group == 0 ? 1 : (whole_blocks(in) * 64 + group - 1) / group;
}

/// Bytes of packed codes of `bits` (4 or 8).
constexpr long long packed_bytes(long long out, long long in, int bits) {
    return whole_blocks(out) * whole_blocks(in) * (block_rows * block_columns * bits / 8);
}

/// Place of a code: a byte, and in it the lowest bit.
struct CodePlace {
    long long byte;
    int bit;
};

/// Thread of the warpgroup that has (row, column) of a block, and where among its numbers of 16 columns the
/// code stands: bit 0 is the row's half, bit 1 the columns' half, bit 2 the column's lowest bit.
struct FragmentPlace {
    int thread;
    int index;
};
constexpr FragmentPlace fragment_place(int row, int column) {
    const int lane = row % 8 * 4 + column % 8 / 2;
    return {row / 16 * 32 + lane, row / 8 % 2 + column / 8 % 2 * 2 + column % 2 * 4};
}

constexpr CodePlace place_w4(long long row, long long column, long long in) {
    const long long block = row / block_rows * whole_blocks(in) + column / block_columns;
    const FragmentPlace at = fragment_place(static_cast<int>(row % 64), static_cast<int>(column % 64));
    return {block * 2048 + at.thread * 16 + column % 64 / 16 * 4 + at.index / 2, at.index % 2 * 4};
}

constexpr CodePlace place_w8(long long row, long long column, long long in) {
    const long long block = row / block_rows * whole_blocks(in) + column / block_columns;
    const int within = static_cast<int>(column % 64);
    const FragmentPlace at = fragment_place(static_cast<int>(row % 64), within);
    const int byte = at.index % 2 + at.index / 4 * 2;  // of a word
    return {block * 4096 + within / 32 * 2048 + at.thread * 16 + within % 32 / 16 * 8 + at.index / 2 % 2 * 4 +
                byte,
            0};
}

/// Index of a scale or zero point; without groups, group 0 of 1.
constexpr long long scale_place(long long row, long long group, long long groups) {
    const long long within = row % 16;
    return (row / 64 * groups + group) * 64 + row % 64 / 16 * 16 + within % 8 * 2 + within / 8;
}

/// Columns and rows that share a scale where fp8 has blocks.
inline constexpr int scaled_block = 128;

}  // namespace hone::quantized_linear

// Rows of blocks of 64 x 64 codes, as kernel_templates/quantized_linear/layout.cuh lays them out.
#pragma once

#include <cstdint>

#include "kernel_templates/quantized_linear/layout.cuh"

namespace hone::runtime {

/// One row of blocks from up to 64 rows of `in` codes each, one a byte. `rows` of them exist; what does not
/// gets padding[row], of 64. `bits` is 4 or 8.
void pack_rows(const std::uint8_t* codes, std::int64_t rows, std::int64_t in, int bits,
               const std::uint8_t* padding, std::uint8_t* packed);
/// Its inverse, without the padding.
void unpack_rows(const std::uint8_t* packed, std::int64_t rows, std::int64_t in, int bits,
                 std::uint8_t* codes);

/// Up to 64 rows of a weight: what one piece of work is about.
struct RowRange {
    std::int64_t first;
    std::int64_t count;
};
constexpr RowRange rows_of_piece(std::int64_t piece, std::int64_t out) {
    const std::int64_t first = piece * quantized_linear::block_rows;
    const std::int64_t left = out - first;
    return {first, left < quantized_linear::block_rows ? left : quantized_linear::block_rows};
}

}  // namespace hone::runtime

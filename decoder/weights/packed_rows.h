// Rows of packed weights: where they begin in memory, and which of them can be taken apart and put together
// without their codes changing. docs/formats.md has the places.
#pragma once

#include <cstdint>

#include "hone/quantize.h"

namespace hone::decoder {

/// Bytes of codes, scales and zero points.
struct PackedBytes {
    std::int64_t codes = 0;
    std::int64_t scales = 0;
    std::int64_t zeros = 0;

    [[nodiscard]] std::int64_t all() const { return codes + scales + zeros; }
};

/// Rows stand in parts of so many: only at multiples of it, or at its end, a weight can be cut.
[[nodiscard]] std::int64_t rows_of_part(const PackedShape& shape);

/// What the first `rows` rows take: all of shape.out, or a multiple of rows_of_part(). shape has no
/// one_scale.
[[nodiscard]] PackedBytes bytes_of_rows(const PackedShape& shape, std::int64_t rows);

/// A scale for the whole weight becomes one for each row, which means the same.
void spread_scale(QuantizedWeight& weight);

}  // namespace hone::decoder

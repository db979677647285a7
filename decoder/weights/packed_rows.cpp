#include "decoder/weights/packed_rows.h"

#include <algorithm>

namespace hone::decoder {

std::int64_t rows_of_part(const PackedShape& shape) {
    switch (shape.format) {
        case QuantFormat::w4a16:
        case QuantFormat::w8a16: return 64;
        default: return shape.group == 0 ? 1 : shape.group;
    }
}

PackedBytes bytes_of_rows(const PackedShape& shape, std::int64_t rows) {
    if (rows == 0) return {};
    PackedShape first = shape;
    first.out = rows;
    return {packed_bytes(first.format, first.out, first.in), scale_bytes(first), zero_count(first)};
}

void spread_scale(QuantizedWeight& weight) {
    if (!weight.shape.one_scale) return;
    const std::vector<std::uint8_t> scale = std::move(weight.scales);
    weight.shape.one_scale = false;
    weight.scales.clear();
    for (std::int64_t row = 0; row < weight.shape.out; ++row)
        weight.scales.insert(weight.scales.end(), scale.begin(), scale.end());
}

}  // namespace hone::decoder

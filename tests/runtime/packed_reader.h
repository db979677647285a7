// A reader of stored weights written from the words of docs/formats.md alone: it knows neither layout.cuh nor
// runtime/quantize/. Slow; the oracle of the tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "hone/quantize.h"
#include "tests/support/minifloat.h"

namespace hone::test {

struct PlaceInBlock {
    std::int64_t block;
    std::int64_t c;
    std::int64_t t;
    std::int64_t h;
    std::int64_t k;
    std::int64_t l;
};

inline PlaceInBlock place_in_block(std::int64_t row, std::int64_t column, std::int64_t in) {
    const std::int64_t blocks = (in + 63) / 64;
    const std::int64_t r = row % 64;
    const std::int64_t c = column % 64;
    return {
        row / 64 * blocks + column / 64, c, r / 16 * 32 + r % 8 * 4 + c % 8 / 2, r / 8 % 2, c / 8 % 2, c % 2};
}

inline int read_w4(std::span<const std::uint8_t> codes, std::int64_t row, std::int64_t column,
                   std::int64_t in) {
    const PlaceInBlock at = place_in_block(row, column, in);
    const std::int64_t i = at.h + 2 * at.k + 4 * at.l;
    const std::int64_t byte = at.block * 2048 + at.t * 16 + at.c / 16 * 4 + i / 2;
    const int both = codes[static_cast<std::size_t>(byte)];
    return i % 2 == 0 ? both % 16 : both / 16;
}

inline int read_w8(std::span<const std::uint8_t> codes, std::int64_t row, std::int64_t column,
                   std::int64_t in) {
    const PlaceInBlock at = place_in_block(row, column, in);
    const std::int64_t byte =
        at.block * 4096 + at.c / 32 * 2048 + at.t * 16 + at.c % 32 / 16 * 8 + at.k * 4 + at.h + 2 * at.l;
    const int code = codes[static_cast<std::size_t>(byte)];
    return code < 128 ? code : code - 256;
}

/// Number of a scale or zero point of w4a16.
inline std::size_t scale_number(std::int64_t row, std::int64_t group, const PackedShape& shape) {
    const std::int64_t blocks = (shape.in + 63) / 64;
    const std::int64_t places = shape.group == 0 ? 1 : (64 * blocks + shape.group - 1) / shape.group;
    return static_cast<std::size_t>(row / 64 * places * 64 + group * 64 + row % 64 / 16 * 16 + row % 8 * 2 +
                                    row / 8 % 2);
}

template <class T>
T number_at(std::span<const std::uint8_t> bytes, std::size_t number) {
    T value;
    std::memcpy(&value, bytes.data() + number * sizeof(T), sizeof(T));
    return value;
}

inline double read_scale_w4(const PackedShape& shape, const PackedView& stored, std::int64_t row,
                            std::int64_t group) {
    const auto bits = number_at<std::uint16_t>(stored.scales, scale_number(row, group, shape));
    return decoded(bits, shape.scale_dtype == Dtype::fp16 ? fp16_format : bf16_format);
}

inline double read_value(const PackedShape& shape, const PackedView& stored, std::int64_t row,
                         std::int64_t column) {
    if (shape.format == QuantFormat::w4a16) {
        const std::int64_t group = shape.group == 0 ? 0 : column / shape.group;
        const int zero = shape.zeros ? stored.zeros[scale_number(row, group, shape)] : 8;
        return (read_w4(stored.codes, row, column, shape.in) - zero) *
               read_scale_w4(shape, stored, row, group);
    }
    std::int64_t scale = shape.one_scale ? 0 : row;
    if (shape.group != 0) scale = row / 128 * (shape.in / 128) + column / 128;
    double code = 0;
    if (shape.format == QuantFormat::w8a16) {
        code = read_w8(stored.codes, row, column, shape.in);
    } else {
        const std::uint8_t byte = stored.codes[static_cast<std::size_t>(row * shape.in + column)];
        code = shape.format == QuantFormat::fp8 ? decoded(byte, fp8_format)
                                                : static_cast<double>(static_cast<std::int8_t>(byte));
    }
    return code * number_at<float>(stored.scales, static_cast<std::size_t>(scale));
}

}  // namespace hone::test

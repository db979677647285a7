#include <algorithm>
#include <bit>

#include "hone/quantize.h"
#include "kernel_templates/device/bf16_line.cuh"
#include "kernel_templates/quantized_linear/layout.cuh"
#include "runtime/quantize/check.h"
#include "runtime/quantize/small_floats.h"

namespace hone {
namespace {

namespace places = quantized_linear;
using runtime::check_size;
using runtime::refuse;

constexpr std::uint8_t padding_zero = 8;

void check_parts(const char* where, const char* name, std::size_t size, std::size_t packed_size,
                 const PackedShape& shape) {
    check(shape);
    if (shape.format != QuantFormat::w4a16)
        refuse(where, "format is not w4a16; allowed: w4a16",
               "the other formats' scales stand in plain order, as docs/formats.md says");
    check_size(where, name, size, shape.out * row_groups(shape), "numbers");
    check_size(where, "packed", packed_size, scale_count(shape), "numbers");
}

template <class T>
void to_places(std::span<const T> from, const PackedShape& shape, T padding, std::span<T> packed) {
    const std::int64_t groups = row_groups(shape);
    const std::int64_t places_of_row = places::groups_of(shape.in, shape.group);
    std::ranges::fill(packed, padding);
    for (std::int64_t row = 0; row < shape.out; ++row) {
        for (std::int64_t group = 0; group < groups; ++group)
            packed[static_cast<std::size_t>(places::scale_place(row, group, places_of_row))] =
                from[static_cast<std::size_t>(row * groups + group)];
    }
}

template <class T>
void from_places(std::span<const T> packed, const PackedShape& shape, std::span<T> to) {
    const std::int64_t groups = row_groups(shape);
    const std::int64_t places_of_row = places::groups_of(shape.in, shape.group);
    for (std::int64_t row = 0; row < shape.out; ++row) {
        for (std::int64_t group = 0; group < groups; ++group)
            to[static_cast<std::size_t>(row * groups + group)] =
                packed[static_cast<std::size_t>(places::scale_place(row, group, places_of_row))];
    }
}

/// Kernels multiply a scale of bf16 with a factor (kernel_templates/device/bf16_line.cuh), 2^(133 - shift),
/// that leaves numbers below 2^128: so it is below this power of two.
constexpr int limit_exponent = bf16_line::shift - 5;

/// fp16: finite. bf16: as kernels take it.
void check_sizes(std::span<const std::uint16_t> scales, const PackedShape& shape) {
    const bool half = shape.scale_dtype == Dtype::fp16;
    // The least magnitude that is refused, as bits.
    constexpr auto limit = static_cast<std::uint16_t>(bf16_line::power_of_two(limit_exponent));
    const std::uint16_t least = half ? 0x7C00 : limit;
    const auto wrong =
        std::ranges::find_if(scales, [least](std::uint16_t bits) { return (bits & 0x7FFF) >= least; });
    if (wrong == scales.end()) return;
    const auto at = static_cast<std::int64_t>(wrong - scales.begin());
    const std::int64_t groups = row_groups(shape);
    refuse("pack_scales",
           fmt::format("scale [{}, {}] is {} (bits {:#06x}); allowed: {}", at / groups, at % groups,
                       half ? "infinite or NaN" : "too large, infinite or NaN", *wrong,
                       half ? "finite numbers" : fmt::format("magnitudes below 2^{}", limit_exponent)),
           "check the checkpoint, and that scale_dtype is the dtype of its scales");
}

}  // namespace

void pack_scales(std::span<const std::uint16_t> scales, const PackedShape& shape,
                 std::span<std::uint16_t> packed) {
    check_parts("pack_scales", "scales", scales.size(), packed.size(), shape);
    check_sizes(scales, shape);
    to_places<std::uint16_t>(scales, shape, 0, packed);
}

void unpack_scales(std::span<const std::uint16_t> packed, const PackedShape& shape,
                   std::span<std::uint16_t> scales) {
    check_parts("unpack_scales", "scales", scales.size(), packed.size(), shape);
    from_places(packed, shape, scales);
}

void pack_zeros(std::span<const std::uint8_t> zeros, const PackedShape& shape,
                std::span<std::uint8_t> packed) {
    check_parts("pack_zeros", "zeros", zeros.size(), packed.size(), shape);
    runtime::check_nibbles("pack_zeros", "zero point", zeros, row_groups(shape),
                           "zero points go up to 15: a checkpoint's 16 has no place here");
    to_places(zeros, shape, padding_zero, packed);
}

void unpack_zeros(std::span<const std::uint8_t> packed, const PackedShape& shape,
                  std::span<std::uint8_t> zeros) {
    check_parts("unpack_zeros", "zeros", zeros.size(), packed.size(), shape);
    from_places(packed, shape, zeros);
}

std::uint8_t encode_e4m3(float value) {
    if (value == value) return runtime::encode_e4m3_number(value);
    return std::bit_cast<std::uint32_t>(value) >> 31 != 0 ? 0xFF : 0x7F;
}

float decode_e4m3(std::uint8_t code) {
    const float number = runtime::E4m3::decode(code);
    if ((code & 0x7FU) != 0x7FU) return number;
    return std::bit_cast<float>(code == 0xFF ? 0xFFC00000U : 0x7FC00000U);
}

}  // namespace hone

#include <cmath>
#include <cstring>

#include "hone/quantize.h"
#include "runtime/quantize/blocks.h"
#include "runtime/quantize/check.h"
#include "runtime/system/parallel.h"
#include "runtime/quantize/small_floats.h"

namespace hone {
namespace {

namespace places = quantized_linear;

constexpr const char* where = "dequantize";

/// Scale and zero point of columns that share them.
struct Group {
    float scale;
    int zero;
};

class Dequantizer {
  public:
    Dequantizer(const PackedShape& shape, const PackedView& stored)
        : shape_(shape),
          stored_(stored),
          in_(shape.in),
          width_(shape.group == 0 ? in_ : shape.group),
          is_w4_(shape.format == QuantFormat::w4a16) {}

    /// Writes the rows of a piece.
    void run(std::int64_t piece, float* values) const {
        const runtime::RowRange rows = runtime::rows_of_piece(piece, shape_.out);
        std::vector<std::uint8_t> room;
        const std::uint8_t* codes = stored_.codes.data() + rows.first * in_;
        if (is_w4_ || shape_.format == QuantFormat::w8a16) {
            const int bits = is_w4_ ? 4 : 8;
            room.resize(static_cast<std::size_t>(rows.count * in_));
            runtime::unpack_rows(stored_.codes.data() + piece * places::packed_bytes(1, in_, bits),
                                 rows.count, in_, bits, room.data());
            codes = room.data();
        }
        for (std::int64_t row = 0; row < rows.count; ++row) {
            for (std::int64_t first = 0; first < in_; first += width_)
                decode(codes + row * in_ + first, group_of(rows.first + row, first / width_),
                       values + (rows.first + row) * in_ + first);
        }
    }

  private:
    [[nodiscard]] Group group_of(std::int64_t row, std::int64_t group) const {
        const Group found = is_w4_ ? group_w4(row, group) : Group{scale_8_bits(row, group), 0};
        if (!std::isfinite(found.scale) || (!is_w4_ && found.scale < 0))
            runtime::refuse(where,
                            fmt::format("the scale of row {}, group {} is {}; allowed: finite numbers{}", row,
                                        group, found.scale, is_w4_ ? "" : " from 0 on"),
                            "these are not the scales of this weight");
        if (found.zero > places::most_code_w4)
            runtime::refuse(where,
                            fmt::format("the zero point of row {}, group {} is {}; allowed: 0 to 15", row,
                                        group, found.zero),
                            "these are not the zero points of this weight");
        return found;
    }

    [[nodiscard]] Group group_w4(std::int64_t row, std::int64_t group) const {
        const std::int64_t place = places::scale_place(row, group, places::groups_of(in_, shape_.group));
        std::uint16_t bits = 0;
        std::memcpy(&bits, stored_.scales.data() + place * 2, 2);
        const bool is_half = shape_.scale_dtype == Dtype::fp16;
        const float scale = is_half ? runtime::decode_half(bits) : runtime::decode_bf16(bits);
        return {scale, shape_.zeros ? stored_.zeros[static_cast<std::size_t>(place)] : 8};
    }

    [[nodiscard]] float scale_8_bits(std::int64_t row, std::int64_t group) const {
        std::int64_t place = shape_.one_scale ? 0 : row;
        if (shape_.group != 0) place = row / places::scaled_block * (in_ / width_) + group;
        float scale = 0;
        std::memcpy(&scale, stored_.scales.data() + place * 4, 4);
        return scale;
    }

    void decode(const std::uint8_t* codes, const Group& group, float* values) const {
        if (shape_.format == QuantFormat::fp8) {
            for (std::int64_t i = 0; i < width_; ++i) values[i] = decode_e4m3(codes[i]) * group.scale;
        } else if (is_w4_) {
            for (std::int64_t i = 0; i < width_; ++i)
                values[i] = static_cast<float>(codes[i] - group.zero) * group.scale;
        } else {
            for (std::int64_t i = 0; i < width_; ++i)
                values[i] = static_cast<float>(static_cast<std::int8_t>(codes[i])) * group.scale;
        }
    }

    const PackedShape& shape_;
    const PackedView& stored_;
    std::int64_t in_;
    std::int64_t width_;  ///< columns that share a scale
    bool is_w4_;
};

}  // namespace

void dequantize(const PackedShape& shape, const PackedView& stored, std::span<float> values) {
    check(shape);
    runtime::check_stored(where, shape, stored.codes.size(), stored.scales.size(), stored.zeros.size());
    runtime::check_size(where, "values", values.size(), shape.out * shape.in, "numbers");
    const Dequantizer dequantizer(shape, stored);
    runtime::for_each_piece(places::whole_blocks(shape.out), 0,
                            [&](std::int64_t piece) { dequantizer.run(piece, values.data()); });
}

}  // namespace hone

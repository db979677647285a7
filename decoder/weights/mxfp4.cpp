#include "decoder/weights/mxfp4.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "decoder/error.h"
#include "decoder/weights/stored_rows.h"
#include "runtime/quantize/small_floats.h"

namespace hone::decoder {
namespace {

using checkpoints::StoredTensor;

constexpr std::int64_t block = 32;
constexpr std::size_t codes = 16;
constexpr std::size_t scales = 256;

float value_of(std::size_t code, std::size_t scale) {
    constexpr std::array<float, 8> magnitudes{0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    const float value = std::ldexp(magnitudes[code % 8], static_cast<int>(scale) - 127);
    return code < 8 ? value : -value;
}

/// What each code means with each scale.
template <class Bits, class Encode>
std::vector<Bits> table_of(const Encode& encode) {
    std::vector<Bits> table;
    for (std::size_t scale = 0; scale < scales; ++scale) {
        for (std::size_t code = 0; code < codes; ++code) table.push_back(encode(value_of(code, scale)));
    }
    return table;
}

/// `row_codes` and `row_scales` of a whole row.
template <class Bits>
void widen(const std::vector<Bits>& table, const std::byte* row_codes, const std::byte* row_scales,
           std::int64_t column, std::int64_t count, std::byte* out) {
    for (std::int64_t at = column; at < column + count; ++at, out += sizeof(Bits)) {
        const Bits* const values = &table[std::to_integer<std::size_t>(row_scales[at / block]) * codes];
        const auto pair = std::to_integer<unsigned>(row_codes[at / 2]);
        std::memcpy(out, values + (at % 2 == 0 ? pair & 15U : pair >> 4U), sizeof(Bits));
    }
}

void check_tensor(const StoredTensor& tensor, const std::vector<std::uint64_t>& shape) {
    if (tensor.type != checkpoints::StoredType::u8)
        throw DecoderError(fmt::format("{}: has elements of type {}; allowed is U8", tensor.place,
                                       checkpoints::name_of(tensor.type)));
    require_shape(tensor, shape);
}

std::vector<std::byte> bytes_of(const StoredTensor& tensor, const StoredRows::Span& rows,
                                std::int64_t row_bytes) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(rows.count * row_bytes));
    tensor.read_at(static_cast<std::uint64_t>(rows.first * row_bytes), bytes);
    return bytes;
}

template <class Bits>
void read_rows(const std::vector<Bits>& table, const StoredTensor& blocks, const StoredTensor& powers,
               const WantedTensor& wanted, std::int64_t first, std::span<std::byte> out) {
    const StoredRows rows(wanted);
    const auto count = static_cast<std::int64_t>(out.size() / sizeof(Bits));
    const StoredRows::Span span = rows.rows_of(first, count);
    const std::int64_t row_scales = wanted.columns / block;
    const std::int64_t row_codes = wanted.columns / 2;
    const std::vector<std::byte> all_codes = bytes_of(blocks, span, row_codes);
    const std::vector<std::byte> all_scales = bytes_of(powers, span, row_scales);
    rows.for_each_run(first, count, [&](const StoredRows::Run& run) {
        const std::int64_t row = run.row - span.first;
        widen(table, all_codes.data() + row * row_codes, all_scales.data() + row * row_scales, run.column,
              run.count, out.data() + run.to * static_cast<std::int64_t>(sizeof(Bits)));
    });
}

}  // namespace

Mxfp4::Mxfp4(const checkpoints::Checkpoint& checkpoint, std::string_view name)
    : blocks_(checkpoint.find(fmt::format("{}_blocks", name))),
      scales_(checkpoint.find(fmt::format("{}_scales", name))) {}

void Mxfp4::check(const WantedTensor& wanted) const {
    if (wanted.stacked < 1 || wanted.columns % block != 0)
        throw DecoderError(fmt::format(
            "{}: MXFP4 of rows of {} elements; allowed are experts' weights, with multiples of {}",
            blocks_->place, wanted.columns, block));
    std::vector<std::uint64_t> shape{static_cast<std::uint64_t>(wanted.stacked),
                                     static_cast<std::uint64_t>(wanted.rows / wanted.stacked),
                                     static_cast<std::uint64_t>(wanted.columns / block)};
    check_tensor(*scales_, shape);
    shape.push_back(block / 2);
    check_tensor(*blocks_, shape);
}

void Mxfp4::read(const WantedTensor& wanted, Dtype dtype, std::int64_t first, std::int64_t count,
                 std::span<std::byte> out) const {
    static const auto bf16s =
        table_of<std::uint16_t>([](float value) { return runtime::encode_bf16(value); });
    static const auto halves = table_of<std::uint16_t>(
        [](float value) { return static_cast<std::uint16_t>(runtime::Half::encode(value)); });
    static const auto floats = table_of<float>([](float value) { return value; });
    WantedTensor by_rows = wanted;
    by_rows.transposed = false;
    out = out.first(static_cast<std::size_t>(count) * size_bytes(dtype));
    if (dtype == Dtype::fp32) return read_rows(floats, *blocks_, *scales_, by_rows, first, out);
    read_rows(dtype == Dtype::bf16 ? bf16s : halves, *blocks_, *scales_, by_rows, first, out);
}

}  // namespace hone::decoder

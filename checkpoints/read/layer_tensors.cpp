#include "checkpoints/read/layer_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "checkpoints/error.h"

namespace hone::checkpoints {
namespace {

template <class T>
T element(std::span<const std::byte> bytes, std::size_t index) {
    T value{};
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return value;
}

float scale_at(const StoredTensor& tensor, std::span<const std::byte> bytes, std::size_t index) {
    switch (tensor.type) {
        case StoredType::f32: return element<float>(bytes, index);
        case StoredType::f16: return half_value(element<std::uint16_t>(bytes, index));
        case StoredType::bf16: return bfloat_value(element<std::uint16_t>(bytes, index));
        default: break;
    }
    throw CheckpointError(
        fmt::format("{}: dtype {}; allowed are F32, F16 and BF16", tensor.place, name_of(tensor.type)));
}

}  // namespace

void require_type(const StoredTensor& tensor, StoredType type) {
    if (tensor.type == type) return;
    throw CheckpointError(
        fmt::format("{}: dtype {}; allowed is {}", tensor.place, name_of(tensor.type), name_of(type)));
}

void require_shape(const StoredTensor& tensor, std::initializer_list<std::int64_t> shape) {
    const std::vector<std::uint64_t> needed(shape.begin(), shape.end());
    if (tensor.shape == needed) return;
    throw CheckpointError(
        fmt::format("{}: shape {}; needed is {}", tensor.place, shown(tensor.shape), shown(needed)));
}

void require_matrix(const StoredTensor& tensor) {
    if (tensor.shape.size() == 2 && tensor.size_bytes != 0) return;
    throw CheckpointError(fmt::format("{}: shape {}; needed is a matrix with rows and columns", tensor.place,
                                      shown(tensor.shape)));
}

std::vector<std::uint32_t> words_of(const StoredTensor& tensor) {
    std::vector<std::uint32_t> words(tensor.size_bytes / sizeof(std::uint32_t));
    tensor.read_at(0, std::as_writable_bytes(std::span(words)));
    return words;
}

std::vector<float> scales_of(const StoredTensor& tensor) {
    const std::vector<std::byte> bytes = tensor.bytes();
    std::vector<float> scales(bytes.size() / bytes_of(tensor.type));
    for (std::size_t i = 0; i < scales.size(); ++i) {
        scales[i] = scale_at(tensor, bytes, i);
        if (std::isfinite(scales[i]) && scales[i] != 0) continue;
        throw CheckpointError(fmt::format("{}: scale {} of {} is {}; allowed are finite numbers but 0",
                                          tensor.place, i, scales.size(), scales[i]));
    }
    return scales;
}

std::vector<float> group_scales(const StoredTensor& scales, std::int64_t groups, std::int64_t out) {
    require_shape(scales, {groups, out});
    const std::vector<float> by_group = scales_of(scales);
    std::vector<float> by_row(by_group.size());
    for (std::int64_t g = 0; g < groups; ++g) {
        for (std::int64_t row = 0; row < out; ++row)
            by_row[static_cast<std::size_t>(row * groups + g)] =
                by_group[static_cast<std::size_t>(g * out + row)];
    }
    return by_row;
}

std::vector<std::uint8_t> group_zeros(const StoredTensor& words, std::int64_t groups, std::int64_t out,
                                      std::span<const int> order) {
    const auto in_word = static_cast<std::int64_t>(order.size());
    const auto bits = static_cast<int>(32 / in_word);
    require_type(words, StoredType::i32);
    require_shape(words, {groups, out / in_word});
    const std::vector<std::uint32_t> packed = words_of(words);
    std::vector<std::uint8_t> zeros(static_cast<std::size_t>(out * groups));
    for (std::int64_t g = 0; g < groups; ++g) {
        for (std::int64_t row = 0; row < out; row += in_word) {
            std::uint32_t word = packed[static_cast<std::size_t>((g * out + row) / in_word)];
            for (const int offset : order) {
                zeros[static_cast<std::size_t>((row + offset) * groups + g)] =
                    static_cast<std::uint8_t>(word & ((1U << bits) - 1));
                word >>= bits;
            }
        }
    }
    return zeros;
}

std::int64_t groups_in(const StoredTensor& qweight, std::int64_t in, std::int64_t group) {
    if (group == 0) return 1;
    if (in % group == 0) return in / group;
    throw CheckpointError(
        fmt::format("{}: {} columns are not a multiple of group_size {}", qweight.place, in, group));
}

void require_whole_words(const StoredTensor& qweight, std::int64_t out, std::int64_t in_word) {
    if (out % in_word == 0) return;
    throw CheckpointError(
        fmt::format("{}: {} rows of the layer are not a multiple of the {} numbers in a word", qweight.place,
                    out, in_word));
}

float half_value(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t exponent = bits >> 10 & 31U;
    const std::uint32_t mantissa = bits & 1023U;
    if (exponent == 0) {  // no hidden one: units of 2^-24
        const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
        return sign == 0 ? magnitude : -magnitude;
    }
    const std::uint32_t wide = exponent == 31 ? 255 : exponent + 127 - 15;
    return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

float bfloat_value(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace hone::checkpoints

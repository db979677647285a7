// What the readers of quantized layers share: a layer's tensors with their types and shapes checked, the
// codes in packed words, and scales as float. Internal to tuner/checkpoint.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/read/checkpoint.h"

namespace hone::checkpoints {

/// Throw CheckpointError.
void require_type(const StoredTensor& tensor, StoredType type);
void require_shape(const StoredTensor& tensor, std::initializer_list<std::int64_t> shape);
/// A matrix that has elements.
void require_matrix(const StoredTensor& tensor);

/// A tensor of 32-bit words. Throws CheckpointError, as the functions below do, where it cannot be read.
[[nodiscard]] std::vector<std::uint32_t> words_of(const StoredTensor& tensor);

/// Rows that are unpacked side by side: a block of the result that stays in the cache.
inline constexpr std::int64_t unpacked_rows = 64;

/// Every element of F32, F16 or BF16, row-major. Throws CheckpointError for another type, 0, infinite and
/// NaN.
[[nodiscard]] std::vector<float> scales_of(const StoredTensor& tensor);

/// [groups, out] -> [out, groups].
[[nodiscard]] std::vector<float> group_scales(const StoredTensor& scales, std::int64_t groups,
                                              std::int64_t out);

/// Zero points from words [groups, out / order.size()]: number i of a word, from the low end, is that of row
/// order[i] of the word's rows. Returns [out, groups].
[[nodiscard]] std::vector<std::uint8_t> group_zeros(const StoredTensor& words, std::int64_t groups,
                                                    std::int64_t out, std::span<const int> order);

/// Groups of `in` columns, and `out` as a multiple of the numbers in a word. Throws CheckpointError.
[[nodiscard]] std::int64_t groups_in(const StoredTensor& qweight, std::int64_t in, std::int64_t group);
void require_whole_words(const StoredTensor& qweight, std::int64_t out, std::int64_t in_word);

/// The number that 16 bits of a half or a bfloat mean.
[[nodiscard]] float half_value(std::uint16_t bits);
[[nodiscard]] float bfloat_value(std::uint16_t bits);

}  // namespace hone::checkpoints

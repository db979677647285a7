#include "runtime/quantize/weight_rows.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/quantize/check.h"
#include "runtime/quantize/small_floats.h"

namespace hone::runtime {
namespace {

constexpr const char* where = "quantize";
constexpr int lanes = 32;  ///< side by side in the search, so that it becomes vector code

/// Widens `count` elements of type Bits, which need not be aligned.
template <class Bits, class Widen>
void widen(const std::byte* from, std::int64_t count, float* values, const Widen& widened) {
    for (std::int64_t i = 0; i < count; ++i) {
        Bits bits;
        std::memcpy(&bits, from + static_cast<std::size_t>(i) * sizeof(Bits), sizeof(Bits));
        values[i] = widened(bits);
    }
}

bool all_finite(const float* values, std::int64_t count) {
    std::uint32_t found = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(values[i]) & 0x7FFFFFFFU;
        found |= magnitude >= 0x7F800000U ? 1U : 0U;
    }
    return found == 0;
}

[[noreturn]] void refuse_element(std::int64_t row, const float* values) {
    std::int64_t column = 0;
    while (std::isfinite(values[column])) ++column;
    refuse(where, fmt::format("weight [{}, {}] is {}; allowed: finite numbers", row, column, values[column]),
           "check the checkpoint, and that dtype is its dtype");
}

}  // namespace

WeightRows::WeightRows(std::span<const std::byte> weights, Dtype dtype, std::int64_t out, std::int64_t in,
                       std::int64_t first_row)
    : weights_(weights), dtype_(dtype), in_(in), first_row_(first_row) {
    if (dtype != Dtype::fp32 && dtype != Dtype::fp16 && dtype != Dtype::bf16)
        refuse(where, fmt::format("dtype is {}; allowed: fp32, fp16, bf16", name(dtype)),
               "pack_w4() and pack_w8() take weights that are codes already");
    check_size(where, "weights", weights.size(), out * in * size_bytes(dtype), "bytes");
}

void WeightRows::read(std::int64_t row, float* values) const {
    const std::byte* const from = weights_.data() + row * in_ * size_bytes(dtype_);
    switch (dtype_) {
        case Dtype::fp16: widen<std::uint16_t>(from, in_, values, decode_half); break;
        case Dtype::bf16: widen<std::uint16_t>(from, in_, values, decode_bf16); break;
        default: widen<float>(from, in_, values, [](float value) { return value; });
    }
    if (!all_finite(values, in_)) refuse_element(first_row_ + row, values);
}

float largest_magnitude(const float* values, std::int64_t count) {
    float most[lanes] = {};
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        for (int lane = 0; lane < lanes; ++lane) {
            const float magnitude = std::fabs(values[i + lane]);
            most[lane] = magnitude > most[lane] ? magnitude : most[lane];
        }
    }
    for (; i < count; ++i) most[0] = std::fmax(most[0], std::fabs(values[i]));
    for (const float lane : most) most[0] = std::fmax(most[0], lane);
    return most[0];
}

}  // namespace hone::runtime

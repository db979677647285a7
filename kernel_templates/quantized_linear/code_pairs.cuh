// Codes of packed weights as pairs of elements, operands of 16-bit products. Exact; but those of bf16 are
// smaller than their values (device/bf16_line.cuh), and so are sums of their products: by undo_shift.
#pragma once

#include "device/bf16_line.cuh"
#include "device/widen_fp8.cuh"
#include "device/widen_int.cuh"
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear {

/// What sums of such products are multiplied with.
template <class T>
inline constexpr float undo_shift = is_bf16<T> ? static_cast<float>(1ull << bf16_line::shift) : 1.0f;

/// The same for a row of a weight, with its scale where all columns share one.
__device__ inline float sum_factor(const Weight& weight, int64 row) {
    return undo_shift<Element> * packed_row_scale(weight, row);
}

#if __CUDA_ARCH__ >= 800
__device__ inline uint32 multiply_add(bf16, uint32 a, uint32 b, uint32 c) {
    uint32 result;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}
#endif

/// Codes of 4 bits in row 0 or 1 of two whose nibbles stand in turns: a half of a word has the first row's at
/// its nibbles 0 and 2, the other's at 1 and 3. `zeros`: with zero points, else codes are 8 more than their
/// values. `scaled`: times a scale, and rounded.
template <class T, bool zeros, bool scaled>
class RowCodes {
  public:
    RowCodes() = default;
    /// Zero points of both rows in the low two bytes, and scales of both, as they stand in memory. Those that
    /// are none are not looked at.
    __device__ RowCodes(int row, uint32 zero_points, uint32 scales) {
        if constexpr (scaled) scale_ = __byte_perm(scales, 0, row == 0 ? 0x1010 : 0x3232);
        subtracted_ = int_base<T> + 0x00080008u;
        if constexpr (zeros) subtracted_ = __byte_perm(zero_points, int_base<T>, row == 0 ? 0x5050 : 0x5151);
        if constexpr (on_line) {
            factor_ = row == 0 ? bf16_line::low_factor : bf16_line::high_factor;
            offset_ = bf16_line::middle_offset;
            if constexpr (zeros)
                offset_ = multiply_add(T{}, subtracted_, bf16_line::zero_factor, bf16_line::zero_offset);
            if constexpr (scaled && !zeros) {
                factor_ = multiply_pair(T{}, factor_, scale_);
                offset_ = multiply_pair(T{}, offset_, scale_);
            }
        }
    }

    /// The pair at one of the row's nibbles.
    __device__ uint32 widen(uint32 word, int nibble) const {
        if constexpr (on_line) {
            const uint32 bits = nibble < 2 ? word : word >> 8;
            const uint32 codes =
                nibble % 2 == 0 ? bf16_line::low_nibbles(bits) : bf16_line::high_nibbles(bits);
            const uint32 values = multiply_add(T{}, codes, factor_, offset_);
            return scaled && zeros ? multiply_pair(T{}, values, scale_) : values;
        } else {
            const uint32 values = widen_int4<T>(word >> 4 * nibble, subtracted_);
            return scaled ? multiply_pair(T{}, values, scale_) : values;
        }
    }

  private:
    static constexpr bool on_line = is_bf16<T>;

    uint32 scale_;
    uint32 subtracted_;  ///< behind int_base
    uint32 factor_;
    uint32 offset_;
};

/// Codes of 8 bits, two's complement in the low byte of each half.
template <class T>
__device__ inline uint32 widen_bytes(uint32 bytes) {
    if constexpr (is_bf16<T>) {
        return multiply_add(T{}, bf16_line::unsigned_bytes(bytes), bf16_line::low_factor,
                            bf16_line::byte_offset);
    } else {
        return widen_int8(bytes);
    }
}

}  // namespace hone::quantized_linear

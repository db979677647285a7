// What a thread of variant wgmma_w16 (wgmma_w16.cu) has of a block of 64 rows x 64 columns, of rows g and
// g + 8 of its warp's 16: from codes in shared memory to the fragments of a left operand.
//
// Where the tensor cores are busy, every other instruction costs about 1.35 cycles of a quarter of a
// multiprocessor (measured on an H100, 64 tokens): what a pair of codes takes decides the speed. bf16 has a
// way that takes two (device/bf16_line.cuh), fp16 one of three.
#pragma once

#include "device/bf16_line.cuh"
#include "device/widen_fp8.cuh"
#include "device/widen_int.cuh"
#include "quantized_linear/wgmma_w16_weights.cuh"

namespace hone::quantized_linear::w16 {

inline constexpr int steps = block_columns / 16;

/// The left operand of a block's products, 16 columns each.
struct Fragments {
    uint32 words[steps][4];
};

/// bf16: what becomes of codes is smaller than their values, and so are the sums.
inline constexpr bool on_line = is_bf16<Element>;
inline constexpr float undo_shift = on_line ? static_cast<float>(1ull << bf16_line::shift) : 1.0f;

__device__ inline uint32 multiply_add(uint32 a, uint32 b, uint32 c) {
    uint32 result;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}

/// A byte or an element of each of the two rows, in the word's halves from the low end, twice each.
__device__ inline uint32 both_halves(uint32 pair, int row) {
    return __byte_perm(pair, 0, row == 0 ? 0x1010 : 0x3232);
}
/// int_base + zero point, of zero points in the low two bytes.
__device__ inline uint32 zeros_of_row(uint32 pair, int row) {
    return __byte_perm(pair, int_base<Element>, row == 0 ? 0x5050 : 0x5151);
}
/// Codes without zero points are 8 more than their values.
inline constexpr uint32 middle = int_base<Element> + 0x00080008u;

/// What makes values of one row's codes of 4 bits, of one group.
struct RowScale {
    uint32 factor;  ///< on_line; and what is added
    uint32 offset;
    uint32 zeros;  ///< else: what is subtracted
    uint32 scale;  ///< a factor of its own, where `scales_after`

    static constexpr bool grouped = format == Format::w4a16 && held.groups() > 0;
    static constexpr bool scales_after = grouped && (!on_line || has_zeros);

    /// Of the two rows' scales and zero points.
    __device__ static RowScale of(uint32 scales, uint32 zeros, int row) {
        RowScale r{};
        r.scale = grouped ? both_halves(scales, row) : 0;
        r.zeros = has_zeros ? zeros_of_row(zeros, row) : middle;
        if constexpr (on_line) {
            r.factor = row == 0 ? bf16_line::low_factor : bf16_line::high_factor;
            r.offset = has_zeros ? multiply_add(r.zeros, bf16_line::zero_factor, bf16_line::zero_offset)
                                 : bf16_line::middle_offset;
            if constexpr (grouped && !scales_after) {
                r.factor = multiply_pair(Element{}, r.factor, r.scale);
                r.offset = multiply_pair(Element{}, r.offset, r.scale);
            }
        }
        return r;
    }

    /// Four nibbles a half: a row's stand at the even places, the other row's at the odd ones.
    __device__ uint32 widen(uint32 word, int nibble) const {
        uint32 values;
        if constexpr (on_line) {
            const uint32 bits = nibble < 2 ? word : word >> 8;
            const uint32 codes =
                nibble % 2 == 0 ? bf16_line::low_nibbles(bits) : bf16_line::high_nibbles(bits);
            values = multiply_add(codes, factor, offset);
        } else {
            values = widen_int4<Element>(word >> 4 * nibble, zeros);
        }
        return scales_after ? multiply_pair(Element{}, values, scale) : values;
    }
};

/// Codes of 8 bits, in the low byte of each half.
__device__ inline uint32 widen_bytes(uint32 bytes) {
    if constexpr (on_line)
        return multiply_add(bf16_line::unsigned_bytes(bytes), bf16_line::low_factor, bf16_line::byte_offset);
    else
        return widen_int8<Element>(bytes);
}

/// Index of this thread's two rows in the 64 scales, or zero points, of a block.
__device__ inline int rows_place() { return threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 * 2; }

__device__ inline void load_shared(uint32 from, uint32 (&to)[4]) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}
__device__ inline uint32 load_shared_word(uint32 from) {
    uint32 word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
    return word;
}
__device__ inline uint32 load_shared_half(uint32 from) {
    uint16 half;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(half) : "r"(from) : "memory");
    return half;
}

/// The thread's codes of a block as they stand in the ring, and what belongs to them.
class Codes {
  public:
    /// `row_zeros`: of codes with a scale a row, which the ring does not hold.
    __device__ Codes(uint32 shared, int stage, int block, uint32 row_zeros) {
        const uint32 from = codes_at(shared, stage, block) + threadIdx.x % 128 * 16;
#pragma unroll
        for (int i = 0; i < quads; ++i) load_shared(from + i * 2048, words_[i]);
        if constexpr (bits == 4) {
            const uint32 extra = extra_at(shared, stage, block) + rows_place() * 2;
            const uint32 zeros = extra_at(shared, stage, block) + held.scale_bytes() + rows_place();
#pragma unroll
            for (int set = 0; set < sets; ++set) {
                const uint32 set_scales =
                    RowScale::grouped ? load_shared_word(extra + set * block_rows * 2) : 0;
                const uint32 set_zeros =
                    RowScale::grouped && has_zeros ? load_shared_half(zeros + set * block_rows) : row_zeros;
#pragma unroll
                for (int row = 0; row < 2; ++row)
                    row_scales_[set][row] = RowScale::of(set_scales, set_zeros, row);
            }
        }
    }

    __device__ void widen(int step, Fragments& to) const {
#pragma unroll
        for (int i = 0; i < 4; ++i) to.words[step][i] = pair(step, i);
    }

  private:
    static constexpr int bits = format == Format::w4a16 ? 4 : 8;
    static constexpr int quads = bits / 4;
    static constexpr int sets = held.groups() > 0 ? held.groups() : 1;

    /// Word i of a fragment: row g or g + 8 (i odd), columns 2t and 2t + 1, or 8 further (i > 1).
    __device__ uint32 pair(int step, int i) const {
        if constexpr (bits == 8) {
            const uint32 word = words_[step / 2][step % 2 * 2 + i / 2];
            return widen_bytes(word >> 8 * (i % 2));
        } else {
            return row_scales_[step * sets / steps][i % 2].widen(words_[0][step], i);
        }
    }

    uint32 words_[quads][4];
    RowScale row_scales_[sets][2];
};

/// Scales and zero points of the thread's rows in its blocks of a tile, where a row has one scale.
class RowFactors {
  public:
    static constexpr bool exist = group == 0;

    __device__ RowFactors(const Tensors& tensors, const gemm::Work& tile, int warpgroup) {
        if constexpr (exist) {
#pragma unroll
            for (int b = 0; b < gemm::row_blocks; ++b) load(tensors, tile, warpgroup, b);
        }
    }

    __device__ uint32 zeros(int b) const { return exist && has_zeros ? zeros_[b] : 0; }
    /// Sums become what they are with those scales, and with what widening leaves to them.
    __device__ void scale(gemm::Sums& sums) const {
#pragma unroll
        for (int b = 0; b < gemm::row_blocks; ++b) {
#pragma unroll
            for (int i = 0; i < gemm::tile_n / 2; ++i) {
                if constexpr (on_line) sums[b][i] *= undo_shift;
                if constexpr (exist) sums[b][i] *= scales_[b][i / 2 % 2];
            }
        }
    }

  private:
    __device__ void load(const Tensors& tensors, const gemm::Work& tile, int warpgroup, int b) {
        const int block = gemm::block_row(warpgroup, b) / block_rows;
        const Weight& weight = weight_of_block(tensors, block);
        const int first = row_of_blocks(tile, block) * block_rows;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if constexpr (format == Format::w4a16) {
                scales_[b][half] = to_float(weight.scales[first + rows_place() + half]);
            } else {
                const int row = first + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 + 8 * half;
                scales_[b][half] = to_float(weight.scales[min(row, out - 1)]);
            }
        }
        if constexpr (has_zeros)
            zeros_[b] = *reinterpret_cast<const uint16*>(weight.zeros + first + rows_place());
    }

    float scales_[gemm::row_blocks][2];
    uint32 zeros_[gemm::row_blocks];
};

}  // namespace hone::quantized_linear::w16

// What a thread of variant wgmma_w16 (wgmma_w16.cu) has of a block of 64 rows x 64 columns, of rows g and
// g + 8 of its warp's 16: from codes in shared memory to the fragments of a left operand.
#pragma once

#include "device/widen_fp8.cuh"
#include "device/widen_int.cuh"
#include "quantized_linear/wgmma_w16_weights.cuh"

namespace hone::quantized_linear::w16 {

inline constexpr int steps = block_columns / 16;

/// The left operand of a block's products, 16 columns each.
struct Fragments {
    uint32 words[steps][4];
};

/// A byte or an element of each of the two rows, in the word's halves from the low end, twice each.
__device__ inline uint32 both_halves(uint32 pair, int row) {
    return __byte_perm(pair, 0, row == 0 ? 0x1010 : 0x3232);
}
/// What widen_int4 subtracts, of zero points in the low two bytes.
__device__ inline uint32 zeros_of_row(uint32 pair, int row) {
    return __byte_perm(pair, int_base<Element>, row == 0 ? 0x5050 : 0x5151);
}
/// Codes without zero points are 8 more than their values.
inline constexpr uint32 middle = int_base<Element> + 0x00080008u;

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
        const uint32 extra = extra_at(shared, stage, block) + rows_place() * 2;
        const uint32 zeros = extra_at(shared, stage, block) + held.scale_bytes() + rows_place();
        zeros_[0] = row_zeros;
#pragma unroll
        for (int i = 0; i < held.groups(); ++i) {
            scales_[i] = load_shared_word(extra + i * block_rows * 2);
            if constexpr (has_zeros) zeros_[i] = load_shared_half(zeros + i * block_rows);
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
            return widen_int8<Element>(word >> 8 * (i % 2));
        } else {
            const int set = step * sets / steps;
            const uint32 zeros = has_zeros ? zeros_of_row(zeros_[set], i % 2) : middle;
            const uint32 codes = widen_int4<Element>(words_[0][step] >> 4 * i, zeros);
            if constexpr (held.groups() == 0) return codes;
            return multiply_pair(Element{}, codes, both_halves(scales_[set], i % 2));
        }
    }

    uint32 words_[quads][4];
    uint32 scales_[sets];
    uint32 zeros_[sets];
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
    __device__ void scale(gemm::Sums& sums) const {
        if constexpr (exist) {
#pragma unroll
            for (int b = 0; b < gemm::row_blocks; ++b) {
#pragma unroll
                for (int i = 0; i < gemm::tile_n / 2; ++i) sums[b][i] *= scales_[b][i / 2 % 2];
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

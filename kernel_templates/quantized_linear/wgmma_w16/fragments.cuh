// What a thread of variant wgmma_w16 (kernel.cu) has of a block of 64 rows x 64 columns, of rows g and
// g + 8 of its warp's 16: from codes in shared memory to the fragments of a left operand.
//
// Where the tensor cores are busy, every other instruction costs about 1.35 cycles of a quarter of a
// multiprocessor (measured on an H100, 64 tokens): what a pair of codes takes decides the speed. bf16 has a
// way that takes two (code_pairs.cuh), fp16 one of three.
#pragma once

#include "quantized_linear/code_pairs.cuh"
#include "quantized_linear/wgmma_w16/weights.cuh"

namespace hone::quantized_linear::w16 {

inline constexpr int steps = block_columns / 16;

/// The left operand of a block's products, 16 columns each.
struct Fragments {
    uint32 words[steps][4];
};

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

/// Where this thread finds its codes, scales and zero points of a block of rows in the ring's first stage.
struct ThreadPlaces {
    uint32 codes;
    uint32 extra;
    uint32 zeros;

    __device__ ThreadPlaces(uint32 shared, int block)
        : codes(codes_at(shared, 0, block) + threadIdx.x % 128 * 16),
          extra(extra_at(shared, 0, block) + rows_place() * 2),
          zeros(extra_at(shared, 0, block) + held.scale_bytes() + rows_place()) {}
};

/// The thread's codes of a block as they stand in the ring, and what belongs to them.
class Codes {
  public:
    Codes() = default;
    /// Those `block` blocks of rows behind `places`. `row_zeros`: of codes with a scale a row, which the ring
    /// does not hold.
    __device__ Codes(const ThreadPlaces& places, int stage, int block, uint32 row_zeros) {
        load_words(places, stage, 0, block);
        load_rows(places, stage, block, row_zeros);
    }

    /// The codes alone, of the i-th of code_stages stages.
    __device__ void load_words(const ThreadPlaces& places, int stage, int i, int block) {
        const uint32 from = places.codes + stage * gemm::geometry.left_bytes() +
                            (block * code_stages + i) * held.code_bytes();
#pragma unroll
        for (int quad = 0; quad < quads; ++quad) load_shared(from + quad * 2048, words_[quad]);
    }
    /// What belongs to them.
    __device__ void load_rows(const ThreadPlaces& places, int stage, int block, uint32 row_zeros) {
        if constexpr (bits == 4) {
            const uint32 behind = stage * gemm::geometry.extra_bytes() + block * held.extra_bytes();
#pragma unroll
            for (int set = 0; set < sets; ++set) {
                const uint32 set_scales =
                    grouped ? load_shared_word(places.extra + behind + set * block_rows * 2) : 0;
                const uint32 set_zeros = grouped && has_zeros
                                             ? load_shared_half(places.zeros + behind + set * block_rows)
                                             : row_zeros;
#pragma unroll
                for (int row = 0; row < 2; ++row) rows_[set][row] = {row, set_zeros, set_scales};
            }
        }
    }
    /// It is what belongs to those.
    __device__ void share_rows(const Codes& with) {
#pragma unroll
        for (int set = 0; set < sets; ++set) {
#pragma unroll
            for (int row = 0; row < 2; ++row) rows_[set][row] = with.rows_[set][row];
        }
    }

    __device__ void widen(int step, Fragments& to) const {
#pragma unroll
        for (int i = 0; i < 4; ++i) to.words[step][i] = pair(step, i);
    }

  private:
    static constexpr int bits = format == Format::w4a16 ? 4 : 8;
    static constexpr bool grouped = held.groups() > 0;
    static constexpr int quads = bits / 4;
    static constexpr int sets = grouped ? held.groups() : 1;

    /// Word i of a fragment: row g or g + 8 (i odd), columns 2t and 2t + 1, or 8 further (i > 1).
    __device__ uint32 pair(int step, int i) const {
        if constexpr (bits == 8) {
            const uint32 word = words_[step / 2][step % 2 * 2 + i / 2];
            return widen_bytes<Element>(word >> 8 * (i % 2));
        } else {
            return rows_[step * sets / steps][i % 2].widen(words_[0][step], i);
        }
    }

    uint32 words_[quads][4];
    RowCodes<Element, has_zeros, grouped> rows_[sets][2];
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
                sums[b][i] *= undo_shift<Element>;
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

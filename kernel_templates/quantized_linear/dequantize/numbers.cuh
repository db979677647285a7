// Packed weights as rows of 16-bit numbers, in a launch in front of a product of variant dequantize: each
// (code - zero point) * scale, the scale's row or group, rounded to the element type: once where the scale
// has that type (w4a16), a float32 product where it is float32 (w8a16). [out, in] without gaps.
//
// Data's way: a thread block takes 64 rows of some neighbouring blocks, a warp 16 of the rows. Codes and
// scales come from global memory into registers, as fragments of a left operand (layout.cuh), all loads in
// flight at once; they do not depend on the kernel before, but the workspace does, which may still be read:
// the wait stands between. Fragments become numbers in registers, change places through 2 KiB of shared
// memory a warp, swizzled as the copy engine does (stmatrix), and leave as rows of 128 bytes, 16 a thread.
// Codes leave level 2 first: the numbers are to stay there for the product, which may begin at once and
// waits for this grid's end.
#pragma once

#include "device/shared_tile.cuh"
#include "device/sync.cuh"
#include "device/tma.cuh"
#include "device/warpgroup.cuh"
#include "device/widen_fp8.cuh"
#include "device/widen_int.cuh"
#include "quantized_linear/dequantize/geometry.cuh"
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear::unpacked {

inline constexpr Tasks tasks{
    .in = in, .out = out, .bits = format == Format::w4a16 ? 4 : 8, .products = products};
inline constexpr int together = tasks.together();
inline constexpr int warp_rows = 16;
inline constexpr int staging_bytes = warp_rows * block_columns * 2;
static_assert(in % 8 == 0, "rows of numbers start at multiples of 16 bytes");

__device__ inline void load_codes(const uint8* from, uint32 (&to)[4]) {
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "l"(from), "l"(l2_policy<L2Hint::evict_first>()));
}

/// What a thread has of a block: of rows g and g + 8 of its warp's 16, with g = lane / 4. Numbered as
/// fragments are: step of 16 columns; word i of rows g or g + 8 (i odd), columns 2t and 2t + 1, or 8 further
/// (i > 1), t = lane % 4.
class Codes {
  public:
    __device__ void load(const Weight& from, int row_block, int column_block) {
        constexpr int across = static_cast<int>(whole_blocks(in));
        const int64 block = static_cast<int64>(row_block) * across + min(column_block, across - 1);
        const uint8* const codes = from.codes + block * (quads * 2048) + threadIdx.x * 16;
#pragma unroll
        for (int i = 0; i < quads; ++i) load_codes(codes + i * 2048, words_[i]);
        if constexpr (format == Format::w4a16) {
            load_pairs(from, row_block, min(column_block, across - 1));
        } else {
            const int row = row_block * block_rows + threadIdx.x / 32 * warp_rows + threadIdx.x % 32 / 4;
#pragma unroll
            for (int half = 0; half < 2; ++half)
                row_scales_[half] = to_float(from.scales[min(row + 8 * half, out - 1)]);
        }
    }

    /// As a pair of elements.
    __device__ uint32 numbers(int step, int i) const {
        if constexpr (format == Format::w4a16) {
            const int set = step * sets / steps;
            const uint32 codes = widen_int4<Element>(words_[0][step] >> 4 * i, zeros_of_row(set, i % 2));
            return multiply_pair(Element{}, codes,
                                 __byte_perm(scales_[set], 0, i % 2 == 0 ? 0x1010 : 0x3232));
        } else {
            const uint32 word = words_[step / 2 % quads][step % 2 * 2 + i / 2] >> 8 * (i % 2);
            const float scale = row_scales_[i % 2];
            return pack_pair(Element{}, to_float(static_cast<int8>(word)) * scale,
                             to_float(static_cast<int8>(word >> 16)) * scale);
        }
    }

    static constexpr int steps = block_columns / 16;

  private:
    static constexpr int quads = format == Format::w4a16 ? 1 : 2;
    /// Groups that a block's columns are in.
    static constexpr int sets = group != 0 && group < block_columns ? block_columns / group : 1;

    /// Scales and zero points of w4a16, whose two rows stand side by side.
    __device__ void load_pairs(const Weight& from, int row_block, int column_block) {
        constexpr int columns = group == 0 ? static_cast<int>(whole_blocks(in)) * block_columns : group;
        const int first = column_block * block_columns / columns;
        const int row = threadIdx.x / 32 * warp_rows + threadIdx.x % 32 / 4 * 2;
        const int64 at = (static_cast<int64>(row_block) * groups + first) * block_rows + row;
#pragma unroll
        for (int i = 0; i < sets; ++i) {
            scales_[i] = load_word<LoadHint::normal, 4>(from.scales + at + i * block_rows);
            if constexpr (has_zeros)
                zeros_[i] = load_word<LoadHint::normal, 2>(from.zeros + at + i * block_rows);
        }
    }
    /// Codes without zero points are 8 more than their values.
    __device__ uint32 zeros_of_row(int set, int row) const {
        if constexpr (!has_zeros) return int_base<Element> + 0x00080008u;
        return __byte_perm(zeros_[set], int_base<Element>, row == 0 ? 0x5050 : 0x5151);
    }

    uint32 words_[quads][4];
    uint32 scales_[sets];
    uint32 zeros_[sets];
    float row_scales_[2];
};

/// The warp's 16 rows of a block, 64 numbers each, to shared memory.
__device__ inline void stage(const Codes& codes, uint32 staging) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 0; step < Codes::steps; ++step)
        store_matrices(staging + swizzled_offset<block_columns>(lane % 16, 2 * step + lane / 16),
                       codes.numbers(step, 0), codes.numbers(step, 1), codes.numbers(step, 2),
                       codes.numbers(step, 3));
}
/// From there to the numbers' first row and column; what is padding stays behind.
__device__ inline void store(Element* numbers, int row, int column, uint32 staging) {
    constexpr bool whole =
        in % block_columns == 0 && out % block_rows == 0 && whole_blocks(in) % together == 0;
    const int lane = threadIdx.x % 32;
    const int from_column = column + lane % 8 * 8;
#pragma unroll
    for (int first = 0; first < warp_rows; first += 4) {
        const int within = first + lane / 8;
        const uint4 chunk = load_shared_16(staging + swizzled_offset<block_columns>(within, lane % 8));
        if (whole || (row + within < out && from_column < in))
            store_word<StoreHint::normal, 16>(numbers + static_cast<int64>(row + within) * in + from_column,
                                              chunk);
    }
}

__device__ inline void run(const Weight& weight, const Task& task, Element* numbers) {
    __shared__ alignas(128) uint8 staging[threads / 32][staging_bytes];
    Codes codes[together];
#pragma unroll
    for (int i = 0; i < together; ++i) codes[i].load(weight, task.row_block, task.column_block + i);
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const int warp = threadIdx.x / 32;
    const uint32 mine = shared_address(staging[warp]);
#pragma unroll
    for (int i = 0; i < together; ++i) {
        stage(codes[i], mine);
        __syncwarp();
        store(numbers, task.row_block * block_rows + warp * warp_rows,
              (task.column_block + i) * block_columns, mine);
        __syncwarp();
    }
}

}  // namespace hone::quantized_linear::unpacked

extern "C" __global__ void __launch_bounds__(hone::quantized_linear::unpacked::threads)
    quantized_linear_dequantize(HONE_PARAMETERS(quantized_linear_dequantize)) {
    using namespace hone;
    using namespace hone::quantized_linear;
    const unpacked::Task task = unpacked::tasks.task(blockIdx.x);
    const bool is_up = task.product == 1;
    unpacked::run({reinterpret_cast<const uint8*>(is_up ? up : weight), is_up ? up_scales : scales,
                   reinterpret_cast<const uint8*>(is_up ? up_zeros : zeros), 0, 0},
                  task, reinterpret_cast<Element*>(is_up ? up_numbers : numbers));
}

// Weights of the variant mma (mma.cu): what a lane holds of 16 rows x 64 columns (a panel), from global
// memory to the words of a left operand. With g = lane / 4 and t = lane % 4 it has some of rows g and g + 8.
#pragma once

#include "device/mma_8bit.cuh"
#include "device/widen_int.cuh"
#include "quantized_linear/mma_geometry.cuh"
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear::mma_blocks {

inline constexpr int panels = (in + panel - 1) / panel;

/// w4a16, w8a16: a fragment as it is stored, one word of 4-bit codes or two of 8-bit for each 16 columns, and
/// the two rows' scales and zero points, which stand side by side. They become pairs of T.
template <class T>
class PackedPanel {
  public:
    __device__ static void load(const Weight& from, int row, int index, PackedPanel& to) {
        const int lane = threadIdx.x % 32;
        const int last = static_cast<int>(whole_blocks(out)) - 1;
        const int64 block = min(row / block_rows, last);
        const int warp = row % block_rows / 16;
        const uint8* codes = from.codes + (block * panels + index) * block_bytes + (warp * 32 + lane) * 16;
#pragma unroll
        for (int i = 0; i < quads; ++i) to.words_[i] = load_word<LoadHint::no_allocate, 16>(codes + i * 2048);
        const int64 first = (block * groups + group_of(index)) * block_rows + warp * 16 + lane / 4 * 2;
#pragma unroll
        for (int i = 0; i < sets; ++i) {
            if constexpr (has_groups)
                to.scales_[i] = load_word<LoadHint::normal, 4>(from.scales + first + i * block_rows);
            if constexpr (has_zeros)
                to.zeros_[i] = load_word<LoadHint::normal, 2>(from.zeros + first + i * block_rows);
        }
    }

    /// Word i of the left operand of 16 columns: row g, or g + 8 (i odd), columns 2t and 2t + 1, or 8 further
    /// (i > 1).
    __device__ uint32 word(int step, int i) const {
        if constexpr (format == Format::w8a16) {
            const uint4& quad = words_[quads == 1 ? 0 : step / 2];
            return widen_int8<T>(part(quad, step % 2 * 2 + i / 2) >> 8 * (i % 2));
        } else {
            const int set = step * sets / 4;
            const uint32 codes = widen_int4<T>(part(words_[0], step) >> 4 * i, zeros_of_row(set, i % 2));
            if constexpr (!has_groups) return codes;
            return multiply_pair(T{}, codes, __byte_perm(scales_[set], 0, i % 2 == 0 ? 0x1010 : 0x3232));
        }
    }

  private:
    static constexpr bool has_groups = format == Format::w4a16 && group != 0;
    static constexpr int quads = format == Format::w4a16 ? 1 : 2;
    static constexpr int block_bytes = quads * 2048;
    /// Groups of a panel.
    static constexpr int sets = has_groups && group < panel ? panel / group : 1;

    __device__ static int group_of(int index) {
        return has_groups ? index * panel / (has_groups ? group : 1) : 0;
    }
    __device__ static uint32 part(const uint4& word, int i) {
        return i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w;
    }
    /// Codes without zero points are 8 more than their values.
    __device__ uint32 zeros_of_row(int set, int row) const {
        if constexpr (!has_zeros) return int_base<T> + 0x00080008u;
        return __byte_perm(zeros_[set], int_base<T>, row == 0 ? 0x5050 : 0x5151);
    }

    uint4 words_[quads];
    uint32 scales_[sets];
    uint32 zeros_[sets];
};

/// w8a8, fp8: 16 neighbouring codes of each of the two rows, from column 16 t of the panel. Which column is
/// which does not matter to a sum as long as x has the same order.
struct RowPanel {
    /// Rows beyond the weight repeat its last; where columns are beyond it, x is zero.
    __device__ static void load(const Weight& from, int row, int index, RowPanel& to) {
        const int lane = threadIdx.x % 32;
        const int wanted = index * panel + lane % 4 * 16;
        const int column = wanted < in ? wanted : 0;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int64 place = min(row + lane / 4 + 8 * i, out - 1);
            to.rows[i] = load_word<LoadHint::no_allocate, 16>(from.codes + place * from.stride + column);
        }
        if constexpr (has_blocks) {
            const int64 block = min(row, out - 1) / scaled_block;
            to.scale = to_float(from.scales[block * groups + index * panel / scaled_block]);
        }
    }

    uint4 rows[2];
    float scale;  ///< of the block, fp8's
};

using Panel = Conditional<is_packed, PackedPanel<Element>, RowPanel>::type;

/// Of a row where all its columns share one: the sums are multiplied with it.
__device__ inline float row_scale(const Weight& weight, int row) {
    if constexpr (format == Format::w4a16)
        return group == 0 ? to_float(weight.scales[scale_place(row, 0, 1)]) : 1.0f;
    if constexpr (has_blocks) return 1.0f;
    return to_float(weight.scales[format == Format::w8a16 ? row : row * weight.scale_stride]);
}

}  // namespace hone::quantized_linear::mma_blocks
